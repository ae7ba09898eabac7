// SPDX-License-Identifier: Apache-2.0
#include "passes/expanders/topk_rewriter.h"

#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/builder/builder.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/dead_operands.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/splat.h"

namespace hlokit {
namespace {

// ---- comparators ----

bool IsConversion(Instruction i, Opcode opcode, ElementType type) {
  return i.opcode() == opcode && i.shape().IsScalar() && i.shape().element_type() == type;
}

// Returns true for the largest s32, also as a u32 by a conversion.
bool IsLargest(Instruction i) {
  if (i.opcode() == Opcode::kConvert) i = i.operand(0);
  return IntegerConstant(i) == INT32_MAX;
}

// Returns the float x if `key` is an s32 that is ordered as x is by total order: its bits, and the other ones below the
// sign if it is negative. In programs written before HLO had comparisons by total order.
std::optional<Instruction> FloatOfKey(Instruction key) {
  if (key.opcode() != Opcode::kSelect || !IsConversion(key.operand(2), Opcode::kBitcastConvert, ElementType::kS32)) {
    return std::nullopt;
  }
  const Instruction is_negative = key.operand(0), flipped = key.operand(1), bits = key.operand(2);
  if (is_negative.opcode() != Opcode::kCompare || is_negative.operand(0) != bits ||
      is_negative.enum_attr(Attr::kDirection, ComparisonDirection::kEq) != ComparisonDirection::kLt ||
      IntegerConstant(is_negative.operand(1)) != 0) {
    return std::nullopt;
  }
  const Instruction x = bits.operand(0);
  const auto is_bits = [&](Instruction i, ElementType type) {
    return IsConversion(i, Opcode::kBitcastConvert, type) && i.operand(0) == x;
  };
  bool flips = false;
  if (flipped.opcode() == Opcode::kXor) {
    for (int64_t k = 0; k < 2; ++k) {
      flips |= IsLargest(flipped.operand(k)) && is_bits(flipped.operand(1 - k), ElementType::kS32);
    }
  } else if (flipped.opcode() == Opcode::kBitcastConvert && flipped.operand(0).opcode() == Opcode::kSubtract) {
    const Instruction difference = flipped.operand(0);
    flips = IsLargest(difference.operand(0)) && is_bits(difference.operand(1), ElementType::kU32);
  }
  if (!flips) return std::nullopt;
  return x;
}

// Returns the element that the comparator compares, through conversions that keep the order.
Instruction ComparedBy(Instruction key) {
  if (const std::optional<Instruction> x = FloatOfKey(key)) key = *x;
  return IsConversion(key, Opcode::kConvert, ElementType::kF32) &&
                 key.operand(0).shape().element_type() == ElementType::kBF16
             ? key.operand(0)
             : key;
}

// Returns true if the comparator orders elements of the first operand descending, by total order.
bool IsDescending(Computation comparator) {
  Instruction root = comparator.root();
  // select(true, comparison, true), as XLA's builder makes it.
  if (root.opcode() == Opcode::kSelect) {
    const std::optional<Splat> known = SplatOf(root.operand(0));
    if (!known || !known->IsAllOnes()) return false;
    root = root.operand(1);
  }
  if (root.opcode() != Opcode::kCompare) return false;
  const ComparisonDirection direction = root.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
  if (direction != ComparisonDirection::kGt && direction != ComparisonDirection::kLt) return false;
  const bool greater = direction == ComparisonDirection::kGt;
  const bool total = IsInteger(root.operand(0).shape().element_type()) ||
                     root.enum_attr(Attr::kCompareType, ComparisonType::kFloat) == ComparisonType::kTotalOrder;
  return total && ComparedBy(root.operand(greater ? 0 : 1)) == comparator.parameter(0) &&
         ComparedBy(root.operand(greater ? 1 : 0)) == comparator.parameter(1);
}

// ---- sorts ----

// A sort, the slices of its results, and what becomes of it.
struct SortedPrefix {
  Instruction sort;
  int64_t dimension = 0;
  int64_t k = 0;
  std::vector<std::pair<Instruction, int64_t>> slices;  // with the number of the result
  std::vector<Instruction> elements;                    // get-tuple-elements between sort and slices
};

// Returns true if the indices of the sorted dimension are sorted along.
bool IsIndex(Instruction i, int64_t dimension) {
  if (i.opcode() == Opcode::kBroadcast && i.operand(0).shape().rank() == 1) {
    if (i.list_attr(Attr::kDimensions)[0] != dimension) return false;
    dimension = 0;
    i = i.operand(0);
  }
  return i.opcode() == Opcode::kIota && i.shape().element_type() == ElementType::kS32 &&
         i.int_attr(Attr::kIotaDimension) == dimension;
}

// Returns true if `i` cannot be replaced: custom-calls TopK are not partitioned.
bool IsTied(Instruction i) { return i.has_control_edges() || i.has(Attr::kSharding); }

// Adds a slice of the first elements of result `result`. Returns false if it is something else.
bool AddSlice(SortedPrefix* prefix, Instruction slice, int64_t result) {
  if (slice.opcode() != Opcode::kSlice || IsTied(slice)) return false;
  const SliceView view = SliceView::Of(slice);
  const Shape whole = slice.operand(0).shape();
  for (int64_t d = 0; d < whole.rank(); ++d) {
    if (view.start(d) != 0 || view.stride(d) != 1) return false;
    if (d != prefix->dimension && view.limit(d) != whole.dim(d)) return false;
  }
  const int64_t k = view.limit(prefix->dimension);
  ShapeTable& shapes = slice.module().context().shapes;
  if (slice.shape() != shapes.Array(slice.shape().element_type(), slice.shape().dims())) return false;  // a layout
  if (!prefix->slices.empty() && k != prefix->k) return false;
  prefix->k = k;
  prefix->slices.emplace_back(slice, result);
  return true;
}

std::optional<SortedPrefix> MatchSort(Instruction sort) {
  const int64_t count = sort.operand_count();
  if (sort.opcode() != Opcode::kSort || count > 2 || sort.is_root() || IsTied(sort)) return std::nullopt;
  SortedPrefix prefix;
  prefix.sort = sort;
  prefix.dimension = sort.list_attr(Attr::kDimensions)[0];
  const Shape shape = sort.operand(0).shape();
  const ElementType type = shape.element_type();
  if ((type != ElementType::kF32 && type != ElementType::kBF16) || shape.has_dynamic_dims() ||
      (prefix.dimension != 0 && prefix.dimension != shape.rank() - 1) || shape.element_count() == 0 ||
      shape.dim(prefix.dimension) > INT32_MAX || (count == 2 && !IsIndex(sort.operand(1), prefix.dimension)) ||
      !IsDescending(sort.computation_attr(Attr::kToApply))) {
    return std::nullopt;
  }
  for (Instruction user : sort.users()) {
    if (count == 1) {
      if (!AddSlice(&prefix, user, 0)) return std::nullopt;
      continue;
    }
    if (user.opcode() != Opcode::kGetTupleElement || user.is_root() || IsTied(user)) return std::nullopt;
    prefix.elements.push_back(user);
    for (Instruction slice : user.users()) {
      if (!AddSlice(&prefix, slice, user.int_attr(Attr::kIndex))) return std::nullopt;
    }
  }
  if (prefix.slices.empty() || prefix.k == 0) return std::nullopt;
  return prefix;
}

// Replaces the slices by the results of a custom-call of one or two dimensions, the last of which is sorted.
void MakeTopK(Module& module, const SortedPrefix& prefix) {
  const Instruction sort = prefix.sort, data = sort.operand(0);
  const Shape shape = data.shape();
  const ElementType type = shape.element_type();
  ShapeTable& shapes = module.context().shapes;
  Builder b(&module, sort.id());
  const AnnotationScope scope(&b, {sort.id()});
  const bool batched = shape.rank() > 1, first = batched && prefix.dimension == 0;
  const int64_t length = shape.dim(prefix.dimension), batch = shape.element_count() / length;
  const AttrValue swap[] = {b.List(Attr::kDimensions, {1, 0})};
  InstructionId input = data.id();
  if (batched) {
    const std::vector<int64_t> rows = first ? std::vector<int64_t>{length, batch} : std::vector<int64_t>{batch, length};
    input = b.MakeReshape(input, shapes.Array(type, rows));
    if (first) input = b.Make(Opcode::kTranspose, shapes.Array(type, {batch, length}), {input}, swap);
  }
  const std::vector<int64_t> sizes = batched ? std::vector<int64_t>{batch, prefix.k} : std::vector<int64_t>{prefix.k};
  const ElementType types[] = {type, ElementType::kS32};
  const AttrValue attrs[] = {b.String(Attr::kCustomCallTarget, "TopK"),
                             b.CallsEach(Attr::kCalledComputations, {sort.computation_attr(Attr::kToApply).id()})};
  const Shape result = shapes.Tuple({shapes.Array(types[0], sizes), shapes.Array(types[1], sizes)});
  const InstructionId topk = b.WithName("topk").Make(Opcode::kCustomCall, result, {input}, attrs);
  InstructionId results[2];
  std::vector<int64_t> final_sizes(shape.dims().begin(), shape.dims().end());
  final_sizes[static_cast<size_t>(prefix.dimension)] = prefix.k;
  for (size_t n = 0; n < 2; ++n) {
    const bool used = absl::c_any_of(prefix.slices, [&](const auto& slice) { return slice.second == int64_t(n); });
    if (!used) continue;
    InstructionId element = b.MakeElement(topk, static_cast<int64_t>(n));
    if (first) element = b.Make(Opcode::kTranspose, shapes.Array(types[n], {prefix.k, batch}), {element}, swap);
    results[n] = b.MakeReshape(element, shapes.Array(types[n], final_sizes));
  }
  for (const auto& [slice, n] : prefix.slices) Replace(module, slice.id(), results[n]);
  for (Instruction element : prefix.elements) EraseDead(module, element.id(), topk);
  EraseDead(module, sort.id(), topk);
}

}  // namespace

absl::StatusOr<bool> TopkRewriter::Run(Module& module) {
  const ComputationRoles roles = RolesOf(module);
  int64_t rewritten = 0;
  for (Computation c : module.computations()) {
    if (roles.fusion[c.id().value] != 0 || roles.async[c.id().value] != 0) continue;
    std::vector<SortedPrefix> found;
    for (Instruction i : c.instructions()) {
      if (std::optional<SortedPrefix> prefix = MatchSort(i)) found.push_back(*std::move(prefix));
    }
    for (const SortedPrefix& prefix : found) MakeTopK(module, prefix);
    rewritten += static_cast<int64_t>(found.size());
  }
  if (rewritten > 0) Count("sorts made top-k", rewritten);
  return rewritten > 0;
}

HLOKIT_PASS(TopkRewriter) {
  return {.name = "topk-rewriter",
          .category = "expand",
          .summary = "replace sorts of which the first elements are used by top-k",
          .doc =
              "A descending sort of f32 or bf16, alone or with an iota, along the first or last dimension, "
              "becomes the custom-call TopK. As XLA's, which asks the backend whether that is profitable, "
              "and accepts comparators that are not a total order: here these stay, since zeros of both signs "
              "would be in another order. Several slices of one result are accepted too, if they are "
              "equally long.",
          .example = R"(greater {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER
}
ENTRY e {
  p = f32[2,8] parameter(0)
  i = s32[2,8] iota(), iota_dimension=1
  s = (f32[2,8], s32[2,8]) sort(p, i), dimensions={1}, is_stable=true, to_apply=greater, metadata={op_name="f/sort"}
  all = s32[2,8] get-tuple-element(s), index=1
  ROOT largest = s32[2,3] slice(all), slice={[0:2], [0:3]}, metadata={op_name="f/first"}
})",
          .create = MakePass<TopkRewriter>};
}

}  // namespace hlokit
