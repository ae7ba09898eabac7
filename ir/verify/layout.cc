// SPDX-License-Identifier: Apache-2.0
// Verifies layouts after layout assignment: forwarded values keep theirs, and elementwise operations do not change
// them.
#include <array>
#include <initializer_list>

#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "ir/verify/context.h"

namespace hlokit::verify_internal {
namespace {

constexpr DiagnosticKind kLayoutKind = DiagnosticKind::kLayout;

bool KeepsLayout(Opcode opcode) {
  return (HasTrait(opcode, kElementwise) || HasTrait(opcode, kKeepsLayout)) && opcode != Opcode::kCopy;
}

// Returns true if operands and result may have different element sizes.
bool MayChangeElementSize(Opcode opcode) {
  static constexpr OpcodeSet kOtherTypes = {Opcode::kConvert, Opcode::kCompare, Opcode::kIsFinite, Opcode::kSelect,
                                            Opcode::kScatter};
  return kOtherTypes.Contains(opcode);
}

// Compares layouts, ignoring tiles and memory spaces.
bool SameOrder(Opcode opcode, const LayoutRecord& a, const LayoutRecord& b) {
  if (&a == &b) return true;
  if (a.minor_to_major != b.minor_to_major) return false;
  static const LayoutExtras* const kNone = new LayoutExtras;
  const LayoutExtras& x = a.extras == nullptr ? *kNone : *a.extras;
  const LayoutExtras& y = b.extras == nullptr ? *kNone : *b.extras;
  return (x.element_size_in_bits == y.element_size_in_bits || MayChangeElementSize(opcode)) &&
         x.split_configs == y.split_configs && x.dim_level_types == y.dim_level_types &&
         x.tail_padding_alignment == y.tail_padding_alignment;
}

void CheckKeptOrder(VerifierContext& v, Instruction i) {
  const Shape result = i.shape();
  if (!result.IsArray() || !result.has_layout()) return;
  for (Instruction operand : i.operands()) {
    const Shape given = operand.shape();
    if (!given.IsArray() || given.rank() != result.rank() || !given.has_layout()) continue;
    if (SameOrder(i.opcode(), *result.layout(), *given.layout())) continue;
    v.Report(i, kLayoutKind,
             StrCat(i.opcode_text(), " cannot change the layout of `", operand.name(), "`, ", ShapeText(given, true),
                    ", to ", ShapeText(result, true)));
    return;
  }
}

void CheckPassedOn(VerifierContext& v, Instruction i, Shape given) {
  if (i.shape() == given) return;
  v.Report(i, kLayoutKind,
           StrCat("is ", ShapeText(i.shape(), true), "; ", i.opcode_text(), " forwards ", ShapeText(given, true)));
}

void CheckTuple(VerifierContext& v, Instruction i) {
  for (int64_t n = 0; n < i.operand_count() && n < i.shape().tuple_size(); ++n) {
    if (i.operand(n).shape() == i.shape().element(n)) continue;
    v.Report(i, kLayoutKind,
             StrCat("element ", n, " is ", ShapeText(i.shape().element(n), true), "; operand ", n, " is ",
                    ShapeText(i.operand(n).shape(), true)));
    return;
  }
}

void CheckElement(VerifierContext& v, Instruction i) {
  const int64_t index = i.int_attr(Attr::kIndex);
  const Shape tuple = i.operand(0).shape();
  if (tuple.IsTuple() && index >= 0 && index < tuple.tuple_size()) CheckPassedOn(v, i, tuple.element(index));
}

void CheckBitcast(VerifierContext& v, Instruction i) {
  if (!i.shape().IsArray() || !i.operand(0).shape().IsArray()) return;
  const int64_t from = ByteSize(i.operand(0).shape());
  const int64_t to = ByteSize(i.shape());
  if (from == to) return;
  v.Report(i, kLayoutKind,
           StrCat("is ", ShapeText(i.shape(), true), " of ", to, " bytes; its operand is ",
                  ShapeText(i.operand(0).shape(), true), " of ", from, " bytes"));
}

// Checks that values keep their layout when passed into and out of a computation.
void CheckCallLayouts(VerifierContext& v, Instruction i) {
  int64_t branch = 0;
  i.ForEachCallee([&](Computation callee) {
    const bool condition = i.opcode() == Opcode::kWhile && callee == i.computation_attr(Attr::kCondition);
    ++branch;
    for (int64_t n = 0; n < callee.parameter_count(); ++n) {
      const int64_t from = i.opcode() == Opcode::kConditional ? branch : n;
      if (from >= i.operand_count() || i.operand(from).shape() == callee.parameter(n).shape()) continue;
      v.Report(i, kLayoutKind,
               StrCat("passes operand ", from, ", ", ShapeText(i.operand(from).shape(), true), ", as parameter ", n,
                      " of `", callee.name(), "`, ", ShapeText(callee.parameter(n).shape(), true)));
    }
    if (!condition && callee.root().shape() != i.shape()) {
      v.Report(i, kLayoutKind,
               StrCat("is ", ShapeText(i.shape(), true), "; `", callee.name(), "` returns ",
                      ShapeText(callee.root().shape(), true)));
    }
  });
}

}  // namespace

std::string LayoutFault(const LayoutRecord& layout) {
  if (layout.extras == nullptr) return "";
  const LayoutExtras& x = *layout.extras;
  bool sparse = false;
  for (size_t d = 0; d < x.dim_level_types.size(); ++d) {
    const bool dense = x.dim_level_types[d] == 'D';
    sparse |= !dense;
    if (dense && d < x.dim_flags.size() && x.dim_flags[d] != 0) {
      return StrCat("dimension ", d, " is dense, which + or ~ contradict");
    }
  }
  if (sparse && !x.tiles.empty()) return "a sparse layout cannot have tiles";
  if (!sparse && x.physical_shape.valid()) return "a dense layout cannot have a physical shape";
  if (!sparse && x.index_primitive_type) return "a dense layout cannot have an index type";
  if (!sparse && x.pointer_primitive_type) return "a dense layout cannot have a pointer type";
  if (x.tail_padding_alignment <= 0) {
    return StrCat("the alignment of the tail padding is ", x.tail_padding_alignment, "; expected at least 1");
  }
  if (x.element_size_in_bits < 0) return StrCat("the element size is ", x.element_size_in_bits, " bits");
  return "";
}

bool SameLayoutIgnoringMemorySpace(Shape a, Shape b) {
  if (!a.IsArray() || !b.IsArray() || !a.has_layout() || !b.has_layout() || a.layout() == b.layout()) return true;
  if (a.layout()->minor_to_major != b.layout()->minor_to_major) return false;
  const auto extras_of = [](Shape s) {
    LayoutExtras extras = s.layout()->extras == nullptr ? LayoutExtras() : *s.layout()->extras;
    extras.memory_space = 0;
    return extras;
  };
  return extras_of(a) == extras_of(b);
}

void CheckLayoutFields(VerifierContext& v, Instruction i) {
  std::vector<Shape> stack = {i.shape()};
  while (!stack.empty()) {
    const Shape shape = stack.back();
    stack.pop_back();
    if (shape.IsTuple()) {
      for (Shape e : shape.elements()) {
        if (!v.HasInvalidLayout(e)) continue;
        stack.push_back(e);
        break;
      }
      continue;
    }
    v.Report(i, kLayoutKind, StrCat("has ", ShapeText(shape, true), ": ", LayoutFault(*shape.layout())));
  }
}

void CheckLayouts(VerifierContext& v, Instruction i) {
  using Check = void (*)(VerifierContext&, Instruction);
  static constexpr OpcodeRow<Check> kRows[] = {
      {Opcode::kTuple, &CheckTuple},
      {Opcode::kGetTupleElement, &CheckElement},
      {Opcode::kOptimizationBarrier,
       [](VerifierContext& v, Instruction i) { CheckPassedOn(v, i, i.operand(0).shape()); }},
      {Opcode::kBitcast, &CheckBitcast},
  };
  static constexpr auto kChecks = MakeOpcodeHandlers<Check>(kRows);
  const Opcode opcode = i.opcode();
  if (KeepsLayout(opcode)) CheckKeptOrder(v, i);
  if (HasTrait(opcode, kControlFlow)) CheckCallLayouts(v, i);
  if (const Check check = kChecks[static_cast<size_t>(opcode)]; check != nullptr) check(v, i);
}

}  // namespace hlokit::verify_internal
