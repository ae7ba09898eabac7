// SPDX-License-Identifier: Apache-2.0
// One elementwise operation on contiguous blocks of elements, for a given opcode and element types. Elementwise
// instructions and scalar computations (the function of a reduce, a sort's comparator, ...) both consist of these.
//
// Compute functions exist only for pred, 8-bit to 64-bit integers, f32, f64, c64 and c128. Narrower floats are widened
// to f32 before and rounded once after; integers narrower than a byte are computed in a byte and wrapped.
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_ELEMENT_OP_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_ELEMENT_OP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// Computes n elements. Unused operands are null. `out` may alias an operand.
using ElementFn = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n, int64_t param);
// Converts n elements between storage and compute type.
using ConvertFn = void (*)(void* to, const void* from, int64_t n);

// Returns the type in which values of `t` are computed.
constexpr ElementType ComputeType(ElementType t) {
  if (IsFloat(t)) return t == ElementType::kF64 ? t : ElementType::kF32;
  if (IsInteger(t) && BitsOf(t) < 8) return IsSigned(t) ? ElementType::kS8 : ElementType::kU8;
  return t;
}

// Returns the conversion from storage to compute type, or back; null if they have the same bytes.
ConvertFn LoadFn(ElementType storage);
ConvertFn StoreFn(ElementType storage);

class ElementOp {
 public:
  static constexpr int kMaxOperands = 3;
  static constexpr int64_t kBlock = 512;

  // Creates the operation of an elementwise opcode. Returns nullopt and sets `error` if these types are unsupported.
  static std::optional<ElementOp> Create(Opcode opcode, const AttrReader& attrs, absl::Span<const ElementType> operands,
                                         ElementType result, std::string* error);

  int arity() const { return arity_; }
  // Applies the operation. Operand i begins at in[i] with stride strides[i] (in elements, 0 allowed); the result is
  // dense and may alias an operand with stride 1.
  void Run(std::byte* out, const std::byte* const* in, const int64_t* strides, int64_t n) const {
    if (direct_ && (n == 1 || AllOnes(strides))) {
      fn_(out, in[0], in[1], in[2], n, param_);
    } else {
      RunInBlocks(out, in, strides, n);
    }
  }
  // Returns a rough cost of one element in nanoseconds, used to split work.
  int cost() const { return cost_; }
  // Returns true if both compute the same function.
  friend bool SameOp(const ElementOp& a, const ElementOp& b) {
    return a.fn_ == b.fn_ && a.store_ == b.store_ && a.param_ == b.param_ && a.arity_ == b.arity_ &&
           a.load_[0] == b.load_[0] && a.load_[1] == b.load_[1] && a.load_[2] == b.load_[2];
  }
  // Returns true if the result is the operand, bit for bit.
  bool identity() const { return identity_; }

 private:
  bool AllOnes(const int64_t* strides) const {
    for (int i = 0; i < arity_; ++i) {
      if (strides[i] != 1) return false;
    }
    return true;
  }
  void RunInBlocks(std::byte* out, const std::byte* const* in, const int64_t* strides, int64_t n) const;

  ElementFn fn_ = nullptr;
  ConvertFn load_[kMaxOperands] = {};
  ConvertFn store_ = nullptr;
  int64_t param_ = 0;
  uint8_t arity_ = 0;
  uint8_t cost_ = 1;
  bool direct_ = true;  // no load_, no store_
  bool identity_ = false;
  uint8_t in_bytes_[kMaxOperands] = {};  // size of a stored element
  uint8_t out_bytes_ = 0;
};

// Compute functions by opcode and compute type of operand 0. Compare and convert, which depend on more, have separate
// look-ups.
class ElementFnTable {
 public:
  static const ElementFnTable& Get();

  struct Entry {
    ElementFn fn = nullptr;
    uint8_t cost = 0;
  };
  const Entry& At(Opcode opcode, ElementType type) const {
    return entries_[static_cast<size_t>(opcode)][static_cast<size_t>(type)];
  }
  void Set(Opcode opcode, ElementType type, ElementFn fn, int cost) {
    entries_[static_cast<size_t>(opcode)][static_cast<size_t>(type)] = {fn, static_cast<uint8_t>(cost)};
  }

 private:
  ElementFnTable();
  Entry entries_[kOpcodeCount][kElementTypeCount];
};

// Fills the rows of one kind of operations; see kernels/element_*.cc.
void RegisterIntegerOps(ElementFnTable* table);
void RegisterFloatOps(ElementFnTable* table);
void RegisterFloatMath(ElementFnTable* table);
void RegisterComplexOps(ElementFnTable* table);
void RegisterSelection(ElementFnTable* table);

// Returns the function for a direction and type, or null.
ElementFn CompareFn(ComparisonDirection direction, bool total_order, ElementType compute_type);
ElementFn ConvertFnOf(ElementType from, ElementType to);  // `param` of the function: bits of an integer result

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_ELEMENT_OP_H_
