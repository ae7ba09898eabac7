// SPDX-License-Identifier: Apache-2.0
#include "passes/simplify/algebraic/algsimp.h"

#include "passes/core/pass_row.h"
#include "passes/simplify/algebraic/rules.h"

namespace hlokit {

const RewritePatternSet& AlgebraicSimplifier::rules() const {
  static const RewritePatternSet* const kRules = [] {
    auto* rules = new RewritePatternSet();
    AddArithmeticRules(rules);
    AddLogicRules(rules);
    AddConvertRules(rules);
    AddReshapeRules(rules);
    AddBroadcastRules(rules);
    AddTransposeRules(rules);
    AddSliceRules(rules);
    AddDynamicSliceRules(rules);
    AddConcatenateRules(rules);
    AddReduceRules(rules);
    AddDotRules(rules);
    AddIndexedRules(rules);
    AddTupleRules(rules);
    AddBroadcastMovers(rules);
    return rules;
  }();
  return *kRules;
}

const RewritePatternSet& ReshapeMover::rules() const {
  static const RewritePatternSet* const kRules = [] {
    auto* rules = new RewritePatternSet();
    AddReshapeMovers(rules);
    AddReshapeRules(rules);
    AddTransposeRules(rules);
    AddBroadcastRules(rules);
    return rules;
  }();
  return *kRules;
}

const RewritePatternSet& TupleSimplifier::rules() const {
  static const RewritePatternSet* const kRules = [] {
    auto* rules = new RewritePatternSet();
    AddTupleRules(rules);
    return rules;
  }();
  return *kRules;
}

HLOKIT_PASS(Algsimp) {
  return {.name = "algsimp",
          .category = "simplify",
          .summary = "algebraic simplification",
          .doc =
              "Rewrites single instructions and small groups into cheaper ones until no rule applies: arithmetic with "
              "zero and one, comparisons and selections with a known result, chains of conversions, reshapes, "
              "broadcasts, transposes, slices, concatenations and padding, empty reductions, transposes into dots and "
              "convolutions, elements of tuples. No float is reassociated.",
          .example = R"(ENTRY e {
  p = f32[4] parameter(0)
  n = f32[4] negate(p), metadata={op_name="f/neg"}
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={}
  sum = f32[4] add(n, zeros), metadata={op_name="f/add"}
  ROOT r = f32[4] exponential(sum), metadata={op_name="f/exp"}
})",
          .options = {{"signed-zeros", OptionInfo::Type::kBool, "false",
                       "keep the signs of zeros: x + 0, which makes -0 to 0, is not x"}},
          .create = MakePass<AlgebraicSimplifier>};
}

HLOKIT_PASS(ReshapeMover) {
  return {.name = "reshape-mover",
          .category = "simplify",
          .summary = "move reshapes and transposes below elementwise operations",
          .doc =
              "If all operands of an elementwise operation have the same reshape (transpose), or are "
              "broadcasts of scalars, it sinks below the operation: one replaces several, and it may merge "
              "with others further down. Nothing moves up.",
          .example = R"(ENTRY e {
  p = f32[24] parameter(0)
  q = f32[24] parameter(1)
  c = f32[] constant(2)
  a = f32[4,6] reshape(p), metadata={op_name="f/ra"}
  b = f32[4,6] reshape(q), metadata={op_name="f/rb"}
  cs = f32[4,6] broadcast(c), dimensions={}
  s = f32[4,6] add(a, b), metadata={op_name="f/add"}
  ROOT r = f32[4,6] multiply(s, cs), metadata={op_name="f/mul"}
})",
          .create = MakePass<ReshapeMover>};
}

HLOKIT_PASS(TupleSimplifier) {
  return {.name = "tuple-simplifier",
          .category = "simplify",
          .summary = "forward the elements of tuples",
          .doc =
              "Replaces an element of a tuple by the tuple's operand, and a tuple of all elements of another "
              "tuple by that tuple.",
          .example = R"(ENTRY e {
  p = (f32[4], s32[]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  b = s32[] get-tuple-element(p), index=1
  t = (f32[4], s32[]) tuple(a, b)
  u = (s32[], (f32[4], s32[])) tuple(b, t)
  ROOT r = (f32[4], s32[]) get-tuple-element(u), index=1
})",
          .create = MakePass<TupleSimplifier>};
}

}  // namespace hlokit
