// SPDX-License-Identifier: Apache-2.0
// Expands top-k into sorts, and stable sorts into sorts with indices.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/clone.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

InstructionId MakeIota(PatternRewriter& rewriter, ElementType type, Shape like, int64_t dimension) {
  const AttrValue attrs[] = {rewriter.Int(Attr::kIotaDimension, dimension)};
  return rewriter.Make(Opcode::kIota, rewriter.shapes().Array(type, like.dims()), {}, attrs);
}

// Adds a comparator of values, and of indices that it ignores.
ComputationId MakeComparator(PatternRewriter& rewriter, Instruction source, ElementType type, bool descending) {
  Module& module = rewriter.module();
  Builder b(&module, module.AddComputation(module.UniqueComputationName("compare")));
  const AnnotationScope scope(&b, {source.id()});
  std::vector<InstructionId> parameters;
  for (uint32_t k = 0; k < 4; ++k) {
    const Shape shape = b.shapes().Scalar(k < 2 ? type : ElementType::kS32);
    parameters.push_back(b.WithName("p").Make(Opcode::kParameter, shape, {}, {}, k));
  }
  const ComparisonDirection direction = descending ? ComparisonDirection::kGt : ComparisonDirection::kLt;
  std::vector<AttrValue> attrs = {Builder::Enum(Attr::kDirection, direction)};
  if (IsFloat(type)) attrs.push_back(Builder::Enum(Attr::kCompareType, ComparisonType::kTotalOrder));
  b.SetRoot(b.Make(Opcode::kCompare, b.shapes().Scalar(ElementType::kPred), {parameters[0], parameters[1]}, attrs));
  // It stands for the comparator that the call had.
  const InstructionId root = module.computation(b.computation()).root().id();
  const std::vector<Computation> called = source.called_computations();
  if (!called.empty() && called[0].root().metadata_id().valid()) SetMetadataFrom(module, root, {called[0].root().id()});
  MergeMetadataOfComputations(module, called, root);
  return b.computation();
}

bool DecomposeTopK(PatternRewriter& rewriter, Instruction i) {
  if (i.opcode() == Opcode::kCustomCall && i.string_attr(Attr::kCustomCallTarget) != "TopK") return false;
  if (i.operand_count() != 1 || !rewriter.IsReplaceable(i) || !i.shape().IsTuple() || i.shape().tuple_size() != 2) {
    return false;
  }
  const Shape shape = i.operand(0).shape();
  const ElementType type = shape.element_type();
  const int64_t last = shape.rank() - 1;
  if (last < 0 || shape.has_dynamic_dims() || IsComplex(type) || shape.dim(last) > INT32_MAX ||
      i.shape().element(1).element_type() != ElementType::kS32 || i.shape().element(0).rank() != shape.rank()) {
    return false;
  }
  const InstructionId indices = MakeIota(rewriter, ElementType::kS32, shape, last);
  const ComputationId comparator = MakeComparator(rewriter, i, type, i.bool_attr(Attr::kLargest, true));
  const AttrValue attrs[] = {rewriter.List(Attr::kDimensions, {last}), Builder::Bool(Attr::kIsStable, true),
                             Builder::Calls(Attr::kToApply, comparator)};
  const Shape sorted = rewriter.shapes().Tuple({shape, rewriter.shape_of(indices)});
  const InstructionId sort = rewriter.Make(Opcode::kSort, sorted, {i.operand(0).id(), indices}, attrs);
  std::vector<InstructionId> results;
  for (int64_t k = 0; k < 2; ++k) {
    std::vector<int64_t> ranges;
    for (int64_t d = 0; d <= last; ++d) ranges.insert(ranges.end(), {0, i.shape().element(k).dim(d), 1});
    const AttrValue slice[] = {rewriter.List(Attr::kSlice, ranges)};
    results.push_back(rewriter.Make(Opcode::kSlice, i.shape().element(k), {rewriter.MakeElement(sort, k)}, slice));
  }
  return rewriter.Replace(i, rewriter.MakeTuple(results));
}

// Adds the index as last operand, which decides between elements of which neither comes first.
bool ExpandStableSort(PatternRewriter& rewriter, Instruction sort) {
  if (!sort.bool_attr(Attr::kIsStable) || !rewriter.IsReplaceable(sort)) return false;
  const Computation comparator = sort.computation_attr(Attr::kToApply);
  const int64_t count = sort.operand_count(), dimension = sort.list_attr(Attr::kDimensions)[0];
  const Shape shape = sort.operand(0).shape();
  if (!IsCloneable(comparator) || shape.rank() == 0 || sort.shape().has_dynamic_dims()) return false;
  const ElementType type = shape.dim(dimension) > INT32_MAX ? ElementType::kS64 : ElementType::kS32;
  Module& module = rewriter.module();
  const ComputationId decided = module.AddComputation(module.UniqueComputationName(comparator.name()));
  Builder b(&module, decided);
  std::vector<InstructionId> parameters, swapped;
  for (int64_t k = 0; k < 2 * count + 2; ++k) {
    const Shape scalar = k < 2 * count ? comparator.parameter(k).shape() : b.shapes().Scalar(type);
    parameters.push_back(b.WithName("p").Make(Opcode::kParameter, scalar, {}, {}, static_cast<uint32_t>(k)));
  }
  for (int64_t k = 0; k < 2 * count; ++k) swapped.push_back(parameters[static_cast<size_t>(k ^ 1)]);
  const AnnotationScope scope(&b, {sort.id()});
  const size_t index = static_cast<size_t>(2 * count);
  const InstructionId earlier = b.MakeCompare(ComparisonDirection::kLt, parameters[index], parameters[index + 1]);
  const InstructionId before = CloneBody(module, comparator, parameters, earlier);
  const InstructionId after = CloneBody(module, comparator, swapped, earlier);
  const InstructionId same = b.MakeCompare(ComparisonDirection::kEq, before, after);
  b.SetRoot(b.Make(Opcode::kSelect, b.shapes().Scalar(ElementType::kPred), {same, earlier, before}));
  std::vector<InstructionId> operands;
  std::vector<Shape> shapes;
  for (int64_t k = 0; k < count; ++k) operands.push_back(sort.operand(k).id());
  operands.push_back(MakeIota(rewriter, type, shape, dimension));
  for (InstructionId operand : operands) shapes.push_back(rewriter.shape_of(operand));
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(sort)) {
    if (value.attr == Attr::kIsStable) continue;
    if (value.attr == Attr::kToApply) value.payload = decided.value;
    attrs.push_back(value);
  }
  const InstructionId expanded = rewriter.Make(Opcode::kSort, rewriter.shapes().Tuple(shapes), operands, attrs);
  if (count == 1) return rewriter.Replace(sort, rewriter.MakeElement(expanded, 0));
  std::vector<InstructionId> elements;
  for (int64_t k = 0; k < count; ++k) elements.push_back(rewriter.MakeElement(expanded, k));
  return rewriter.Replace(sort, rewriter.MakeTuple(elements));
}

}  // namespace

void AddTopkDecomposerRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kTopK, Opcode::kCustomCall}, "top-k made sorts", DecomposeTopK);
}

void AddStableSortExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kSort}, "stable sorts expanded", ExpandStableSort);
}

HLOKIT_PASS(TopkDecomposer) {
  return {.name = "topk-decomposer",
          .category = "expand",
          .summary = "expand top-k into sorts",
          .doc =
              "A stable sort with indices, and slices of its results, for the operation and the custom-call "
              "TopK. Floats are compared by total order, where XLA's takes the comparator of the call, and "
              "leaves the indices out if only the values are used.",
          .example = R"(ENTRY e {
  p = f32[2,5] parameter(0)
  q = s32[5] constant({3,-1,4,-1,5})
  a = (f32[2,2], s32[2,2]) topk(p), k=2, largest=true, metadata={op_name="f/largest"}
  b = (s32[3], s32[3]) topk(q), k=3, largest=false, metadata={op_name="f/smallest"}
  ROOT t = ((f32[2,2], s32[2,2]), (s32[3], s32[3])) tuple(a, b)
})",
          .create = MakePass<RulesOf<AddTopkDecomposerRules, RewriteScope::kSequential>>};
}

HLOKIT_PASS(StableSortExpander) {
  return {.name = "stable-sort-expander",
          .category = "expand",
          .summary = "expand stable sorts into sorts with indices",
          .doc =
              "The index decides between elements of which neither comes first. As XLA's, but an iota "
              "that is an operand already is not used.",
          .example = R"(less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT, metadata={op_name="f/less"}
}
ENTRY e {
  k = s32[2,4] constant({{2,1,2,1},{3,3,0,3}})
  v = f32[2,4] parameter(0)
  ROOT s = (s32[2,4], f32[2,4]) sort(k, v), dimensions={1}, is_stable=true, to_apply=less, metadata={op_name="f/sort"}
})",
          .create = MakePass<RulesOf<AddStableSortExpanderRules, RewriteScope::kSequential>>};
}

}  // namespace hlokit
