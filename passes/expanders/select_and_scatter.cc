// SPDX-License-Identifier: Apache-2.0
// Expands select-and-scatter into a reduction of windows that finds the index of the selected element, and a scatter of
// the source to these indices.
#include <cstdint>
#include <numeric>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/clone.h"
#include "passes/rewrite/reducer.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// In place of an index in padding, which is never selected.
constexpr double kNoIndex = -1;

// Returns a reducer of elements with their indices, which keeps the left one while `select` is true.
ComputationId MakeSelector(PatternRewriter& rewriter, Instruction source, Computation select, ElementType type,
                           int64_t rank) {
  Module& module = rewriter.module();
  Builder b(&module, module.AddComputation(module.UniqueComputationName(select.name())));
  const AnnotationScope scope(&b, {source.id()});
  const size_t count = static_cast<size_t>(rank) + 1;
  const Shape element = b.shapes().Scalar(type), index = b.shapes().Scalar(ElementType::kS32);
  std::vector<InstructionId> parameters;
  for (uint32_t k = 0; k < 2 * count; ++k) {
    parameters.push_back(b.Make(Opcode::kParameter, k % count == 0 ? element : index, {}, {}, k));
  }
  const InstructionId none = b.MakeScalarConstant(ElementType::kS32, kNoIndex);
  const InstructionId has_left = b.MakeCompare(ComparisonDirection::kNe, parameters[1], none);
  const InstructionId no_right = b.MakeCompare(ComparisonDirection::kEq, parameters[count + 1], none);
  const InstructionId kept = CloneBody(module, select, {parameters[0], parameters[count]}, no_right);
  const InstructionId keeps = b.MakeLike(Opcode::kOr, {no_right, b.MakeLike(Opcode::kAnd, {has_left, kept})});
  std::vector<InstructionId> results;
  for (size_t k = 0; k < count; ++k) {
    results.push_back(
        b.Make(Opcode::kSelect, b.shape_of(parameters[k]), {keeps, parameters[k], parameters[count + k]}));
  }
  b.SetRoot(b.MakeTuple(results));
  return b.computation();
}

// Returns the combiner for a scatter, which passes the element of the array first and that of the source second.
ComputationId MakeCombiner(PatternRewriter& rewriter, Computation scatter) {
  const Instruction root = CombinationOf(scatter);
  if (root.valid() && HasTrait(root.opcode(), kCommutative)) return scatter.id();
  Module& module = rewriter.module();
  const ComputationId swapped = CloneWithFusions(module, scatter.id());
  const InstructionId first = module.computation(swapped).parameter(0).id();
  const InstructionId second = module.computation(swapped).parameter(1).id();
  module.SetPayload(first, 1);
  module.SetPayload(second, 0);
  module.SetParameters(swapped, {second, first});
  return swapped;
}

bool ExpandSelectAndScatter(PatternRewriter& rewriter, Instruction i) {
  const Instruction operand = i.operand(0), source = i.operand(1), init = i.operand(2);
  const Computation select = i.computation_attr(Attr::kSelect), scatter = i.computation_attr(Attr::kScatter);
  const int64_t rank = operand.shape().rank();
  const ElementType type = operand.shape().element_type();
  if (!rewriter.IsReplaceable(i) || rank == 0 || WindowView::Of(i).rank() != rank || !IsCloneable(select) ||
      !IsCloneable(scatter) || i.shape().has_dynamic_dims() || operand.shape().has_dynamic_dims() ||
      source.shape().has_dynamic_dims() || source.shape().element_type() != type ||
      init.shape().element_type() != type) {
    return false;
  }
  // The functions may convert types, which the scatter does not.
  for (int64_t k = 0; k < 2; ++k) {
    if (select.parameter(k).shape().element_type() != type || scatter.parameter(k).shape().element_type() != type) {
      return false;
    }
  }
  if (scatter.root().shape().element_type() != type) return false;
  for (int64_t size : operand.shape().dims()) {
    if (size > INT32_MAX) return false;
  }
  ShapeTable& shapes = rewriter.shapes();
  const Shape numbers = shapes.Array(ElementType::kS32, operand.shape().dims());
  const Shape found = shapes.Array(ElementType::kS32, source.shape().dims());
  const InstructionId none = rewriter.MakeScalarConstant(ElementType::kS32, kNoIndex);
  std::vector<InstructionId> operands = {operand.id()}, inits(static_cast<size_t>(rank) + 1, none);
  std::vector<Shape> results = {source.shape()};
  inits[0] = init.id();
  for (int64_t d = 0; d < rank; ++d) {
    const AttrValue iota[] = {rewriter.Int(Attr::kIotaDimension, d)};
    operands.push_back(rewriter.Make(Opcode::kIota, numbers, {}, iota));
    results.push_back(found);
  }
  operands.insert(operands.end(), inits.begin(), inits.end());
  const ComputationId selector = MakeSelector(rewriter, i, select, type, rank);
  const AttrValue window[] = {Builder::SameAs(i, Attr::kWindow), Builder::Calls(Attr::kToApply, selector)};
  const InstructionId selected = rewriter.Make(Opcode::kReduceWindow, shapes.Tuple(results), operands, window);
  // The indices as vectors, in the last dimension.
  std::vector<int64_t> sizes(source.shape().dims().begin(), source.shape().dims().end()), all(sizes.size());
  std::iota(all.begin(), all.end(), 0);
  sizes.push_back(1);
  std::vector<InstructionId> components;
  for (int64_t d = 0; d < rank; ++d) {
    components.push_back(
        rewriter.MakeReshape(rewriter.MakeElement(selected, d + 1), shapes.Array(ElementType::kS32, sizes)));
  }
  InstructionId indices = components[0];
  if (rank > 1) {
    sizes.back() = rank;
    const AttrValue along[] = {rewriter.List(Attr::kDimensions, {rank})};
    indices = rewriter.Make(Opcode::kConcatenate, shapes.Array(ElementType::kS32, sizes), components, along);
  }
  const AttrValue attrs[] = {rewriter.List(Attr::kUpdateWindowDims, {}), rewriter.List(Attr::kInsertedWindowDims, all),
                             rewriter.List(Attr::kScatterDimsToOperandDims, all),
                             rewriter.Int(Attr::kIndexVectorDim, rank),
                             Builder::Calls(Attr::kToApply, MakeCombiner(rewriter, scatter))};
  const InstructionId array = rewriter.MakeSplat(i.shape(), init.id());
  return rewriter.ReplaceWithNew(i, Opcode::kScatter, {array, indices, source.id()}, attrs);
}

}  // namespace

void AddSelectAndScatterExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kSelectAndScatter}, "select-and-scatters expanded", ExpandSelectAndScatter);
}

HLOKIT_PASS(SelectAndScatterExpander) {
  return {.name = "select-and-scatter-expander",
          .category = "expand",
          .summary = "expand select-and-scatter into reduce-window and scatter",
          .doc =
              "The reduction of the windows yields the indices of the selected elements, to which the source is "
              "scattered. As XLA's, except that a combiner that is not one commutative operation is cloned "
              "with its parameters exchanged, since scatter passes them in the other order.",
          .example = R"(ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[4,4] parameter(0)
  gradient = f32[2,2] parameter(1)
  zero = f32[] constant(0)
  ROOT r = f32[4,4] select-and-scatter(p, gradient, zero), window={size=2x2 stride=2x2}, select=ge, scatter=sum, metadata={op_name="f/pool"}
})",
          .tolerance = 1e-5,
          .create = MakePass<RulesOf<AddSelectAndScatterExpanderRules>>};
}

}  // namespace hlokit
