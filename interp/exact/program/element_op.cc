// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/program/element_op.h"

#include <algorithm>
#include <cstring>

#include "interp/exact/program/element_width.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

ElementFnTable::ElementFnTable() {
  RegisterIntegerOps(this);
  RegisterFloatOps(this);
  RegisterFloatMath(this);
  RegisterComplexOps(this);
  RegisterSelection(this);
}

const ElementFnTable& ElementFnTable::Get() {
  static const ElementFnTable* const table = new ElementFnTable();
  return *table;
}

namespace {

// Copies the only operand; `bytes` per element.
void CopyElements(void* out, const void* a, const void*, const void*, int64_t n, int64_t bytes) {
  if (out != a) std::memcpy(out, a, static_cast<size_t>(n * bytes));
}

std::string TypeError(Opcode opcode, absl::Span<const ElementType> operands, ElementType result) {
  std::string message = StrCat("cannot evaluate ", ToString(opcode), " of (");
  for (size_t i = 0; i < operands.size(); ++i) StrAppend(&message, i == 0 ? "" : ", ", ToString(operands[i]));
  StrAppend(&message, ") to ", ToString(result));
  return message;
}

// Gathers `n` elements of `bytes` bytes with a stride (in elements) into contiguous memory.
void GatherElements(std::byte* to, const std::byte* from, int64_t stride, int64_t n, int bytes) {
  const auto copy = [=]<typename T>(T) {
    T* r = reinterpret_cast<T*>(to);
    const T* x = reinterpret_cast<const T*>(from);
    if (stride == 0) {
      std::fill_n(r, n, *x);
    } else {
      for (int64_t i = 0; i < n; ++i) r[i] = x[i * stride];
    }
  };
  VisitWidth(bytes, copy);
}

}  // namespace

std::optional<ElementOp> ElementOp::Create(Opcode opcode, const AttrReader& attrs,
                                           absl::Span<const ElementType> operands, ElementType result,
                                           std::string* error) {
  ElementOp op;
  const auto fail = [&]() -> std::optional<ElementOp> {
    *error = TypeError(opcode, operands, result);
    return std::nullopt;
  };
  if (operands.empty() || operands.size() > kMaxOperands || !IsArrayType(result)) return fail();
  for (ElementType t : operands) {
    if (!IsArrayType(t)) return fail();
  }
  op.arity_ = static_cast<uint8_t>(operands.size());
  op.out_bytes_ = static_cast<uint8_t>(BytesOf(result));
  for (size_t i = 0; i < operands.size(); ++i) op.in_bytes_[i] = static_cast<uint8_t>(BytesOf(operands[i]));

  const auto set_conversions = [&] {
    for (size_t i = 0; i < operands.size(); ++i) op.load_[i] = LoadFn(operands[i]);
    op.store_ = StoreFn(result);
    op.direct_ = op.store_ == nullptr && op.load_[0] == nullptr && op.load_[1] == nullptr && op.load_[2] == nullptr;
  };

  const ElementType first = operands[0];
  const ElementType compute = ComputeType(first);
  if (opcode == Opcode::kCopy || (opcode == Opcode::kConvert && first == result) ||
      (opcode == Opcode::kBitcastConvert && BytesOf(first) == BytesOf(result))) {
    op.fn_ = CopyElements;
    op.param_ = BytesOf(result);
    op.identity_ = true;
    return op;
  }
  if (opcode == Opcode::kSelect) {
    if (operands.size() != 3 || first != ElementType::kPred || operands[1] != result || operands[2] != result)
      return fail();
    op.fn_ = ElementFnTable::Get().At(opcode, result).fn;
    return op;
  }
  if (opcode == Opcode::kConvert) {
    set_conversions();
    const ElementType to = ComputeType(result);
    op.fn_ = ConvertFnOf(compute, to);
    op.cost_ = 1;
    // Float results: true if another rounding to a narrower type follows. Integer results: their width.
    op.param_ = IsFloat(result) ? (op.store_ != nullptr) : BitsOf(result);
    if (op.fn_ == nullptr) return fail();
    return op;
  }
  if (opcode == Opcode::kCompare) {
    if (operands.size() != 2 || operands[1] != first || result != ElementType::kPred) return fail();
    set_conversions();
    const auto direction = attrs.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
    const auto type = attrs.enum_attr(Attr::kCompareType, ComparisonType::kFloat);
    op.fn_ = CompareFn(direction, type == ComparisonType::kTotalOrder, compute);
    if (op.fn_ == nullptr) return fail();
    return op;
  }

  for (ElementType t : operands) {
    if (t != first) return fail();
  }
  const ElementFnTable::Entry& entry = ElementFnTable::Get().At(opcode, compute);
  if (entry.fn == nullptr) return fail();
  // Result type of the functions in the table; see the Register functions.
  ElementType expected = first;
  if (opcode == Opcode::kIsFinite) expected = ElementType::kPred;
  if (opcode == Opcode::kAbs || opcode == Opcode::kReal || opcode == Opcode::kImag) expected = ComponentType(first);
  if (opcode == Opcode::kComplex) {
    expected = first == ElementType::kF32 ? ElementType::kC64 : first == ElementType::kF64 ? ElementType::kC128 : first;
  }
  if (result != expected) return fail();
  op.fn_ = entry.fn;
  op.cost_ = entry.cost;
  set_conversions();
  if (op.store_ != nullptr || op.load_[0] != nullptr) op.cost_ = static_cast<uint8_t>(std::min(255, op.cost_ + 2));
  op.param_ = BitsOf(first);
  if (opcode == Opcode::kReducePrecision) {
    int64_t exponent = attrs.int_attr(Attr::kExponentBits);
    int64_t mantissa = attrs.int_attr(Attr::kMantissaBits);
    if (exponent < 1 || exponent > 64 || mantissa < 0) return fail();
    // Reductions to at least the type's own precision are the identity; the function operates on the wider compute
    // type.
    struct Widths {
      ElementType type;
      int64_t exponent, mantissa;
    };
    static constexpr Widths kWidths[] = {
        {ElementType::kBF16, 8, 7},       {ElementType::kF16, 5, 10},       {ElementType::kF8E5M2, 5, 2},
        {ElementType::kF8E4M3, 4, 3},     {ElementType::kF8E3M4, 3, 4},     {ElementType::kF8E4M3FN, 4, 3},
        {ElementType::kF8E4M3FNUZ, 4, 3}, {ElementType::kF8E5M2FNUZ, 5, 2}, {ElementType::kF8E4M3B11FNUZ, 4, 3}};
    for (const Widths& w : kWidths) {
      if (w.type != first) continue;
      if (exponent >= w.exponent) exponent = 63;
      if (mantissa >= w.mantissa) mantissa = 63;
    }
    op.param_ = exponent << 8 | std::min<int64_t>(mantissa, 63);
  }
  return op;
}

void ElementOp::RunInBlocks(std::byte* out, const std::byte* const* in, const int64_t* strides, int64_t n) const {
  constexpr int64_t kBytes = kBlock * 16;
  alignas(64) std::byte gathered[kMaxOperands][kBytes];
  alignas(64) std::byte loaded[kMaxOperands][kBytes];
  alignas(64) std::byte result[kBytes];
  const int64_t block = std::min(n, kBlock);
  const std::byte* ready[kMaxOperands] = {};  // operands that are the same for every block
  for (int i = 0; i < arity_; ++i) {
    if (strides[i] != 0 && n > 1) continue;
    const std::byte* x = in[i];
    if (n > 1) {
      GatherElements(gathered[i], x, 0, block, in_bytes_[i]);
      x = gathered[i];
    }
    if (load_[i] != nullptr) {
      load_[i](loaded[i], x, block);
      x = loaded[i];
    }
    ready[i] = x;
  }
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(n - begin, kBlock);
    const std::byte* x[kMaxOperands] = {};
    for (int i = 0; i < arity_; ++i) {
      if (ready[i] != nullptr) {
        x[i] = ready[i];
        continue;
      }
      x[i] = in[i] + begin * strides[i] * in_bytes_[i];
      if (strides[i] != 1) {
        GatherElements(gathered[i], x[i], strides[i], count, in_bytes_[i]);
        x[i] = gathered[i];
      }
      if (load_[i] != nullptr) {
        load_[i](loaded[i], x[i], count);
        x[i] = loaded[i];
      }
    }
    std::byte* to = out + begin * out_bytes_;
    if (store_ == nullptr) {
      fn_(to, x[0], x[1], x[2], count, param_);
    } else {
      fn_(result, x[0], x[1], x[2], count, param_);
      store_(to, result, count);
    }
  }
}

}  // namespace hlokit::interp
