// SPDX-License-Identifier: Apache-2.0
// Select, clamp and compare.
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "interp/exact/kernels/element_loop.h"
#include "interp/exact/program/element_op.h"

namespace hlokit::interp {
namespace {

struct Bytes16 {
  uint64_t low;
  uint64_t high;
};

template <typename T>
void SelectLoop(void* out, const void* a, const void* b, const void* c, int64_t n, int64_t) {
  T* r = static_cast<T*>(out);
  const uint8_t* predicate = static_cast<const uint8_t*>(a);
  const T* on_true = static_cast<const T*>(b);
  const T* on_false = static_cast<const T*>(c);
  ForEachElement(n, [=](int64_t i) { r[i] = predicate[i] != 0 ? on_true[i] : on_false[i]; });
}

// Returns the first NaN in the order low, value, high.
template <typename T>
void ClampLoop(void* out, const void* a, const void* b, const void* c, int64_t n, int64_t) {
  T* r = static_cast<T*>(out);
  const T* low = static_cast<const T*>(a);
  const T* value = static_cast<const T*>(b);
  const T* high = static_cast<const T*>(c);
  ForEachElement(n, [=](int64_t i) {
    const T l = low[i];
    const T v = value[i];
    const T h = high[i];
    const T at_least = l >= v || l != l ? l : v;
    r[i] = at_least <= h || at_least != at_least ? at_least : h;
  });
}

// Returns the bits of a float as an integer in IEEE 754 totalOrder: -NaN < -inf < ... < -0 < +0 < ... < +NaN.
template <typename T>
auto TotalOrderKey(T v) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const Bits bits = std::bit_cast<Bits>(v);
  using Unsigned = std::make_unsigned_t<Bits>;
  const Unsigned flip = static_cast<Unsigned>(bits >> (8 * sizeof(T) - 1)) >> 1;
  return static_cast<Bits>(static_cast<Unsigned>(bits) ^ flip);
}

template <ComparisonDirection kDirection, typename T>
bool Holds(T a, T b) {
  if constexpr (kDirection == ComparisonDirection::kEq) return a == b;
  if constexpr (kDirection == ComparisonDirection::kNe) return a != b;
  if constexpr (kDirection == ComparisonDirection::kGe) return a >= b;
  if constexpr (kDirection == ComparisonDirection::kGt) return a > b;
  if constexpr (kDirection == ComparisonDirection::kLe) return a <= b;
  if constexpr (kDirection == ComparisonDirection::kLt) return a < b;
}

template <ComparisonDirection kDirection, bool kTotalOrder, typename T>
void CompareLoop(void* out, const void* a, const void* b, const void*, int64_t n, int64_t) {
  uint8_t* r = static_cast<uint8_t*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  ForEachElement(n, [=](int64_t i) {
    if constexpr (kTotalOrder) {
      r[i] = Holds<kDirection>(TotalOrderKey(x[i]), TotalOrderKey(y[i]));
    } else {
      r[i] = Holds<kDirection>(x[i], y[i]);
    }
  });
}

template <bool kTotalOrder, typename T>
ElementFn OrderedCompare(ComparisonDirection direction) {
  static constexpr ElementFn kFns[] = {
      CompareLoop<ComparisonDirection::kEq, kTotalOrder, T>, CompareLoop<ComparisonDirection::kNe, kTotalOrder, T>,
      CompareLoop<ComparisonDirection::kGe, kTotalOrder, T>, CompareLoop<ComparisonDirection::kGt, kTotalOrder, T>,
      CompareLoop<ComparisonDirection::kLe, kTotalOrder, T>, CompareLoop<ComparisonDirection::kLt, kTotalOrder, T>};
  return kFns[static_cast<size_t>(direction)];
}

template <typename T>
ElementFn ComplexCompare(ComparisonDirection direction) {
  if (direction == ComparisonDirection::kEq) return CompareLoop<ComparisonDirection::kEq, false, T>;
  if (direction == ComparisonDirection::kNe) return CompareLoop<ComparisonDirection::kNe, false, T>;
  return nullptr;
}

template <typename T>
void RegisterClamp(ElementFnTable* t, ElementType type) {
  t->Set(Opcode::kClamp, type, ClampLoop<T>, 1);
}

}  // namespace

ElementFn CompareFn(ComparisonDirection direction, bool total_order, ElementType type) {
  if (direction > ComparisonDirection::kLt) return nullptr;
  switch (type) {
    case ElementType::kPred:
    case ElementType::kU8:
      return OrderedCompare<false, uint8_t>(direction);
    case ElementType::kS8:
      return OrderedCompare<false, int8_t>(direction);
    case ElementType::kS16:
      return OrderedCompare<false, int16_t>(direction);
    case ElementType::kU16:
      return OrderedCompare<false, uint16_t>(direction);
    case ElementType::kS32:
      return OrderedCompare<false, int32_t>(direction);
    case ElementType::kU32:
      return OrderedCompare<false, uint32_t>(direction);
    case ElementType::kS64:
      return OrderedCompare<false, int64_t>(direction);
    case ElementType::kU64:
      return OrderedCompare<false, uint64_t>(direction);
    case ElementType::kF32:
      return total_order ? OrderedCompare<true, float>(direction) : OrderedCompare<false, float>(direction);
    case ElementType::kF64:
      return total_order ? OrderedCompare<true, double>(direction) : OrderedCompare<false, double>(direction);
    case ElementType::kC64:
      return ComplexCompare<std::complex<float>>(direction);
    case ElementType::kC128:
      return ComplexCompare<std::complex<double>>(direction);
    default:
      return nullptr;
  }
}

void RegisterSelection(ElementFnTable* t) {
  RegisterClamp<int8_t>(t, ElementType::kS8);
  RegisterClamp<int16_t>(t, ElementType::kS16);
  RegisterClamp<int32_t>(t, ElementType::kS32);
  RegisterClamp<int64_t>(t, ElementType::kS64);
  RegisterClamp<uint8_t>(t, ElementType::kPred);
  RegisterClamp<uint8_t>(t, ElementType::kU8);
  RegisterClamp<uint16_t>(t, ElementType::kU16);
  RegisterClamp<uint32_t>(t, ElementType::kU32);
  RegisterClamp<uint64_t>(t, ElementType::kU64);
  RegisterClamp<float>(t, ElementType::kF32);
  RegisterClamp<double>(t, ElementType::kF64);

  // Select moves bytes: registered by the storage type of the values.
  for (size_t i = 0; i < kElementTypeCount; ++i) {
    const ElementType type = static_cast<ElementType>(i);
    switch (BytesOf(type)) {
      case 1:
        t->Set(Opcode::kSelect, type, SelectLoop<uint8_t>, 1);
        break;
      case 2:
        t->Set(Opcode::kSelect, type, SelectLoop<uint16_t>, 1);
        break;
      case 4:
        t->Set(Opcode::kSelect, type, SelectLoop<uint32_t>, 1);
        break;
      case 8:
        t->Set(Opcode::kSelect, type, SelectLoop<uint64_t>, 1);
        break;
      case 16:
        t->Set(Opcode::kSelect, type, SelectLoop<Bytes16>, 1);
        break;
    }
  }
}

}  // namespace hlokit::interp
