// SPDX-License-Identifier: Apache-2.0
#include "pjrt/values/buffer_type.h"

#include <iterator>

#include "ir/core/str_cat.h"

namespace hlokit::pjrt {
namespace {

// By number, from PRED on.
constexpr ElementType kBufferTypes[] = {
    ElementType::kPred,       ElementType::kS8,         ElementType::kS16,
    ElementType::kS32,        ElementType::kS64,        ElementType::kU8,
    ElementType::kU16,        ElementType::kU32,        ElementType::kU64,
    ElementType::kF16,        ElementType::kF32,        ElementType::kF64,
    ElementType::kBF16,       ElementType::kC64,        ElementType::kC128,
    ElementType::kF8E5M2,     ElementType::kF8E4M3FN,   ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3FNUZ, ElementType::kS4,
    ElementType::kU4,         ElementType::kToken,      ElementType::kS2,
    ElementType::kU2,         ElementType::kF8E4M3,     ElementType::kF8E3M4,
    ElementType::kF8E8M0FNU,  ElementType::kF4E2M1FN,   ElementType::kS1,
    ElementType::kU1,
};

}  // namespace

PJRT_Buffer_Type BufferTypeOf(ElementType type) {
  for (size_t i = 0; i < std::size(kBufferTypes); ++i) {
    if (kBufferTypes[i] == type) return static_cast<PJRT_Buffer_Type>(i + 1);
  }
  return PJRT_Buffer_Type_INVALID;
}

absl::StatusOr<ElementType> ElementTypeOf(PJRT_Buffer_Type type) {
  const int number = type;
  if (number >= 1 && number <= static_cast<int>(std::size(kBufferTypes))) return kBufferTypes[number - 1];
  if (number > 0 && number <= PJRT_Buffer_Type_LAST) {
    return absl::UnimplementedError(StrCat("buffers of type ", number, " (a 6-bit float)"));
  }
  return absl::InvalidArgumentError(StrCat("there is no buffer type ", number));
}

}  // namespace hlokit::pjrt
