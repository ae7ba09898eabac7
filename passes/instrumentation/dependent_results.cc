// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/dependent_results.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module.h"
#include "ir/graph/traversal.h"

namespace hlokit {

std::vector<uint8_t> DependentResults(const Module& module, absl::FunctionRef<bool(Instruction)> is_source) {
  std::vector<uint8_t> depends(module.instruction_id_bound(), 0), holds(module.computation_id_bound(), 0);
  for (ComputationId id : ComputationPostOrder(module)) {
    for (InstructionId at : PostOrder(module.computation(id))) {
      const Instruction i = module.instruction(at);
      bool dependent = is_source(i);
      for (Instruction operand : i.operands()) dependent |= depends[operand.id().value] != 0;
      i.ForEachCallee([&](Computation callee) { dependent |= holds[callee.id().value] != 0; });
      depends[at.value] = dependent ? 1 : 0;
      if (dependent) holds[id.value] = 1;
    }
  }
  const Instruction root = module.entry().root();
  std::vector<uint8_t> results;
  const auto add = [&](Instruction i) {
    results.resize(results.size() + static_cast<size_t>(i.shape().leaf_count()), depends[i.id().value]);
  };
  if (root.opcode() != Opcode::kTuple) {
    add(root);
  } else {
    for (Instruction operand : root.operands()) add(operand);
  }
  return results;
}

std::vector<uint8_t> DependentResults(const Module& module, absl::Span<const Opcode> opcodes) {
  return DependentResults(module, [&](Instruction i) { return absl::c_linear_search(opcodes, i.opcode()); });
}

bool SortsByPartialOrder(Instruction instruction) {
  if (instruction.opcode() != Opcode::kSort) return false;
  for (Instruction i : instruction.computation_attr(Attr::kToApply).instructions()) {
    if (i.opcode() != Opcode::kCompare || !IsFloat(i.operand(0).shape().element_type())) continue;
    const auto direction = i.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
    const bool orders = direction != ComparisonDirection::kEq && direction != ComparisonDirection::kNe;
    if (orders && i.enum_attr(Attr::kCompareType, ComparisonType::kFloat) == ComparisonType::kFloat) return true;
  }
  return false;
}

void UncomparedResults::Add(absl::Span<const uint8_t> dependent, std::string_view what) {
  reasons_.resize(std::max(reasons_.size(), dependent.size()));
  for (size_t k = 0; k < dependent.size(); ++k) {
    if (dependent[k] != 0 && !absl::c_linear_search(reasons_[k], what)) reasons_[k].push_back(what);
  }
}

void UncomparedResults::Add(const Module& module, absl::Span<const Opcode> opcodes) {
  for (const Opcode opcode : opcodes) Add(DependentResults(module, {&opcode, 1}), hlokit::ToString(opcode));
}

void UncomparedResults::Add(const UncomparedResults& other) {
  reasons_.resize(std::max(reasons_.size(), other.reasons_.size()));
  for (size_t k = 0; k < other.reasons_.size(); ++k) {
    for (const std::string_view why : other.reasons_[k]) {
      if (!absl::c_linear_search(reasons_[k], why)) reasons_[k].push_back(why);
    }
  }
}

int64_t UncomparedResults::count() const {
  return absl::c_count_if(reasons_, [](const auto& reasons) { return !reasons.empty(); });
}

std::string UncomparedResults::ToString(std::string_view noun) const {
  const int64_t left_out = count();
  if (left_out == 0) return "";
  std::vector<std::string_view> all;
  for (const std::vector<std::string_view>& reasons : reasons_) {
    for (const std::string_view why : reasons) {
      if (!absl::c_linear_search(all, why)) all.push_back(why);
    }
  }
  std::string text = StrCat(left_out, " of ", reasons_.size(), " ", noun,
                            " not compared: ", left_out == 1 ? "depends on " : "they depend on ");
  for (size_t k = 0; k < all.size(); ++k) StrAppend(&text, k == 0 ? "" : ", ", all[k]);
  return text;
}

}  // namespace hlokit
