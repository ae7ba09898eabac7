// SPDX-License-Identifier: Apache-2.0
// Reductions in two steps or with the layout of their operand, dots with one batch dimension, convolutions without
// groups.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/reducer.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/rewrite/splat.h"

namespace hlokit {
namespace {

// Returns true if `value` does not change what `reducer`, one commutative operation, combines it with.
bool IsIdentityOf(Instruction value, Computation reducer) {
  const Instruction root = CombinationOf(reducer);
  const std::optional<Splat> splat = SplatOf(value);
  if (!root.valid() || !splat) return false;
  switch (IdentityElementOf(root.opcode())) {
    case IdentityElement::kNone:
      return false;
    case IdentityElement::kNegativeZero:
      return splat->IsZero();
    case IdentityElement::kZero:
      return root.opcode() != Opcode::kXor && splat->IsZero();
    case IdentityElement::kOne:
      return splat->IsOne();
    case IdentityElement::kLowest:
      return splat->IsLowest();
    case IdentityElement::kHighest:
      return splat->IsHighest();
    case IdentityElement::kAllOnes:
      return splat->IsAllOnes();
  }
  return false;
}

// Reduces windows first, then their results.
bool ReduceByTree(PatternRewriter& rewriter, Instruction reduce) {
  const int64_t limit = rewriter.options().Int("reduce-window-size");
  if (reduce.operand_count() != 2 || !reduce.shape().IsArray() || !rewriter.IsReplaceable(reduce)) return false;
  const Shape shape = reduce.operand(0).shape();
  const Computation reducer = reduce.computation_attr(Attr::kToApply);
  if (shape.has_dynamic_dims() || !IsIdentityOf(reduce.operand(1), reducer)) return false;
  std::vector<int64_t> window, sizes;
  bool large = false;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const absl::Span<const int64_t> reduced = reduce.list_attr(Attr::kDimensions);
    const int64_t full = shape.dim(d);
    if (full < 1) return false;
    const bool is_reduced = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    const int64_t size = is_reduced ? std::min(full, limit) : 1, count = (full - 1) / size + 1;
    large |= is_reduced && full > limit;
    sizes.push_back(count);
    // Size, stride, padding low and high, dilations, no reversal.
    window.insert(window.end(), {size, size, 0, count * size - full, 1, 1, 0});
  }
  if (!large) return false;
  const AttrValue attrs[] = {rewriter.List(Attr::kWindow, window), Builder::Calls(Attr::kToApply, reducer.id())};
  const InstructionId operand = reduce.operand(0).id(), init = reduce.operand(1).id();
  const InstructionId partial = rewriter.Make(
      Opcode::kReduceWindow, rewriter.shapes().Array(shape.element_type(), sizes), {operand, init}, attrs);
  return rewriter.ReplaceWithNew(reduce, Opcode::kReduce, {partial, init}, OwnAttrs(reduce));
}

// ---- layouts of reductions ----

absl::Span<const int64_t> LayoutOrder(Shape array) { return array.layout()->minor_to_major; }

// Returns `array` with the dimensions in this order, and its tiles and memory space.
Shape InOrder(PatternRewriter& rewriter, Shape array, absl::Span<const int64_t> minor_to_major) {
  LayoutExtras extras;
  if (array.layout()->extras != nullptr) extras = *array.layout()->extras;
  return rewriter.shapes().WithLayout(array, rewriter.shapes().Layout(minor_to_major, extras));
}

bool HaveLayouts(Instruction reduce) {
  for (Instruction operand : reduce.operands()) {
    if (!operand.shape().has_layout()) return false;
  }
  const Shape result = reduce.shape();
  if (result.IsArray()) return result.has_layout();
  for (Shape element : result.elements()) {
    if (!element.has_layout()) return false;
  }
  return true;
}

// Copies the operands of a reduction of several arrays to the layout of the first.
bool EqualizeLayouts(PatternRewriter& rewriter, Instruction reduce) {
  if (!HaveLayouts(reduce)) return false;
  bool changed = false;
  const Shape first = reduce.operand(0).shape();
  for (int64_t k = 1; k < reduce.operand_count() / 2; ++k) {
    const Instruction operand = reduce.operand(k);
    if (LayoutOrder(operand.shape()) == LayoutOrder(first)) continue;
    const Shape shape = InOrder(rewriter, operand.shape(), LayoutOrder(first));
    changed |= rewriter.ReplaceOperand(reduce, k, rewriter.Make(Opcode::kCopy, shape, {operand.id()}));
  }
  return changed;
}

// Returns the shape of the result with the dimensions in the order that they have in the first operand.
Shape OperandOrder(PatternRewriter& rewriter, Instruction reduce) {
  const absl::Span<const int64_t> reduced = reduce.list_attr(Attr::kDimensions);
  std::vector<int64_t> order;
  for (int64_t d : LayoutOrder(reduce.operand(0).shape())) {
    if (std::find(reduced.begin(), reduced.end(), d) != reduced.end()) continue;
    order.push_back(d - std::count_if(reduced.begin(), reduced.end(), [d](int64_t r) { return r < d; }));
  }
  if (reduce.shape().IsArray()) return InOrder(rewriter, reduce.shape(), order);
  std::vector<Shape> elements;
  for (Shape element : reduce.shape().elements()) elements.push_back(InOrder(rewriter, element, order));
  return rewriter.shapes().Tuple(elements);
}

bool IsConvertOfReduce(PatternRewriter& rewriter, Instruction convert) {
  const Instruction reduce = convert.operand(0);
  return convert.opcode() == Opcode::kConvert && reduce.opcode() == Opcode::kReduce && reduce.shape().IsArray() &&
         HasOneUser(reduce) && !reduce.is_root() && rewriter.IsReplaceable(convert) && convert.shape().has_layout() &&
         LayoutOrder(convert.shape()) == LayoutOrder(reduce.shape());
}

// Reduces in the memory order of the operand, and copies the result to the given one.
bool DecomposeReduce(PatternRewriter& rewriter, Instruction reduce) {
  if (!HaveLayouts(reduce) || !rewriter.IsReplaceable(reduce)) return false;
  const Shape shape = OperandOrder(rewriter, reduce);
  if (shape == reduce.shape()) return false;
  // The copy comes after a conversion, so that it stays next to the reduction.
  if (HasOneUser(reduce) && IsConvertOfReduce(rewriter, reduce.users()[0])) return false;
  std::vector<InstructionId> operands;
  for (Instruction operand : reduce.operands()) operands.push_back(operand.id());
  const InstructionId in_order = rewriter.Make(Opcode::kReduce, shape, operands, OwnAttrs(reduce));
  if (shape.IsArray()) return rewriter.Replace(reduce, rewriter.Make(Opcode::kCopy, reduce.shape(), {in_order}));
  std::vector<InstructionId> copies;
  for (int64_t k = 0; k < shape.tuple_size(); ++k) {
    copies.push_back(rewriter.MakeCopy(rewriter.MakeElement(in_order, k), reduce.shape().element(k)));
  }
  return rewriter.Replace(reduce, rewriter.MakeTuple(copies));
}

bool DecomposeConvertedReduce(PatternRewriter& rewriter, Instruction convert) {
  const Instruction reduce = convert.operand(0);
  if (!IsConvertOfReduce(rewriter, convert) || !HaveLayouts(reduce) || !rewriter.IsReplaceable(reduce)) return false;
  const Shape shape = OperandOrder(rewriter, reduce);
  if (shape == reduce.shape()) return false;
  std::vector<InstructionId> operands;
  for (Instruction operand : reduce.operands()) operands.push_back(operand.id());
  const InstructionId in_order = rewriter.Make(Opcode::kReduce, shape, operands, OwnAttrs(reduce));
  rewriter.AddMetadataSource(in_order, reduce);
  const InstructionId converted = rewriter.MakeConvert(in_order, convert.shape().element_type());
  return rewriter.Replace(convert, rewriter.Make(Opcode::kCopy, convert.shape(), {converted}), {reduce});
}

bool AreConsecutive(absl::Span<const int64_t> dims) {
  for (size_t k = 1; k < dims.size(); ++k) {
    if (dims[k] != dims[k - 1] + 1) return false;
  }
  return true;
}

// Merges the batch dimensions of a dot into one.
bool MergeBatchDims(PatternRewriter& rewriter, Instruction dot) {
  const DotDims dims = DotDims::Of(dot);
  const int64_t count = static_cast<int64_t>(dims.lhs_batch.size());
  if (dot.operand_count() != 2 || count < 2 || !AreConsecutive(dims.lhs_batch) || !AreConsecutive(dims.rhs_batch) ||
      dot.operand(0).shape().has_dynamic_dims() || dot.operand(1).shape().has_dynamic_dims() ||
      !rewriter.IsReplaceable(dot)) {
    return false;
  }
  // Returns `shape` with `count` dimensions from `first` on merged.
  const auto merged = [&](Shape shape, int64_t first) {
    std::vector<int64_t> sizes;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d > first && d < first + count) {
        sizes.back() *= shape.dim(d);
      } else {
        sizes.push_back(shape.dim(d));
      }
    }
    return rewriter.shapes().Array(shape.element_type(), sizes);
  };
  const int64_t lhs = dims.lhs_batch[0], rhs = dims.rhs_batch[0];
  const InstructionId operands[] = {rewriter.MakeReshape(dot.operand(0).id(), merged(dot.operand(0).shape(), lhs)),
                                    rewriter.MakeReshape(dot.operand(1).id(), merged(dot.operand(1).shape(), rhs))};
  const auto renumbered = [&](absl::Span<const int64_t> given, int64_t first) {
    std::vector<int64_t> numbers(given.begin(), given.end());
    for (int64_t& d : numbers) d -= d > first ? count - 1 : 0;
    return numbers;
  };
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(dot)) {
    if (value.attr == Attr::kLhsBatchDims) value = rewriter.List(value.attr, {lhs});
    if (value.attr == Attr::kRhsBatchDims) value = rewriter.List(value.attr, {rhs});
    if (value.attr == Attr::kLhsContractingDims) {
      value = rewriter.List(value.attr, renumbered(dims.lhs_contracting, lhs));
    }
    if (value.attr == Attr::kRhsContractingDims) {
      value = rewriter.List(value.attr, renumbered(dims.rhs_contracting, rhs));
    }
    attrs.push_back(value);
  }
  const InstructionId made = rewriter.Make(Opcode::kDot, merged(dot.shape(), 0), operands, attrs);
  return rewriter.Replace(dot, rewriter.MakeReshape(made, dot.shape()));
}

// Makes the kernel of a grouped convolution dense: input features of other groups have weight zero.
bool RemoveFeatureGroups(PatternRewriter& rewriter, Instruction convolution) {
  const int64_t groups = convolution.int_attr(Attr::kFeatureGroupCount, 1);
  const ConvolutionDims dims = ConvolutionDims::Of(convolution);
  if (groups < 2 || convolution.operand_count() != 2 || !dims.ok() || !rewriter.IsReplaceable(convolution) ||
      convolution.has(Attr::kSparsityConfig) || convolution.operand(1).shape().has_dynamic_dims()) {
    return false;
  }
  const Instruction kernel = convolution.operand(1);
  const ElementType type = kernel.shape().element_type();
  const int64_t input = dims.kernel_input_feature, output = dims.kernel_output_feature;
  std::vector<int64_t> sizes(kernel.shape().dims().begin(), kernel.shape().dims().end());
  const int64_t input_size = sizes[static_cast<size_t>(input)], output_size = sizes[static_cast<size_t>(output)];
  if (input_size > INT32_MAX / groups || output_size > INT32_MAX || output_size % groups != 0 || input_size == 0 ||
      output_size == 0) {
    return false;
  }
  ShapeTable& shapes = rewriter.shapes();
  sizes[static_cast<size_t>(input)] = input_size * groups;
  const Shape dense = shapes.Array(type, sizes), numbers = shapes.Array(ElementType::kS32, sizes);
  const std::vector<InstructionId> copies(static_cast<size_t>(groups), kernel.id());
  const AttrValue along[] = {rewriter.List(Attr::kDimensions, {input})};
  const InstructionId tiled = rewriter.Make(Opcode::kConcatenate, dense, copies, along);
  const auto group_of = [&](int64_t dimension, int64_t size) {
    const AttrValue iota[] = {rewriter.Int(Attr::kIotaDimension, dimension)};
    const InstructionId index = rewriter.Make(Opcode::kIota, numbers, {}, iota);
    const InstructionId divisor =
        rewriter.MakeSplat(numbers, rewriter.MakeScalarConstant(ElementType::kS32, static_cast<double>(size)));
    return rewriter.MakeLike(Opcode::kDivide, {index, divisor});
  };
  const InstructionId same = rewriter.MakeCompare(ComparisonDirection::kEq, group_of(input, input_size),
                                                  group_of(output, output_size / groups));
  const InstructionId zero = rewriter.MakeSplat(dense, rewriter.MakeScalarConstant(type, 0));
  const InstructionId masked = rewriter.Make(Opcode::kSelect, dense, {same, tiled, zero});
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(convolution)) {
    if (value.attr != Attr::kFeatureGroupCount) attrs.push_back(value);
  }
  return rewriter.ReplaceWithNew(convolution, Opcode::kConvolution, {convolution.operand(0).id(), masked}, attrs);
}

// Makes the groups of the batch groups of features: group g of the output features is computed from group g of the
// input's batch, which becomes group g of its features.
bool MoveBatchGroups(PatternRewriter& rewriter, Instruction convolution) {
  const int64_t groups = convolution.int_attr(Attr::kBatchGroupCount, 1);
  const ConvolutionDims dims = ConvolutionDims::Of(convolution);
  if (groups < 2 || convolution.operand_count() != 2 || !dims.ok() || !rewriter.IsReplaceable(convolution) ||
      convolution.int_attr(Attr::kFeatureGroupCount, 1) != 1 || convolution.has(Attr::kSparsityConfig)) {
    return false;
  }
  const Instruction input = convolution.operand(0);
  const Shape shape = input.shape();
  const int64_t batch = dims.input_batch, feature = dims.input_feature;
  if (shape.has_dynamic_dims() || shape.dim(batch) % groups != 0) return false;
  // The batch split into groups and the rest, then the groups just before the features, then one dimension of both.
  std::vector<int64_t> split, order, moved, merged;
  int64_t group_dim = 0, feature_dim = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d == batch) {
      group_dim = static_cast<int64_t>(split.size());
      split.push_back(groups);
    }
    if (d == feature) feature_dim = static_cast<int64_t>(split.size());
    split.push_back(d == batch ? shape.dim(d) / groups : shape.dim(d));
    merged.push_back(d == batch ? shape.dim(d) / groups : d == feature ? shape.dim(d) * groups : shape.dim(d));
  }
  for (int64_t d = 0; d <= shape.rank(); ++d) {
    if (d == group_dim) continue;
    if (d == feature_dim) order.push_back(group_dim);
    order.push_back(d);
  }
  for (int64_t d : order) moved.push_back(split[static_cast<size_t>(d)]);
  ShapeTable& shapes = rewriter.shapes();
  const ElementType type = shape.element_type();
  const AttrValue along[] = {rewriter.List(Attr::kDimensions, order)};
  const InstructionId parts = rewriter.MakeReshape(input.id(), shapes.Array(type, split));
  const InstructionId features = rewriter.MakeReshape(
      rewriter.Make(Opcode::kTranspose, shapes.Array(type, moved), {parts}, along), shapes.Array(type, merged));
  std::vector<AttrValue> attrs;
  for (AttrValue value : OwnAttrs(convolution)) {
    if (value.attr != Attr::kBatchGroupCount && value.attr != Attr::kFeatureGroupCount) attrs.push_back(value);
  }
  attrs.push_back(rewriter.Int(Attr::kFeatureGroupCount, groups));
  return rewriter.ReplaceWithNew(convolution, Opcode::kConvolution, {features, convolution.operand(1).id()}, attrs);
}

}  // namespace

void AddTreeReductionRewriterRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kReduce}, "reductions made trees", ReduceByTree);
}

void AddReduceDecomposerRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kReduce}, "operands of reductions given one layout", EqualizeLayouts);
  rules->Add({Opcode::kReduce}, "reductions done in the layout of their operand", DecomposeReduce);
  rules->Add({Opcode::kConvert}, "converted reductions done in the layout of their operand", DecomposeConvertedReduce);
}

void AddDotDimensionMergerRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kDot}, "batch dimensions merged", MergeBatchDims);
}

void AddConvolutionGroupConverterRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kConvolution}, "groups of batches made groups of features", MoveBatchGroups);
  rules->Add({Opcode::kConvolution}, "groups of features removed", RemoveFeatureGroups);
}

HLOKIT_PASS(ReduceDecomposer) {
  return {.name = "reduce-decomposer",
          .category = "expand",
          .summary = "do reductions in the layout of their operand",
          .doc =
              "A reduction whose result has the dimensions in another memory order than its operand "
              "becomes one in the operand's order and a copy, after a conversion if that is the only "
              "user. Operands of reductions of several arrays are copied to the layout of the first. "
              "As XLA's, except that a backend cannot exempt reductions, and that tiles and memory "
              "spaces stay.",
          .example = R"(sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[2,3,4]{2,1,0} parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[2,3]{0,1} reduce(p, zero), dimensions={2}, to_apply=sum, metadata={op_name="f/sum"}
})",
          .create = MakePass<RulesOf<AddReduceDecomposerRules>>};
}

HLOKIT_PASS(TreeReductionRewriter) {
  return {.name = "tree-reduction-rewriter",
          .category = "expand",
          .summary = "reduce large dimensions in several steps",
          .doc =
              "Windows are reduced first, then their results. Only with add, multiply, minimum, maximum, "
              "and, or from an initial value that changes nothing; XLA's trusts any reducer. Padding "
              "is at the end, where XLA's is at both.",
          .options = {{.name = "reduce-window-size",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "32",
                       .doc = "the size of a window in each reduced dimension",
                       .min = 2}},
          .tolerance = 1e-4,
          .create = MakePass<RulesOf<AddTreeReductionRewriterRules, RewriteScope::kSequential>>};
}

HLOKIT_PASS(DotDimensionMerger) {
  return {.name = "dot-dimension-merger",
          .category = "expand",
          .summary = "merge batch dimensions of dots",
          .doc =
              "Batch dimensions that are consecutive in both operands become one, with reshapes "
              "around the dot. XLA's requires that of their layouts too.",
          .example = R"(ENTRY e {
  a = f32[4,2,3,5] parameter(0)
  b = f32[2,3,4,6] parameter(1)
  ROOT d = f32[2,3,5,6] dot(a, b), lhs_batch_dims={1,2}, rhs_batch_dims={0,1}, lhs_contracting_dims={0}, rhs_contracting_dims={2}, metadata={op_name="f/dot"}
})",
          .create = MakePass<RulesOf<AddDotDimensionMergerRules>>};
}

HLOKIT_PASS(ConvolutionGroupConverter) {
  return {.name = "convolution-group-converter",
          .category = "expand",
          .summary = "expand convolutions with groups",
          .doc =
              "The kernel becomes dense: a weight is zero if its features are in different groups. "
              "Groups of the batch become groups of features first. XLA's does one or the other, as "
              "the backend says, and asks it for the cost; it makes groups of the batch a spatial "
              "dimension with dilation, or computes all and masks the result. An infinity or NaN in one "
              "group gives NaN in all, since zero weights multiply it.",
          .example = R"(ENTRY e {
  x = f32[1,4,4] parameter(0)
  k = f32[2,2,6] parameter(1)
  ROOT c = f32[1,3,6] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2, metadata={op_name="f/conv"}
})",
          .tolerance = 1e-5,
          .create = MakePass<RulesOf<AddConvolutionGroupConverterRules>>};
}

}  // namespace hlokit
