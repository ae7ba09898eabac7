// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/tpu_calls.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kConcat = "ConcatBitcast", kSplitLow = "X64SplitLow", kSplitHigh = "X64SplitHigh",
                           kCombine = "X64Combine";

absl::Status Incompatible(std::string_view target, std::string_view takes) {
  return absl::InvalidArgumentError(StrCat("operands and results are incompatible with the custom-call target \"",
                                           target, "\", which takes ", takes));
}

// ---- 64-bit numbers in two parts ----

bool IsWide(ElementType type) {
  return type == ElementType::kS64 || type == ElementType::kU64 || type == ElementType::kF64 ||
         type == ElementType::kC128;
}

// Returns true if `part` is a type of half the size for this type.
bool IsPartOf(ElementType part, ElementType wide) {
  if (wide == ElementType::kF64) return part == ElementType::kF32;
  if (wide == ElementType::kC128) return part == ElementType::kC64;
  return IsWide(wide) && (part == ElementType::kS32 || part == ElementType::kU32);
}

bool SameSizes(Shape a, Shape b) { return a.IsArray() && b.IsArray() && a.dims() == b.dims(); }

// Numbers of 64 bits in the elements of an array.
int64_t WideNumbers(Shape array) {
  return array.element_count() * (array.element_type() == ElementType::kC128 ? 2 : 1);
}

template <typename T>
T Load(const std::byte* from, int64_t index) {
  T value;
  std::memcpy(&value, from + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* to, int64_t index, T value) {
  std::memcpy(to + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

absl::Status Split(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                   bool high) {
  const bool fits = operands.size() == 1 && results.size() == 1 && SameSizes(operands[0].shape, results[0].shape) &&
                    IsPartOf(results[0].shape.element_type(), operands[0].shape.element_type());
  if (!fits) {
    return Incompatible(high ? kSplitHigh : kSplitLow,
                        "s64, u64, f64 or c128 and returns as many s32, u32, f32 or c64");
  }
  const bool floats = !IsInteger(operands[0].shape.element_type());
  const int64_t count = WideNumbers(operands[0].shape);
  for (int64_t n = 0; n < count; ++n) {
    if (floats) {
      const auto x = Load<double>(operands[0].data, n);
      const auto rounded = static_cast<float>(x);
      const float rest = std::isfinite(rounded) ? static_cast<float>(x - static_cast<double>(rounded)) : 0;
      Store(results[0].data, n, high ? rounded : rest);
    } else {
      const auto x = Load<uint64_t>(operands[0].data, n);
      Store(results[0].data, n, static_cast<uint32_t>(high ? x >> 32 : x));
    }
  }
  return absl::OkStatus();
}

absl::Status SplitLow(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                      std::string_view) {
  return Split(operands, results, false);
}

absl::Status SplitHigh(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                       std::string_view) {
  return Split(operands, results, true);
}

absl::Status Combine(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                     std::string_view) {
  bool fits = operands.size() == 2 && results.size() == 1;
  for (const CustomCallOperand& part : operands) {
    fits = fits && SameSizes(part.shape, results[0].shape) &&
           IsPartOf(part.shape.element_type(), results[0].shape.element_type());
  }
  if (!fits) return Incompatible(kCombine, "low and high parts, s32, u32, f32 or c64, and returns 64-bit numbers");
  const bool floats = !IsInteger(results[0].shape.element_type());
  const int64_t count = WideNumbers(results[0].shape);
  for (int64_t n = 0; n < count; ++n) {
    if (floats) {
      Store(results[0].data, n,
            static_cast<double>(Load<float>(operands[1].data, n)) +
                static_cast<double>(Load<float>(operands[0].data, n)));
    } else {
      Store(results[0].data, n,
            uint64_t{Load<uint32_t>(operands[1].data, n)} << 32 | Load<uint32_t>(operands[0].data, n));
    }
  }
  return absl::OkStatus();
}

// ---- arrays of slices ----

// Returns the dimension along which the operands make up the result; nullopt if there is none.
std::optional<int64_t> ConcatDimension(const std::vector<Shape>& parts, Shape whole) {
  if (parts.empty() || !whole.IsArray()) return std::nullopt;
  for (Shape part : parts) {
    if (!part.IsArray() || part.rank() != whole.rank() || part.element_type() != whole.element_type()) {
      return std::nullopt;
    }
  }
  for (int64_t d = 0; d < whole.rank(); ++d) {
    int64_t size = 0;
    bool others = true;
    for (Shape part : parts) {
      size = SaturatingAdd(size, part.dim(d));
      for (int64_t e = 0; e < whole.rank(); ++e) others = others && (e == d || part.dim(e) == whole.dim(e));
    }
    if (others && size == whole.dim(d)) return d;
  }
  return std::nullopt;
}

// Returns the start of an asynchronous operation, or another value as it is.
Instruction StartOf(Instruction value) {
  while (HasTrait(value.opcode(), kGenericAsync) && !HasTrait(value.opcode(), kStartsAsync)) value = value.operand(0);
  return value;
}

// Returns the slice that is the value, or that an asynchronous operation makes of its operand; invalid if there is
// none.
Instruction SliceOf(Instruction value) {
  value = StartOf(value);
  if (HasTrait(value.opcode(), kGenericAsync)) {
    const Computation wrapped = value.computation_attr(Attr::kCalls);
    value = wrapped.valid() ? wrapped.root() : Instruction();
  }
  return value.valid() && value.opcode() == Opcode::kSlice ? value : Instruction();
}

// Returns the array of which a slice, found by SliceOf, is part.
Instruction SlicedArray(Instruction value) {
  value = StartOf(value);
  return value.operand_count() > 0 ? value.operand(0) : Instruction();
}

// A constant or an iota may have been copied for each of its users.
bool IsSameArray(Instruction a, Instruction b) {
  if (a == b) return true;
  if (a.opcode() != b.opcode() || a.shape() != b.shape()) return false;
  if (a.opcode() == Opcode::kConstant) return a.literal_id() == b.literal_id();
  return a.opcode() == Opcode::kIota && a.int_attr(Attr::kIotaDimension) == b.int_attr(Attr::kIotaDimension);
}

// Returns the operands of a ConcatBitcast in the order of their places: by the slices, if they are those of one array
// and cover it without gaps, else as given.
std::vector<size_t> OrderOfParts(Instruction call, int64_t dimension) {
  std::vector<size_t> order(static_cast<size_t>(call.operand_count()));
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> given = order;
  std::vector<int64_t> starts, limits;
  for (Instruction operand : call.operands()) {
    const Instruction slice = SliceOf(operand);
    if (!slice.valid() || !IsSameArray(SlicedArray(operand), SlicedArray(call.operand(0)))) return given;
    const SliceView view = SliceView::Of(AttrReader(slice));
    if (dimension >= view.rank() || view.stride(dimension) != 1) return given;
    starts.push_back(view.start(dimension));
    limits.push_back(view.limit(dimension));
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return starts[a] < starts[b]; });
  for (size_t k = 1; k < order.size(); ++k) {
    if (starts[order[k]] != limits[order[k - 1]]) return given;
  }
  return order;
}

CustomCallFunction ConcatFor(Instruction call) {
  std::vector<Shape> parts;
  for (Instruction operand : call.operands()) parts.push_back(operand.shape());
  const std::optional<int64_t> dimension = ConcatDimension(parts, call.shape());
  const std::vector<size_t> order = dimension ? OrderOfParts(call, *dimension) : std::vector<size_t>();
  return [dimension, order](absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                            std::string_view) {
    if (!dimension || operands.size() != order.size() || results.size() != 1) {
      return Incompatible(kConcat, "parts of an array along one dimension and returns the array");
    }
    const Shape whole = results[0].shape;
    if (whole.element_count() == 0) return absl::OkStatus();
    const auto bytes_from = [](Shape array, int64_t first) {
      int64_t bytes = BytesOf(array.element_type());
      for (int64_t d = first; d < array.rank(); ++d) bytes *= array.dim(d);
      return bytes;
    };
    int64_t outer = 1;
    for (int64_t d = 0; d < *dimension; ++d) outer *= whole.dim(d);
    const int64_t stride = bytes_from(whole, *dimension);
    int64_t offset = 0;
    for (size_t k : order) {
      const int64_t run = bytes_from(operands[k].shape, *dimension);
      for (int64_t o = 0; run > 0 && o < outer; ++o) {
        std::memcpy(results[0].data + o * stride + offset, operands[k].data + o * run, static_cast<size_t>(run));
      }
      offset += run;
    }
    return absl::OkStatus();
  };
}

}  // namespace

std::vector<std::string_view> TpuCallTargets() { return {kConcat, kSplitHigh, kSplitLow, kCombine}; }

CustomCallFunction TpuCallFor(Instruction call) {
  const std::string_view target = call.string_attr(Attr::kCustomCallTarget);
  if (target == kSplitLow) return SplitLow;
  if (target == kSplitHigh) return SplitHigh;
  if (target == kCombine) return Combine;
  return target == kConcat ? ConcatFor(call) : CustomCallFunction();
}

}  // namespace hlokit::interp
