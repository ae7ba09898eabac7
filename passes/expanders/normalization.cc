// SPDX-License-Identifier: Apache-2.0
// Expands batch normalization and the logistic function.
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// Common subexpressions of the three batch normalizations.
class BatchNorm {
 public:
  BatchNorm(PatternRewriter& rewriter, Instruction i) : rewriter_(rewriter), instruction_(i), operand_(i.operand(0)) {
    feature_ = i.int_attr(Attr::kFeatureIndex);
    type_ = operand_.shape().element_type();
    for (int64_t d = 0; d < operand_.shape().rank(); ++d) {
      if (d != feature_) others_.push_back(d);
      if (d != feature_) count_ *= operand_.shape().dim(d);
    }
  }

  // Returns true if all operands have one type, in which sums are computed.
  bool Applies() const {
    for (Instruction operand : instruction_.operands()) {
      if (operand.shape().element_type() != type_) return false;
    }
    return IsFloat(type_) && rewriter_.IsReplaceable(instruction_) && count_ > 0;
  }

  InstructionId PerFeature(InstructionId value) {
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, {feature_})};
    return rewriter_.Make(Opcode::kBroadcast, operand_.shape(), {value}, attrs);
  }
  InstructionId Splat(InstructionId like, double value) {
    return rewriter_.MakeSplat(rewriter_.at(like).shape(), rewriter_.MakeScalarConstant(type_, value));
  }
  InstructionId Sum(InstructionId value) {
    if (!reducer_.valid()) reducer_ = rewriter_.MakeReducer(Opcode::kAdd, type_);
    return rewriter_.MakeReduce(value, rewriter_.MakeScalarConstant(type_, 0), others_, reducer_);
  }
  InstructionId Mean(InstructionId value) {
    const InstructionId sum = Sum(value);
    return rewriter_.MakeLike(Opcode::kDivide, {sum, Splat(sum, static_cast<double>(count_))});
  }
  InstructionId Binary(Opcode opcode, InstructionId a, InstructionId b) { return rewriter_.MakeLike(opcode, {a, b}); }
  // Returns 1 / sqrt(variance + epsilon) for each feature.
  InstructionId InverseDeviation(InstructionId variance) {
    const InstructionId epsilon = Splat(variance, static_cast<double>(instruction_.float_attr(Attr::kEpsilon)));
    return rewriter_.MakeLike(Opcode::kRsqrt, {Binary(Opcode::kAdd, variance, epsilon)});
  }
  InstructionId Tuple(std::initializer_list<InstructionId> elements) {
    return rewriter_.Make(Opcode::kTuple, instruction_.shape(), std::vector<InstructionId>(elements));
  }
  double count() const { return static_cast<double>(count_); }
  InstructionId operand() const { return operand_.id(); }

 private:
  PatternRewriter& rewriter_;
  Instruction instruction_, operand_;
  int64_t feature_ = 0, count_ = 1;
  ElementType type_;
  std::vector<int64_t> others_;
  ComputationId reducer_;
};

// Returns (x - mean) * rsqrt(variance + epsilon) * scale + offset.
InstructionId Normalized(BatchNorm& norm, InstructionId centered, InstructionId inverse, InstructionId scale,
                         InstructionId offset) {
  const InstructionId scales = norm.PerFeature(scale);
  const InstructionId normal = norm.Binary(Opcode::kMultiply, centered, norm.PerFeature(inverse));
  const InstructionId scaled = norm.Binary(Opcode::kMultiply, normal, scales);
  return norm.Binary(Opcode::kAdd, scaled, norm.PerFeature(offset));
}

bool Inference(PatternRewriter& rewriter, Instruction i) {
  BatchNorm norm(rewriter, i);
  if (!norm.Applies()) return false;
  const InstructionId centered = norm.Binary(Opcode::kSubtract, norm.operand(), norm.PerFeature(i.operand(3).id()));
  const InstructionId inverse = norm.InverseDeviation(i.operand(4).id());
  return rewriter.Replace(i, Normalized(norm, centered, inverse, i.operand(1).id(), i.operand(2).id()));
}

// `one_pass`: the variance is the mean square less the square of the mean, so that one read of the operand gives both.
template <bool one_pass>
bool Training(PatternRewriter& rewriter, Instruction i) {
  BatchNorm norm(rewriter, i);
  if (!norm.Applies()) return false;
  const InstructionId mean = norm.Mean(norm.operand());
  const InstructionId centered = norm.Binary(Opcode::kSubtract, norm.operand(), norm.PerFeature(mean));
  InstructionId variance;
  if (one_pass) {
    const InstructionId square = norm.Mean(norm.Binary(Opcode::kMultiply, norm.operand(), norm.operand()));
    const InstructionId difference = norm.Binary(Opcode::kSubtract, square, norm.Binary(Opcode::kMultiply, mean, mean));
    variance = norm.Binary(Opcode::kMaximum, difference, norm.Splat(difference, 0));  // not below 0 by rounding
  } else {
    variance = norm.Mean(norm.Binary(Opcode::kMultiply, centered, centered));
  }
  const InstructionId inverse = norm.InverseDeviation(variance);
  const InstructionId result = Normalized(norm, centered, inverse, i.operand(1).id(), i.operand(2).id());
  return rewriter.Replace(i, norm.Tuple({result, mean, variance}));
}

// Computes gradients from the gradient g of the result: for the offset sum(g); for the scale sum(g * centered) *
// inverse; for the operand scale * inverse * (g - mean(g) - centered * inverse^2 * mean(g * centered)).
bool Gradient(PatternRewriter& rewriter, Instruction i) {
  BatchNorm norm(rewriter, i);
  if (!norm.Applies()) return false;
  const InstructionId scale = i.operand(1).id(), mean = i.operand(2).id(), gradient = i.operand(4).id();
  const InstructionId inverse = norm.InverseDeviation(i.operand(3).id());
  const InstructionId centered = norm.Binary(Opcode::kSubtract, norm.operand(), norm.PerFeature(mean));
  const InstructionId offset_gradient = norm.Sum(gradient);
  const InstructionId dot = norm.Sum(norm.Binary(Opcode::kMultiply, gradient, centered));
  const InstructionId scale_gradient = norm.Binary(Opcode::kMultiply, dot, inverse);
  const InstructionId count = norm.Splat(dot, norm.count());
  const InstructionId mean_gradient = norm.Binary(Opcode::kDivide, offset_gradient, count);
  const InstructionId along =
      norm.Binary(Opcode::kDivide, norm.Binary(Opcode::kMultiply, scale_gradient, inverse), count);
  const InstructionId centered_part = norm.Binary(Opcode::kMultiply, centered, norm.PerFeature(along));
  const InstructionId gradient_part = norm.Binary(Opcode::kSubtract, gradient, norm.PerFeature(mean_gradient));
  const InstructionId rest = norm.Binary(Opcode::kSubtract, gradient_part, centered_part);
  const InstructionId factor = norm.Binary(Opcode::kMultiply, scale, inverse);
  const InstructionId result = norm.Binary(Opcode::kMultiply, rest, norm.PerFeature(factor));
  return rewriter.Replace(i, norm.Tuple({result, scale_gradient, offset_gradient}));
}

// Rewrites logistic(x) as 1 / (1 + exp(-x)).
bool Logistic(PatternRewriter& rewriter, Instruction i) {
  const Instruction x = i.operand(0);
  if (x.shape() != i.shape() || !IsFloat(i.shape().element_type()) || !rewriter.IsReplaceable(i)) return false;
  const InstructionId one = rewriter.MakeSplat(i.shape(), rewriter.MakeScalarConstant(i.shape().element_type(), 1));
  const InstructionId exponential = rewriter.MakeLike(Opcode::kExp, {rewriter.MakeLike(Opcode::kNegate, {x.id()})});
  return rewriter.ReplaceWithNew(i, Opcode::kDivide, {one, rewriter.MakeLike(Opcode::kAdd, {one, exponential})});
}

}  // namespace

void AddBatchNormExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kBatchNormInference}, "batch-norm-inference expanded", Inference);
  rules->Add({Opcode::kBatchNormTraining}, "batch-norm-training expanded", Training<false>);
  rules->Add({Opcode::kBatchNormGrad}, "batch-norm-grad expanded", Gradient);
}

void AddOnePassBatchNormExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kBatchNormInference}, "batch-norm-inference expanded", Inference);
  rules->Add({Opcode::kBatchNormTraining}, "batch-norm-training expanded", Training<true>);
  rules->Add({Opcode::kBatchNormGrad}, "batch-norm-grad expanded", Gradient);
}

void AddLogisticExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kLogistic}, "logistic functions expanded", Logistic);
}

namespace {

class BatchNormExpander : public RulePass {
 protected:
  const RewritePatternSet& rules() const override {
    static const RewritePatternSet* const kTwoPasses = [] {
      auto* rules = new RewritePatternSet();
      AddBatchNormExpanderRules(rules);
      return rules;
    }();
    static const RewritePatternSet* const kOnePass = [] {
      auto* rules = new RewritePatternSet();
      AddOnePassBatchNormExpanderRules(rules);
      return rules;
    }();
    return options().Bool("one-pass") ? *kOnePass : *kTwoPasses;
  }
};

}  // namespace

HLOKIT_PASS(BatchnormExpander) {
  return {.name = "batchnorm-expander",
          .category = "expand",
          .summary = "expand batch normalizations",
          .doc =
              "Expands training, inference and gradient into sums, products and rsqrt over all dimensions "
              "but the feature. Requires operands of one float type.",
          .example = R"(ENTRY e {
  x = f32[2,3] parameter(0)
  scale = f32[3] parameter(1)
  offset = f32[3] parameter(2)
  mean = f32[3] parameter(3)
  variance = f32[3] parameter(4)
  ROOT r = f32[2,3] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0.001, feature_index=1, metadata={op_name="f/bn"}
})",
          .options = {{.name = "one-pass",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "compute a variance as the mean square less the square of the mean, from one read "
                              "of the operand, as compilers for TPUs do"}},
          .tolerance = 1e-4,
          .create = MakePass<BatchNormExpander>};
}

HLOKIT_PASS(LogisticExpander) {
  return {.name = "logistic-expander",
          .category = "expand",
          .summary = "expand logistic functions",
          .doc = "logistic(x) = 1 / (1 + exp(-x)), which rounds more often.",
          .example = R"(ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] logistic(x), metadata={op_name="f/sigmoid"}
})",
          .tolerance = 1e-5,
          .create = MakePass<RulesOf<AddLogisticExpanderRules>>};
}

}  // namespace hlokit
