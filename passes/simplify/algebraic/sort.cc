// SPDX-License-Identifier: Apache-2.0
// Sorts of several arrays, some of them unused.
#include <vector>

#include "passes/core/pass_row.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/simplify/algebraic/rule_passes.h"

namespace hlokit {
namespace {

// Removes the operands whose results are unused and whose elements the comparator does not read.
bool UnusedOperands(PatternRewriter& rewriter, Instruction sort) {
  const int64_t count = sort.operand_count();
  if (count < 2 || !sort.shape().IsTuple() || !rewriter.IsReplaceable(sort) || sort.is_root()) return false;
  const Computation comparison = sort.computation_attr(Attr::kToApply);
  std::vector<uint8_t> used(static_cast<size_t>(count), 0);
  for (const auto& use : sort.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement || !rewriter.IsReplaceable(use.user)) return false;
    used[static_cast<size_t>(use.user.int_attr(Attr::kIndex))] = 1;
  }
  for (int64_t k = 0; k < count; ++k) {
    const bool compared = comparison.parameter(2 * k).has_users() || comparison.parameter(2 * k + 1).has_users() ||
                          comparison.parameter(2 * k).is_root() || comparison.parameter(2 * k + 1).is_root();
    used[static_cast<size_t>(k)] |= compared ? 1 : 0;
  }
  std::vector<InstructionId> operands;
  std::vector<Shape> shapes;
  std::vector<int64_t> number(static_cast<size_t>(count), -1);
  for (int64_t k = 0; k < count; ++k) {
    if (!used[static_cast<size_t>(k)]) {
      rewriter.DropMetadataOf(sort.operand(k));
      continue;
    }
    number[static_cast<size_t>(k)] = static_cast<int64_t>(operands.size());
    operands.push_back(sort.operand(k).id());
    shapes.push_back(sort.shape().element(k));
  }
  if (operands.empty() || operands.size() == static_cast<size_t>(count)) return false;
  Module& module = rewriter.module();
  const ComputationId smaller = module.CloneComputation(comparison.id());
  for (int64_t k = count; k-- > 0;) {
    if (used[static_cast<size_t>(k)]) continue;
    module.RemoveParameter(module.computation(smaller).parameter(2 * k + 1).id());
    module.RemoveParameter(module.computation(smaller).parameter(2 * k).id());
  }
  std::vector<AttrValue> attrs;
  for (AttrValue value : sort.attrs()) {
    if (value.attr == Attr::kToApply) value.payload = smaller.value;
    if (!IsCommon(value.attr)) attrs.push_back(value);
  }
  const bool single = operands.size() == 1;
  const Shape shape = single ? shapes[0] : rewriter.shapes().Tuple(shapes);
  const InstructionId made = rewriter.Make(Opcode::kSort, shape, operands, attrs);
  std::vector<InstructionId> elements;
  for (const auto& use : sort.uses()) elements.push_back(use.user.id());
  for (InstructionId element : elements) {
    const int64_t index = number[static_cast<size_t>(rewriter.at(element).int_attr(Attr::kIndex))];
    InstructionId value = made;
    if (!single) value = rewriter.MakeElement(made, index);
    rewriter.Replace(rewriter.at(element), value);
  }
  return true;
}

}  // namespace

void AddSortRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kSort}, "unused operands of sorts removed", UnusedOperands);
}

HLOKIT_PASS(SortSimplifier) {
  return {.name = "sort-simplifier",
          .category = "simplify",
          .summary = "remove unused operands of sorts",
          .doc = "Removes operands of a sort whose results are unused and whose elements the comparator does not read.",
          .example = R"(less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT lt = pred[] compare(a, b), direction=LT
}
ENTRY e {
  k = f32[8] parameter(0)
  v = s32[8] parameter(1)
  s = (f32[8], s32[8]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
  ROOT r = f32[8] get-tuple-element(s), index=0
})",
          .create = MakePass<RulesOf<AddSortRules>>};
}

}  // namespace hlokit
