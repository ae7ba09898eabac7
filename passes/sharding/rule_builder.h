// SPDX-License-Identifier: Apache-2.0
// Makes sharding rules: factors are added and assigned to dimensions; dimensions that get none are whole.
#ifndef HLOKIT_PASSES_SHARDING_RULE_BUILDER_H_
#define HLOKIT_PASSES_SHARDING_RULE_BUILDER_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::sharding {

class RuleBuilder {
 public:
  explicit RuleBuilder(Instruction instruction);

  Instruction instruction() const { return instruction_; }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  int64_t result_count() const { return static_cast<int64_t>(results_.size()); }
  Shape operand(int64_t i) const { return operands_[static_cast<size_t>(i)]; }
  Shape result(int64_t i = 0) const { return results_[static_cast<size_t>(i)]; }

  int32_t Add(int64_t size, FactorKind kind = FactorKind::kParallel) {
    rule_.factors.push_back({size, kind});
    return static_cast<int32_t>(rule_.factors.size()) - 1;
  }
  // Append a factor to a dimension. Dimensions that do not exist are ignored.
  void Operand(int64_t i, int64_t dim, int32_t factor);
  void Result(int64_t i, int64_t dim, int32_t factor);
  // Returns true if the dimension has factors already.
  bool HasOperand(int64_t i, int64_t dim) const;
  bool HasResult(int64_t i, int64_t dim) const;

  // Gives dimension d of all arrays of this rank one factor, for each d. Without operands: of the results.
  void Elementwise(int64_t rank, FactorKind kind = FactorKind::kParallel);
  void MarkUnknown() { rule_.known = false; }

  // Returns the rule; dimensions without factors get their own, whole in operands; in results of `rest`.
  ShardingRule Finish(FactorKind rest = FactorKind::kWhole);

 private:
  Instruction instruction_;
  std::vector<Shape> operands_;
  std::vector<Shape> results_;
  ShardingRule rule_;
};

// Rules of the classes of an operation with dimension numbers of its own.
void MakeDotRule(RuleBuilder& b);
void MakeRaggedDotRule(RuleBuilder& b);
void MakeConvolutionRule(RuleBuilder& b);
void MakeGatherRule(RuleBuilder& b);
void MakeScatterRule(RuleBuilder& b);
void MakeDynamicSliceRule(RuleBuilder& b);
void MakeDynamicUpdateSliceRule(RuleBuilder& b);
// The rule that the text of an operation states (sharding_rule_text.cc). Returns false, and adds nothing, if the text
// has another form, or does not fit the arrays.
bool MakeStatedRule(RuleBuilder& b, std::string_view text);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_RULE_BUILDER_H_
