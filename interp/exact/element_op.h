// SPDX-License-Identifier: Apache-2.0
// One elementwise operation on contiguous blocks of elements, for a given opcode and element types. Elementwise
// instructions and scalar computations (the function of a reduce, a sort's comparison, ...) are both made of these.
//
// There are compute functions for pred, 8-bit to 64-bit integers, f32, f64, c64 and c128 only. Narrower floats are
// widened to f32 before and rounded once after; integers narrower than a byte are computed in a byte and wrapped.
#ifndef HLOKIT_INTERP_EXACT_ELEMENT_OP_H_
#define HLOKIT_INTERP_EXACT_ELEMENT_OP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode.h"
#include "ir/types/element_type.h"

namespace hlokit::interp {

// Computes n elements; operands the opcode lacks are null. `out` may be one of the operands.
using ElementFn = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n, int64_t param);
// Converts n elements between storage and compute type.
using ConvertFn = void (*)(void* to, const void* from, int64_t n);

// The type that values of `t` are computed in.
constexpr ElementType ComputeType(ElementType t) {
  if (IsFloat(t)) return t == ElementType::kF64 ? t : ElementType::kF32;
  if (IsInteger(t) && BitsOf(t) < 8) return IsSigned(t) ? ElementType::kS8 : ElementType::kU8;
  return t;
}

// Storage -> compute type and back; null where they are the same bytes.
ConvertFn LoadFn(ElementType storage);
ConvertFn StoreFn(ElementType storage);

class ElementOp {
 public:
  static constexpr int kMaxOperands = 3;
  static constexpr int64_t kBlock = 512;

  // The operation of an elementwise opcode; nullopt, and the reason in `error`, if there is none for these types.
  static std::optional<ElementOp> Make(Opcode opcode, const AttrReader& attrs, absl::Span<const ElementType> operands,
                                       ElementType result, std::string* error);

  int arity() const { return arity_; }
  // Operand i starts at in[i] and has stride strides[i] (in elements, 0 allowed); the result is dense. The result may
  // be an operand that has stride 1.
  void Run(std::byte* out, const std::byte* const* in, const int64_t* strides, int64_t n) const {
    if (direct_ && (n == 1 || AllOnes(strides))) {
      fn_(out, in[0], in[1], in[2], n, param_);
    } else {
      RunInBlocks(out, in, strides, n);
    }
  }
  // A rough cost of one element in nanoseconds, to decide how to split work.
  int cost() const { return cost_; }
  // True if both compute the same from the same operands.
  friend bool SameOp(const ElementOp& a, const ElementOp& b) {
    return a.fn_ == b.fn_ && a.store_ == b.store_ && a.param_ == b.param_ && a.arity_ == b.arity_ &&
           a.load_[0] == b.load_[0] && a.load_[1] == b.load_[1] && a.load_[2] == b.load_[2];
  }
  // True if the result is the operand, bit for bit.
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
  uint8_t in_bytes_[kMaxOperands] = {};  // of one element as stored
  uint8_t out_bytes_ = 0;
};

// The compute functions: one for each opcode and compute type of operand 0 (compare and convert, which depend on more,
// have their own look-ups).
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

// Each fills its rows; see kernels/element_*.cc.
void RegisterIntegerOps(ElementFnTable* table);
void RegisterFloatOps(ElementFnTable* table);
void RegisterFloatMath(ElementFnTable* table);
void RegisterComplexOps(ElementFnTable* table);
void RegisterSelection(ElementFnTable* table);

// Functions that depend on an attribute or on two types. Null where there is none.
ElementFn CompareFn(ComparisonDirection direction, bool total_order, ElementType compute_type);
ElementFn ConvertFnOf(ElementType from, ElementType to);  // compute types; param: bits of an integer result

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_ELEMENT_OP_H_
