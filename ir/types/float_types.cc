// SPDX-License-Identifier: Apache-2.0
#include "ir/types/float_types.h"

namespace hlokit {

template <int kExponentBits, int kMantissaBits, int kBias, NonFiniteBehavior kSpecials>
constinit const std::array<float, 256> MiniFloat<kExponentBits, kMantissaBits, kBias, kSpecials>::kFloats = DecodeAll();

template class MiniFloat<2, 1, 1, NonFiniteBehavior::kFinite>;
template class MiniFloat<3, 4, 3, NonFiniteBehavior::kIeee>;
template class MiniFloat<4, 3, 7, NonFiniteBehavior::kIeee>;
template class MiniFloat<4, 3, 7, NonFiniteBehavior::kFn>;
template class MiniFloat<4, 3, 11, NonFiniteBehavior::kFnuz>;
template class MiniFloat<4, 3, 8, NonFiniteBehavior::kFnuz>;
template class MiniFloat<5, 2, 15, NonFiniteBehavior::kIeee>;
template class MiniFloat<5, 2, 16, NonFiniteBehavior::kFnuz>;
template class MiniFloat<8, 0, 127, NonFiniteBehavior::kScale>;

}  // namespace hlokit
