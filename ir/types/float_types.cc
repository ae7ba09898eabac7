// SPDX-License-Identifier: Apache-2.0
#include "ir/types/float_types.h"

namespace hlokit {

template <int kExponentBits, int kMantissaBits, int kBias, FloatSpecials kSpecials>
constinit const std::array<float, 256> MiniFloat<kExponentBits, kMantissaBits, kBias, kSpecials>::kFloats = DecodeAll();

template class MiniFloat<2, 1, 1, FloatSpecials::kFinite>;
template class MiniFloat<3, 4, 3, FloatSpecials::kIeee>;
template class MiniFloat<4, 3, 7, FloatSpecials::kIeee>;
template class MiniFloat<4, 3, 7, FloatSpecials::kFn>;
template class MiniFloat<4, 3, 11, FloatSpecials::kFnuz>;
template class MiniFloat<4, 3, 8, FloatSpecials::kFnuz>;
template class MiniFloat<5, 2, 15, FloatSpecials::kIeee>;
template class MiniFloat<5, 2, 16, FloatSpecials::kFnuz>;
template class MiniFloat<8, 0, 127, FloatSpecials::kScale>;

}  // namespace hlokit
