// SPDX-License-Identifier: Apache-2.0
// Arrays without elements, and dynamic operations on static dimensions.
#include "passes/core/pass_row.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/rewrite/splat.h"
#include "passes/simplify/algebraic/rule_passes.h"

namespace hlokit {
namespace {

// Replaces an array without elements by a constant.
bool ZeroSized(PatternRewriter& rewriter, Instruction i) {
  if (!i.shape().IsArray() || i.shape().element_count() != 0 || HasTrait(i.opcode(), kLeaf) ||
      !rewriter.IsReplaceable(i) || HasTrait(i.opcode(), kCollective)) {
    return false;
  }
  rewriter.DropMetadataOfOperands(i);
  return rewriter.Replace(i, rewriter.MakeConstant(Literal::Zeros(i.shape())));
}

// Replaces the size of a static dimension by a constant.
bool SizeOfStatic(PatternRewriter& rewriter, Instruction i) {
  const int64_t dim = i.list_attr(Attr::kDimensions).empty() ? 0 : i.list_attr(Attr::kDimensions)[0];
  const int64_t size = i.operand(0).shape().dim(dim);
  if (size > INT32_MAX || i.shape().element_type() != ElementType::kS32 || !rewriter.IsReplaceable(i)) return false;
  rewriter.DropMetadataOfOperands(i);
  return rewriter.Replace(i, rewriter.MakeScalarConstant(ElementType::kS32, static_cast<double>(size)));
}

// Removes a set-dimension-size to the static size.
bool SetToOwnSize(PatternRewriter& rewriter, Instruction i) {
  const int64_t dim = i.list_attr(Attr::kDimensions).empty() ? 0 : i.list_attr(Attr::kDimensions)[0];
  const auto size = IntegerConstant(i.operand(1));
  return size && *size == i.shape().dim(dim) && rewriter.Replace(i, i.operand(0).id());
}

}  // namespace

void AddZeroSizedRules(RewritePatternSet* rules) {
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    rules->Add({static_cast<Opcode>(i)}, "arrays without elements made constants", ZeroSized);
  }
}

void AddDynamicDimensionRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kGetDimensionSize}, "sizes of static dimensions made constants", SizeOfStatic);
  rules->Add({Opcode::kSetDimensionSize}, "settings of a dimension to its own size removed", SetToOwnSize);
}

HLOKIT_PASS(DynamicDimensionSimplifier) {
  return {
      .name = "dynamic-dimension-simplifier",
      .category = "simplify",
      .summary = "remove dynamic sizes that are static",
      .doc =
          "Replaces the size of a static dimension by a constant, and removes set-dimension-size to the static size.",
      .example = R"(ENTRY e {
  p = f32[4,8] parameter(0)
  s = s32[] get-dimension-size(p), dimensions={0}
  ROOT r = s32[] negate(s)
})",
      .create = MakePass<RulesOf<AddDynamicDimensionRules>>};
}

HLOKIT_PASS(ZeroSizedHloElimination) {
  return {.name = "zero-sized-hlo-elimination",
          .category = "simplify",
          .summary = "replace arrays without elements by constants",
          .example = R"(ENTRY e {
  p = f32[4,8] parameter(0)
  s = f32[0,8] slice(p), slice={[2:2],[0:8]}
  n = f32[0,8] negate(s), metadata={op_name="f/neg"}
  ROOT r = f32[4,8] concatenate(n, p), dimensions={0}
})",
          .create = MakePass<RulesOf<AddZeroSizedRules>>};
}

}  // namespace hlokit
