// SPDX-License-Identifier: Apache-2.0
// Expands gathers and scatters into loops over the index vectors, with a dynamic slice or update in each iteration: for
// targets without indexed addressing. As XLA's GatherExpander and ScatterExpander.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/builder/builder.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/side_effects.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/expanders/loop_builder.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

// Erases unused instructions, in reverse order, since users come after their operands.
void EraseUnused(Module& module, Computation c) {
  for (InstructionId id = c.record().last, previous; id.valid(); id = previous) {
    previous = module.record(id).previous;
    const Instruction i = module.instruction(id);
    const bool plain = !HasSideEffectNoRecurse(i) && !MightHaveCalledComputations(i.opcode()) && !i.has_control_edges();
    if (plain && !i.has_users() && !i.is_root() && i.opcode() != Opcode::kParameter) module.Erase(id);
  }
}

// Common form of gathers and scatters: an array that is indexed, and vectors of start indices of windows in it. The
// other array, the result of a gather or the updates of a scatter, holds the windows.
struct Indexing {
  Instruction array, indices;
  Shape windows;                          // of the other array
  absl::Span<const int64_t> window_dims;  // of `windows`: dimensions within a window
  absl::Span<const int64_t> collapsed;    // of `array`: dimensions of size 1 in a window that `windows` lacks
  absl::Span<const int64_t> index_map;    // component k of an index vector is the start in this dimension of `array`
  absl::Span<const int64_t> batching;     // of `array`: the start is the index in ...
  absl::Span<const int64_t> indices_batching;  // ... this dimension of `indices`
  int64_t vector_dim = 0;                      // of `indices`

  std::vector<int64_t> BatchSizes() const {
    std::vector<int64_t> sizes;
    for (int64_t d = 0; d < indices.shape().rank(); ++d) {
      if (d != vector_dim) sizes.push_back(indices.shape().dim(d));
    }
    return sizes;
  }
  bool IsKept(int64_t dim) const {
    return !absl::c_linear_search(collapsed, dim) && !absl::c_linear_search(batching, dim);
  }
};

// Builds such a loop.
class IndexedLoop {
 public:
  IndexedLoop(PatternRewriter& rewriter, Instruction i, const Indexing& indexing, std::vector<int64_t> window_sizes)
      : rewriter_(rewriter), instruction_(i), x_(indexing), window_sizes_(std::move(window_sizes)) {
    for (int64_t size : x_.BatchSizes()) count_ *= size;
    const ElementType type = x_.indices.shape().element_type();
    const absl::Span<const int64_t> dims = x_.array.shape().dims();
    const bool large = std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d > INT32_MAX; });
    // Unsigned integers fit the signed type of twice their size, except the widest.
    type_ = type == ElementType::kU64             ? type
            : type == ElementType::kS32 && !large ? type
            : BitsOf(type) < 32 && !large         ? ElementType::kS32
                                                  : ElementType::kS64;
  }

  bool Applies() const {
    return rewriter_.IsReplaceable(instruction_) && IsInteger(x_.indices.shape().element_type()) &&
           x_.array.shape().rank() > 0 && x_.array.shape().element_count() != 0 && x_.windows.element_count() != 0 &&
           count_ <= INT32_MAX;
  }

  int64_t count() const { return count_; }
  Shape Array(ElementType type, std::vector<int64_t> dims) { return rewriter_.shapes().Array(type, dims); }
  // Returns `dims` after a dimension of all index vectors.
  std::vector<int64_t> ForEach(absl::Span<const int64_t> dims, int64_t count) {
    std::vector<int64_t> result = {count};
    result.insert(result.end(), dims.begin(), dims.end());
    return result;
  }

  // Returns the start in each dimension of the array, one row per index vector.
  InstructionId Starts() {
    InstructionId indices = rewriter_.MakeConvert(x_.indices.id(), type_);
    const int64_t rank = x_.indices.shape().rank();
    if (x_.vector_dim + 1 < rank) {
      std::vector<int64_t> order(static_cast<size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      order.erase(order.begin() + x_.vector_dim);
      order.push_back(x_.vector_dim);
      indices = Transpose(indices, order);
    }
    const int64_t components = static_cast<int64_t>(x_.index_map.size());
    indices = rewriter_.MakeReshape(indices, Array(type_, {count_, components}));
    const Shape column = Array(type_, {count_, 1});
    std::vector<InstructionId> columns;
    for (int64_t d = 0; d < x_.array.shape().rank(); ++d) {
      const int64_t component = std::find(x_.index_map.begin(), x_.index_map.end(), d) - x_.index_map.begin();
      const size_t batch =
          static_cast<size_t>(std::find(x_.batching.begin(), x_.batching.end(), d) - x_.batching.begin());
      if (batch < x_.batching.size()) {
        // Also of a dimension that has a component.
        const int64_t dim = x_.indices_batching[batch];
        const AttrValue attrs[] = {rewriter_.Int(Attr::kIotaDimension, dim - (dim > x_.vector_dim ? 1 : 0))};
        const InstructionId iota = rewriter_.Make(Opcode::kIota, Array(type_, x_.BatchSizes()), {}, attrs);
        columns.push_back(rewriter_.MakeReshape(iota, column));
      } else if (component < components) {
        const AttrValue attrs[] = {rewriter_.List(Attr::kSlice, {0, count_, 1, component, component + 1, 1})};
        columns.push_back(rewriter_.Make(Opcode::kSlice, column, {indices}, attrs));
      } else {
        columns.push_back(rewriter_.MakeSplat(column, rewriter_.MakeScalarConstant(type_, 0)));
      }
    }
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, {1})};
    return rewriter_.Make(Opcode::kConcatenate, Array(type_, {count_, x_.array.shape().rank()}), columns, attrs);
  }

  // Returns the position of each dimension of `windows` in an array of all batch dimensions, then all window
  // dimensions.
  std::vector<int64_t> Order() const {
    std::vector<int64_t> order;
    int64_t window = static_cast<int64_t>(x_.BatchSizes().size()), batch = 0;
    for (int64_t d = 0; d < x_.windows.rank(); ++d)
      order.push_back(absl::c_linear_search(x_.window_dims, d) ? window++ : batch++);
    return order;
  }
  InstructionId Transpose(InstructionId array, const std::vector<int64_t>& order) {
    if (std::is_sorted(order.begin(), order.end())) return array;
    const Shape from = rewriter_.at(array).shape();
    std::vector<int64_t> sizes;
    for (int64_t d : order) sizes.push_back(from.dim(d));
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, order)};
    return rewriter_.Make(Opcode::kTranspose, Array(from.element_type(), sizes), {array}, attrs);
  }

  // Builds a loop over a counter and `state`. `body` gets the builder, the counter and the elements, and returns the
  // elements of the next iteration.
  template <typename Body>
  InstructionId Loop(std::vector<InstructionId> state, Body body) {
    return MakeCountedLoop(rewriter_, instruction_, count_, std::move(state), body);
  }
  // Returns element `k` of the final state.
  InstructionId ResultOf(InstructionId loop, int64_t k) { return rewriter_.MakeElement(loop, k + 1); }

  // ---- in the body ----
  InstructionId Get(Builder::Result result) { return result.ok() ? *result : InstructionId(); }
  // Reads or writes row `counter` of an array of windows.
  InstructionId ReadRow(Builder& b, InstructionId rows, InstructionId counter, absl::Span<const int64_t> sizes) {
    const InstructionId row = Get(b.DynamicSlice(rows, RowStart(b, counter, sizes.size()), ForEach(sizes, 1)));
    return Get(b.Reshape(row, sizes));
  }
  InstructionId WriteRow(Builder& b, InstructionId rows, InstructionId row, InstructionId counter,
                         absl::Span<const int64_t> sizes) {
    const InstructionId update = Get(b.Reshape(row, ForEach(sizes, 1)));
    return Get(b.DynamicUpdateSlice(rows, update, RowStart(b, counter, sizes.size())));
  }
  // Returns the starts of this iteration, as scalars.
  std::vector<InstructionId> StartsOf(Builder& b, InstructionId starts, InstructionId counter) {
    const int64_t rank = x_.array.shape().rank();
    const InstructionId row = ReadRow(b, starts, counter, {rank});
    std::vector<InstructionId> scalars;
    for (int64_t d = 0; d < rank; ++d) scalars.push_back(Get(b.Reshape(Get(b.Slice(row, {d}, {d + 1})), {})));
    return scalars;
  }
  // Returns true at run time if the window is within the array.
  InstructionId Fits(Builder& b, const std::vector<InstructionId>& starts) {
    InstructionId all;
    for (int64_t d = 0; d < x_.array.shape().rank(); ++d) {
      if (!MayNotFit(d)) continue;
      const InstructionId start = starts[static_cast<size_t>(d)];
      const int64_t last = x_.array.shape().dim(d) - window_sizes_[static_cast<size_t>(d)];
      const InstructionId is_before_end = Get(b.Compare(start, Number(b, last), ComparisonDirection::kLe));
      const InstructionId is_after_begin = Get(b.Compare(Number(b, 0), start, ComparisonDirection::kLe));
      const InstructionId inside = Both(b, is_after_begin, is_before_end);
      all = all.valid() ? Both(b, all, inside) : inside;
    }
    return all.valid() ? all : Get(b.ConstantPred(true));
  }

 private:
  // Returns true if windows may begin where they do not fit in a dimension of the array.
  bool MayNotFit(int64_t d) const {
    const auto at = absl::c_find(x_.batching, d);
    if (at == x_.batching.end()) return absl::c_linear_search(x_.index_map, d);
    const int64_t dim = x_.indices_batching[static_cast<size_t>(at - x_.batching.begin())];
    return x_.indices.shape().dim(dim) > x_.array.shape().dim(d);
  }
  InstructionId Both(Builder& b, InstructionId x, InstructionId y) { return Get(b.Binary(Opcode::kAnd, x, y)); }
  InstructionId Number(Builder& b, int64_t value) {
    Literal literal = Literal::Zeros(b.shapes().Scalar(type_));
    const size_t bytes = static_cast<size_t>(BytesOf(type_));
    for (size_t k = 0; k < bytes; ++k)
      literal.data()[k] = static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * k));
    return Get(b.Constant(literal));
  }
  std::vector<InstructionId> RowStart(Builder& b, InstructionId counter, size_t rank) {
    const InstructionId zero = Get(b.ConstantS32(0));
    std::vector<InstructionId> starts(rank + 1, zero);
    starts[0] = counter;
    return starts;
  }

  PatternRewriter& rewriter_;
  Instruction instruction_;
  const Indexing& x_;
  std::vector<int64_t> window_sizes_;  // by dimension of the array
  int64_t count_ = 1;
  ElementType type_;  // of the starts
};

bool ExpandGather(PatternRewriter& rewriter, Instruction gather) {
  const GatherDims dims = GatherDims::Of(gather);
  const Indexing indexing = {gather.operand(0),
                             gather.operand(1),
                             gather.shape(),
                             dims.offset_dims,
                             dims.collapsed_slice_dims,
                             dims.start_index_map,
                             dims.operand_batching_dims,
                             dims.start_indices_batching_dims,
                             dims.index_vector_dim};
  std::vector<int64_t> sizes(dims.slice_sizes.begin(), dims.slice_sizes.end());
  for (size_t d = 0; d < sizes.size(); ++d) {
    // Also where the slice of a dropped dimension has size 0.
    if (!indexing.IsKept(static_cast<int64_t>(d))) sizes[d] = 1;
  }
  IndexedLoop loop(rewriter, gather, indexing, sizes);
  if (!loop.Applies()) return false;
  const ElementType type = gather.shape().element_type();
  const InstructionId zeros =
      rewriter.MakeSplat(loop.Array(type, loop.ForEach(sizes, loop.count())), rewriter.MakeScalarConstant(type, 0));
  const InstructionId loop_state =
      loop.Loop({loop.Starts(), gather.operand(0).id(), zeros},
                [&](Builder& b, InstructionId counter, std::vector<InstructionId> state) {
                  const std::vector<InstructionId> starts = loop.StartsOf(b, state[0], counter);
                  const InstructionId window = loop.Get(b.DynamicSlice(state[1], starts, sizes));
                  state[2] = loop.WriteRow(b, state[2], window, counter, sizes);
                  return state;
                });
  const InstructionId rows = loop.ResultOf(loop_state, 2);
  std::vector<int64_t> row_sizes = indexing.BatchSizes();
  for (int64_t d = 0; d < indexing.array.shape().rank(); ++d) {
    if (indexing.IsKept(d)) row_sizes.push_back(sizes[static_cast<size_t>(d)]);
  }
  const InstructionId result = rewriter.MakeReshape(rows, loop.Array(type, row_sizes));
  return rewriter.Replace(gather, loop.Transpose(result, loop.Order()));
}

// A scatter into one array or several of the same dimensions.
class ScatterParts {
 public:
  explicit ScatterParts(Instruction scatter)
      : scatter_(scatter),
        count_((scatter.operand_count() - 1) / 2),
        combine_(scatter.computation_attr(Attr::kToApply)) {}

  int64_t count() const { return count_; }
  Instruction array(int64_t k) const { return scatter_.operand(k); }
  Instruction indices() const { return scatter_.operand(count_); }
  Instruction updates(int64_t k) const { return scatter_.operand(count_ + 1 + k); }
  // Returns true if the scatter converts no types.
  bool IsPlain() const {
    if (count_ < 1 || scatter_.operand_count() != 2 * count_ + 1 || combine_.parameter_count() != 2 * count_)
      return false;
    if (scatter_.shape().IsTuple() != (count_ > 1)) return false;
    if (count_ > 1 && (!combine_.root().shape().IsTuple() || combine_.root().shape().tuple_size() != count_))
      return false;
    for (int64_t k = 0; k < count_; ++k) {
      const ElementType type = array(k).shape().element_type();
      const Shape result = count_ > 1 ? combine_.root().shape().element(k) : combine_.root().shape();
      if (array(k).shape().dims() != array(0).shape().dims() ||
          updates(k).shape().dims() != updates(0).shape().dims() || updates(k).shape().element_type() != type ||
          result.element_type() != type || combine_.parameter(k).shape() != result ||
          combine_.parameter(count_ + k).shape() != result) {
        return false;
      }
    }
    return true;
  }
  // Returns a computation of the new element of array `k` from elements of the arrays, then updates. Clones the
  // combiner if there are several arrays.
  ComputationId CombineOf(Module& module, int64_t k) const {
    if (count_ == 1) return combine_.id();
    const ComputationId part = module.CloneComputation(combine_.id());
    const Instruction root = module.computation(part).root();
    if (root.opcode() == Opcode::kTuple) {
      const InstructionId element = root.operand(k).id();
      module.SetRoot(part, element);
      if (!root.has_users()) MergeMetadata(module, root.id(), element);
      EraseUnused(module, module.computation(part));
    } else {
      Builder builder(&module, part);
      builder.SetMetadata(root.metadata_id());
      const InstructionId element = builder.MakeElement(root.id(), k);
      module.SetRoot(part, element);
    }
    return part;
  }

 private:
  Instruction scatter_;
  int64_t count_;
  Computation combine_;
};

bool ExpandScatter(PatternRewriter& rewriter, Instruction scatter) {
  const ScatterParts parts(scatter);
  if (!parts.IsPlain()) return false;
  const Instruction array = parts.array(0), updates = parts.updates(0);
  const ScatterDims dims = ScatterDims::Of(scatter);
  const Indexing indexing = {array,
                             parts.indices(),
                             updates.shape(),
                             dims.update_window_dims,
                             dims.inserted_window_dims,
                             dims.scatter_dims_to_operand_dims,
                             dims.input_batching_dims,
                             dims.scatter_indices_batching_dims,
                             dims.index_vector_dim};
  std::vector<int64_t> sizes;
  size_t next = 0;
  for (int64_t d = 0; d < array.shape().rank(); ++d) {
    sizes.push_back(indexing.IsKept(d) ? updates.shape().dim(dims.update_window_dims[next++]) : 1);
  }
  IndexedLoop loop(rewriter, scatter, indexing, sizes);
  if (!loop.Applies()) return false;
  // The updates with the batch dimensions first.
  const std::vector<int64_t> order = loop.Order();
  std::vector<int64_t> inverse(order.size());
  for (size_t d = 0; d < order.size(); ++d) inverse[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  const auto count = static_cast<size_t>(parts.count());
  std::vector<InstructionId> state = {loop.Starts()};  // then all updates, then all arrays
  std::vector<ComputationId> combines;
  for (int64_t k = 0; k < parts.count(); ++k) {
    const Shape rows = loop.Array(parts.updates(k).shape().element_type(), loop.ForEach(sizes, loop.count()));
    state.push_back(rewriter.MakeReshape(loop.Transpose(parts.updates(k).id(), inverse), rows));
    combines.push_back(parts.CombineOf(rewriter.module(), k));
  }
  for (int64_t k = 0; k < parts.count(); ++k) state.push_back(parts.array(k).id());
  std::vector<int64_t> all(sizes.size());
  std::iota(all.begin(), all.end(), 0);
  const InstructionId loop_state =
      loop.Loop(state, [&](Builder& b, InstructionId counter, std::vector<InstructionId> at) {
        const std::vector<InstructionId> starts = loop.StartsOf(b, at[0], counter);
        std::vector<InstructionId> elements(2 * count);  // windows of the arrays, then updates
        for (size_t k = 0; k < count; ++k) {
          elements[count + k] = loop.ReadRow(b, at[1 + k], counter, sizes);
          elements[k] = loop.Get(b.DynamicSlice(at[1 + count + k], starts, sizes));
        }
        std::vector<InstructionId> combined;
        for (ComputationId combine : combines) {
          const AttrValue attrs[] = {b.List(Attr::kDimensions, all), Builder::Calls(Attr::kToApply, combine)};
          combined.push_back(loop.Get(b.Add(Opcode::kMap, elements, attrs)));
        }
        // Windows that do not fit are dropped as a whole.
        const InstructionId fits = loop.Get(b.Broadcast(loop.Fits(b, starts), sizes, {}));
        for (size_t k = 0; k < count; ++k) {
          const InstructionId after = loop.Get(b.Select(fits, combined[k], elements[k]));
          at[1 + count + k] = loop.Get(b.DynamicUpdateSlice(at[1 + count + k], after, starts));
        }
        return at;
      });
  std::vector<InstructionId> results;
  for (int64_t k = 0; k < parts.count(); ++k) results.push_back(loop.ResultOf(loop_state, 1 + parts.count() + k));
  return rewriter.Replace(scatter, count == 1 ? results[0] : rewriter.Make(Opcode::kTuple, scatter.shape(), results));
}

}  // namespace

void AddGatherExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kGather}, "gathers expanded", ExpandGather);
}
void AddScatterExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kScatter}, "scatters expanded", ExpandScatter);
}

HLOKIT_PASS(GatherExpander) {
  return {.name = "gather-expander",
          .category = "expand",
          .summary = "expand gathers into loops",
          .doc =
              "One iteration for each index vector, with a dynamic slice of the operand that is written into "
              "the result. gather-simplifier handles single slices better.",
          .example = R"(ENTRY e {
  p = f32[5,3] parameter(0)
  i = s32[2] parameter(1)
  ROOT g = f32[2,3] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}, metadata={op_name="f/take"}
})",
          .create = MakePass<RulesOf<AddGatherExpanderRules, RewriteScope::kSequential>>};
}

HLOKIT_PASS(ScatterExpander) {
  return {.name = "scatter-expander",
          .category = "expand",
          .summary = "expand scatters into loops",
          .doc =
              "One iteration for each index vector, in order, with a dynamic slice, the combiner as a map "
              "over the window, and a dynamic update; windows that do not fit are dropped. A scatter into "
              "several arrays becomes one loop with a map for each array.",
          .example = R"(sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[5,3] parameter(0)
  i = s32[2] parameter(1)
  u = f32[2,3] parameter(2)
  ROOT g = f32[5,3] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum, metadata={op_name="f/add"}
})",
          .create = MakePass<RulesOf<AddScatterExpanderRules, RewriteScope::kSequential>>};
}

}  // namespace hlokit
