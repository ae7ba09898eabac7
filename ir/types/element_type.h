// SPDX-License-Identifier: Apache-2.0
// Types of array elements, and the kinds of shape that are not arrays (token, opaque, tuple, buffer).
#ifndef HLOKIT_IR_TYPES_ELEMENT_TYPE_H_
#define HLOKIT_IR_TYPES_ELEMENT_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hlokit {

enum class ElementType : uint8_t {
#define ELEMENT_TYPE(name, ...) k##name,
#include "ir/types/element_types.def"
};

enum class ElementClass : uint8_t { kPred, kSigned, kUnsigned, kFloat, kComplex, kToken, kOpaque, kTuple, kBuffer };

struct ElementTypeInfo {
  std::string_view text;  // "bf16"
  ElementClass element_class;
  uint16_t bits;              // per element; 0 if not an array type
  std::string_view xla_name;  // "BF16"
};

inline constexpr ElementTypeInfo kElementTypeInfo[] = {
#define ELEMENT_TYPE(name, text, element_class, bits, xla_name) {text, ElementClass::element_class, bits, xla_name},
#include "ir/types/element_types.def"
};

inline constexpr size_t kElementTypeCount = sizeof(kElementTypeInfo) / sizeof(kElementTypeInfo[0]);

constexpr const ElementTypeInfo& InfoOf(ElementType t) { return kElementTypeInfo[static_cast<size_t>(t)]; }
constexpr std::string_view ToString(ElementType t) { return InfoOf(t).text; }
constexpr ElementClass ClassOf(ElementType t) { return InfoOf(t).element_class; }
constexpr int BitsOf(ElementType t) { return InfoOf(t).bits; }

// Returns the bytes per element in a Literal, where types narrower than a byte take a whole one.
constexpr int64_t BytesOf(ElementType t) { return (InfoOf(t).bits + 7) / 8; }

constexpr bool IsArrayType(ElementType t) { return InfoOf(t).bits != 0; }
constexpr bool IsSigned(ElementType t) { return ClassOf(t) == ElementClass::kSigned; }
constexpr bool IsUnsigned(ElementType t) { return ClassOf(t) == ElementClass::kUnsigned; }
constexpr bool IsInteger(ElementType t) { return IsSigned(t) || IsUnsigned(t); }
constexpr bool IsFloat(ElementType t) { return ClassOf(t) == ElementClass::kFloat; }
constexpr bool IsComplex(ElementType t) { return ClassOf(t) == ElementClass::kComplex; }

// Returns the type named `text` in HLO text, e.g. "f8e4m3fn".
std::optional<ElementType> ElementTypeFromText(std::string_view text);

// Returns f32 for c64 and f64 for c128; other types are their own component.
constexpr ElementType ComponentType(ElementType t) {
  return t == ElementType::kC64 ? ElementType::kF32 : t == ElementType::kC128 ? ElementType::kF64 : t;
}

}  // namespace hlokit

#endif  // HLOKIT_IR_TYPES_ELEMENT_TYPE_H_
