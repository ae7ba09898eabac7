// SPDX-License-Identifier: Apache-2.0
#include "logistic_fuser.h"

#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/splat.h"

using hlokit::Instruction;
using hlokit::Opcode;

namespace {

// Returns true if all elements of `i` are known to be 1.
bool IsOne(Instruction i) {
  const std::optional<hlokit::Splat> splat = hlokit::SplatOf(i);
  return splat && splat->IsOne();
}

// 1 / (1 + exp(-x)) becomes logistic(x).
bool FuseLogistic(hlokit::PatternRewriter& rewriter, Instruction divide) {
  const Instruction one = divide.operand(0), sum = divide.operand(1);
  if (!IsOne(one) || sum.opcode() != Opcode::kAdd) return false;
  // The sum has the constant on either side.
  const int64_t constant = IsOne(sum.operand(0)) ? 0 : 1;
  const Instruction exponential = sum.operand(1 - constant);
  if (!IsOne(sum.operand(constant)) || exponential.opcode() != Opcode::kExp) return false;
  const Instruction negated = exponential.operand(0);
  if (negated.opcode() != Opcode::kNegate) return false;
  const Instruction x = negated.operand(0);
  return rewriter.ReplaceWithNew(divide, Opcode::kLogistic, {x.id()}, {}, {sum, exponential, negated});
}

class LogisticFuser : public hlokit::Pass {
 public:
  absl::StatusOr<bool> Run(hlokit::Module& module) override {
    hlokit::RewritePatternSet rules;
    rules.Add({Opcode::kDivide}, "logistic functions fused", FuseLogistic);
    hlokit::PatternRewriter rewriter(&module, &rules, &options());
    const bool changed = rewriter.Run();
    Count(rules[0].name, rewriter.applied()[0]);
    return changed;
  }
};

}  // namespace

void RegisterLogisticFuser(hlokit::PassRegistry* registry) {
  registry->Add({.name = "logistic-fuser",
                 .category = "simplify",
                 .summary = "replace 1 / (1 + exp(-x)) by logistic(x)",
                 .tolerance = 1e-6,
                 .create = hlokit::MakePass<LogisticFuser>});
}
