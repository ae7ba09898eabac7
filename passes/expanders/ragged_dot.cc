// SPDX-License-Identifier: Apache-2.0
// Expands ragged dots into dots and masks. The groups are ranges of the ragged dimension of the left operand:
//
//   ragged dimension   the dot                                 then
//   free               with the groups as a free dimension     a sum over the groups, with products of others zero
//   contracted         with the groups as a batch dimension    -; operands are zero outside of the group
//   batch              as it is                                elements beyond the last group are zero
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/expanders.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

class RaggedDot {
 public:
  RaggedDot(PatternRewriter& rewriter, Instruction dot)
      : rewriter_(rewriter), dot_(dot), dims_(DotDims::Of(dot)), lhs_(dot.operand(0)), rhs_(dot.operand(1)) {
    const Shape sizes = dot.operand(2).shape();
    groups_ = sizes.rank() > 0 ? sizes.dim(sizes.rank() - 1) : 0;
    const absl::Span<const int64_t> ragged = dot.list_attr(Attr::kLhsRaggedDims);
    ragged_ = ragged.size() == 1 ? ragged[0] : -1;
    is_batch_ = absl::c_linear_search(dims_.lhs_batch, ragged_);
    is_contracting_ = absl::c_linear_search(dims_.lhs_contracting, ragged_);
    // Dimensions of the left operand that the group sizes have before that of the groups.
    for (int64_t d : dims_.lhs_batch) {
      if (d == ragged_) break;
      prefix_.push_back(d);
    }
    for (int64_t d = 0; !is_batch_ && !is_contracting_ && d < ragged_; ++d) {
      if (!absl::c_linear_search(dims_.lhs_batch, d) && !absl::c_linear_search(dims_.lhs_contracting, d)) {
        prefix_.push_back(d);
      }
    }
    if (sizes.rank() == 1) prefix_.clear();
  }

  bool Expand() {
    const Shape sizes = dot_.operand(2).shape();
    if (!rewriter_.IsReplaceable(dot_) || ragged_ < 0 || groups_ == 0 || !IsInteger(sizes.element_type()) ||
        sizes.rank() != static_cast<int64_t>(prefix_.size()) + 1 || lhs_.shape().dim(ragged_) > INT32_MAX) {
      return false;
    }
    for (Instruction operand : dot_.operands()) {
      const Shape shape = operand.shape();
      if (shape.has_dynamic_dims() || BitsOf(shape.element_type()) < 8) return false;
    }
    if (!AreArraysBounded()) return false;
    FindEnds();
    return rewriter_.Replace(dot_, is_batch_ ? OfBatch() : is_contracting_ ? OfContracted() : OfFree());
  }

 private:
  // Returns false if an array of the expansion would have more bytes than an int64_t holds.
  bool AreArraysBounded() {
    if (is_batch_) return IsBounded(dot_.shape().dims());
    if (!is_contracting_) return IsBounded(FreeDims().sizes);
    return IsBounded(PerGroup(lhs_)) && IsBounded(PerGroup(rhs_));
  }
  bool IsBounded(absl::Span<const int64_t> sizes) {
    // Indices and masks are as large as the data: of the widest type among them.
    int64_t bytes = 8;
    for (ElementType type : {dot_.shape().element_type(), lhs_.shape().element_type(), rhs_.shape().element_type()}) {
      bytes = std::max(bytes, BytesOf(type));
    }
    for (int64_t size : sizes) bytes = SaturatingMultiply(bytes, size);
    return bytes != INT64_MAX;
  }

  Shape Array(ElementType type, absl::Span<const int64_t> dims) { return rewriter_.shapes().Array(type, dims); }

  // Broadcasts `array` to `sizes`; its dimension k becomes dimension positions[k].
  InstructionId Spread(InstructionId array, std::vector<int64_t> positions, absl::Span<const int64_t> sizes) {
    const Shape from = rewriter_.shape_of(array);
    if (!std::is_sorted(positions.begin(), positions.end())) {
      std::vector<int64_t> order(positions.size()), dims;
      std::iota(order.begin(), order.end(), 0);
      absl::c_sort(order, [&](int64_t a, int64_t b) {
        return positions[static_cast<size_t>(a)] < positions[static_cast<size_t>(b)];
      });
      for (int64_t d : order) dims.push_back(from.dim(d));
      const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, order)};
      array = rewriter_.Make(Opcode::kTranspose, Array(from.element_type(), dims), {array}, attrs);
      absl::c_sort(positions);
    }
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, positions)};
    return rewriter_.Make(Opcode::kBroadcast, Array(from.element_type(), sizes), {array}, attrs);
  }
  // Returns `value` where `mask` holds, and zero elsewhere.
  InstructionId Masked(InstructionId mask, InstructionId value) {
    const Shape shape = rewriter_.shape_of(value);
    const InstructionId zero = rewriter_.MakeScalarConstant(shape.element_type(), 0);
    return rewriter_.Make(Opcode::kSelect, shape, {mask, value, rewriter_.MakeSplat(shape, zero)});
  }

  // Computes the end of each group. Sums wrap around in the type of the sizes.
  void FindEnds() {
    const Instruction sizes = dot_.operand(2);
    const ElementType type = sizes.shape().element_type();
    const InstructionId zero = rewriter_.MakeScalarConstant(type, 0);
    std::vector<int64_t> window;
    for (int64_t d = 0; d < sizes.shape().rank(); ++d) {
      const bool grouped = d + 1 == sizes.shape().rank();
      window.insert(window.end(), {grouped ? groups_ : 1, 1, grouped ? groups_ - 1 : 0, 0, 1, 1, 0});
    }
    const AttrValue attrs[] = {rewriter_.List(Attr::kWindow, window),
                               Builder::Calls(Attr::kToApply, rewriter_.MakeReducer(Opcode::kAdd, type))};
    ends_ = rewriter_.Make(Opcode::kReduceWindow, Array(type, sizes.shape().dims()), {sizes.id(), zero}, attrs);
    // Indices of the ragged dimension may not fit a narrow type.
    if (BitsOf(type) < 32) ends_ = rewriter_.MakeConvert(ends_, ElementType::kS32);
  }

  // Returns whether each index of the ragged dimension belongs to each group, in an array of `sizes`. `position_of`:
  // the positions of the dimensions of the left operand; `group`: that of the groups.
  template <typename PositionOf>
  InstructionId Mask(PositionOf position_of, int64_t group, absl::Span<const int64_t> sizes) {
    std::vector<int64_t> positions;
    for (int64_t d : prefix_) positions.push_back(position_of(d));
    positions.push_back(group);
    const ElementType type = rewriter_.shape_of(ends_).element_type();
    std::vector<int64_t> shift;  // low, high, interior: each group begins where the previous one ends
    for (size_t d = 0; d < prefix_.size(); ++d) shift.insert(shift.end(), {0, 0, 0});
    shift.insert(shift.end(), {1, -1, 0});
    const AttrValue padding[] = {rewriter_.List(Attr::kPadding, shift)};
    const InstructionId begins = rewriter_.Make(Opcode::kPad, rewriter_.shape_of(ends_),
                                                {ends_, rewriter_.MakeScalarConstant(type, 0)}, padding);
    const AttrValue iota[] = {rewriter_.Int(Attr::kIotaDimension, position_of(ragged_))};
    const InstructionId index = rewriter_.Make(Opcode::kIota, Array(type, sizes), {}, iota);
    const InstructionId after_begin =
        rewriter_.MakeCompare(ComparisonDirection::kGe, index, Spread(begins, positions, sizes));
    const InstructionId before_end =
        rewriter_.MakeCompare(ComparisonDirection::kLt, index, Spread(ends_, positions, sizes));
    return rewriter_.MakeLike(Opcode::kAnd, {after_begin, before_end});
  }

  // Makes a dot with these dimensions and the remaining attributes.
  InstructionId MakeDot(Shape shape, InstructionId lhs, InstructionId rhs, const Builder::DotNumbers& numbers) {
    std::vector<AttrValue> attrs;
    for (AttrValue value : OwnAttrs(dot_)) {
      if (value.attr == Attr::kDotAlgorithm || value.attr == Attr::kOperandPrecision) attrs.push_back(value);
    }
    if (!numbers.lhs_batch.empty()) attrs.push_back(rewriter_.List(Attr::kLhsBatchDims, numbers.lhs_batch));
    if (!numbers.rhs_batch.empty()) attrs.push_back(rewriter_.List(Attr::kRhsBatchDims, numbers.rhs_batch));
    attrs.push_back(rewriter_.List(Attr::kLhsContractingDims, numbers.lhs_contracting));
    attrs.push_back(rewriter_.List(Attr::kRhsContractingDims, numbers.rhs_contracting));
    return rewriter_.Make(Opcode::kDot, shape, {lhs, rhs}, attrs);
  }
  static std::vector<int64_t> Shifted(absl::Span<const int64_t> dims, int64_t by) {
    std::vector<int64_t> shifted;
    for (int64_t d : dims) shifted.push_back(d + by);
    return shifted;
  }
  Builder::DotNumbers Numbers(int64_t shift) const {
    return {Shifted(dims_.lhs_batch, shift), Shifted(dims_.lhs_contracting, shift), Shifted(dims_.rhs_batch, shift),
            Shifted(dims_.rhs_contracting, shift)};
  }

  InstructionId OfBatch() {
    const InstructionId all = MakeDot(dot_.shape(), lhs_.id(), rhs_.id(), Numbers(0));
    // The last of the ends, without the dimension of the groups.
    const Shape ends = rewriter_.shape_of(ends_);
    std::vector<int64_t> last, positions;
    for (int64_t d = 0; d + 1 < ends.rank(); ++d) {
      last.insert(last.end(), {0, ends.dim(d), 1});
      positions.push_back(d);
    }
    last.insert(last.end(), {groups_ - 1, groups_, 1});
    std::vector<int64_t> sizes(ends.dims().begin(), ends.dims().end());
    sizes.back() = 1;
    const AttrValue slice[] = {rewriter_.List(Attr::kSlice, last)};
    const InstructionId end = rewriter_.Make(Opcode::kSlice, Array(ends.element_type(), sizes), {ends_}, slice);
    sizes.pop_back();
    const InstructionId total = rewriter_.MakeReshape(end, Array(ends.element_type(), sizes));
    const absl::Span<const int64_t> result = dot_.shape().dims();
    const int64_t position =
        std::find(dims_.lhs_batch.begin(), dims_.lhs_batch.end(), ragged_) - dims_.lhs_batch.begin();
    const AttrValue iota[] = {rewriter_.Int(Attr::kIotaDimension, position)};
    const InstructionId index = rewriter_.Make(Opcode::kIota, Array(ends.element_type(), result), {}, iota);
    return Masked(rewriter_.MakeCompare(ComparisonDirection::kLt, index, Spread(total, positions, result)), all);
  }

  // Returns the sizes of `operand` once for each group.
  std::vector<int64_t> PerGroup(Instruction operand) const {
    std::vector<int64_t> sizes = {groups_};
    sizes.insert(sizes.end(), operand.shape().dims().begin(), operand.shape().dims().end());
    return sizes;
  }

  InstructionId OfContracted() {
    const auto masked = [&](Instruction operand, absl::Span<const int64_t> batch, int64_t ragged) {
      const std::vector<int64_t> sizes = PerGroup(operand);
      std::vector<int64_t> positions(static_cast<size_t>(operand.shape().rank()));
      std::iota(positions.begin(), positions.end(), 1);
      const auto position_of = [&](int64_t lhs_dim) {
        if (lhs_dim == ragged_) return ragged + 1;
        const auto k = std::find(dims_.lhs_batch.begin(), dims_.lhs_batch.end(), lhs_dim) - dims_.lhs_batch.begin();
        return batch[static_cast<size_t>(k)] + 1;
      };
      const InstructionId spread = Spread(operand.id(), positions, sizes);
      return Masked(Mask(position_of, 0, sizes), spread);
    };
    const auto k = std::find(dims_.lhs_contracting.begin(), dims_.lhs_contracting.end(), ragged_);
    const int64_t rhs_ragged = dims_.rhs_contracting[static_cast<size_t>(k - dims_.lhs_contracting.begin())];
    Builder::DotNumbers numbers = Numbers(1);
    numbers.lhs_batch.insert(numbers.lhs_batch.begin(), 0);
    numbers.rhs_batch.insert(numbers.rhs_batch.begin(), 0);
    return MakeDot(dot_.shape(), masked(lhs_, dims_.lhs_batch, ragged_), masked(rhs_, dims_.rhs_batch, rhs_ragged),
                   numbers);
  }

  // The dot with the groups as a dimension: batch, left, right, with the groups among the latter.
  struct GroupedDims {
    std::vector<int64_t> sizes;
    std::vector<int64_t> positions;  // of the dimensions of the left operand; -1: contracted
    int64_t group = -1;
  };
  GroupedDims FreeDims() const {
    GroupedDims dims;
    dims.positions.resize(static_cast<size_t>(lhs_.shape().rank()), -1);
    const auto add = [&](int64_t d) {
      dims.positions[static_cast<size_t>(d)] = static_cast<int64_t>(dims.sizes.size());
      dims.sizes.push_back(lhs_.shape().dim(d));
    };
    for (int64_t d : dims_.lhs_batch) add(d);
    for (int64_t d = 0; d < lhs_.shape().rank(); ++d) {
      if (!absl::c_linear_search(dims_.lhs_batch, d) && !absl::c_linear_search(dims_.lhs_contracting, d)) add(d);
    }
    for (int64_t d = 0; d < rhs_.shape().rank(); ++d) {
      if (absl::c_linear_search(dims_.rhs_batch, d) || absl::c_linear_search(dims_.rhs_contracting, d)) continue;
      if (absl::c_linear_search(dot_.list_attr(Attr::kRhsGroupDims), d)) {
        dims.group = static_cast<int64_t>(dims.sizes.size());
      }
      dims.sizes.push_back(rhs_.shape().dim(d));
    }
    return dims;
  }

  InstructionId OfFree() {
    const auto [sizes, positions, group] = FreeDims();
    const ElementType type = dot_.shape().element_type();
    const InstructionId all = MakeDot(Array(type, sizes), lhs_.id(), rhs_.id(), Numbers(0));
    const auto position_of = [&at = positions](int64_t d) { return at[static_cast<size_t>(d)]; };
    const InstructionId masked = Masked(Mask(position_of, group, sizes), all);
    const InstructionId zero = rewriter_.MakeScalarConstant(type, 0);
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, {group}),
                               Builder::Calls(Attr::kToApply, rewriter_.MakeReducer(Opcode::kAdd, type))};
    return rewriter_.Make(Opcode::kReduce, dot_.shape(), {masked, zero}, attrs);
  }

  PatternRewriter& rewriter_;
  const Instruction dot_;
  const DotDims dims_;
  const Instruction lhs_, rhs_;
  int64_t groups_ = 0, ragged_ = -1;
  bool is_batch_ = false, is_contracting_ = false;
  std::vector<int64_t> prefix_;
  InstructionId ends_;
};

bool ExpandRaggedDot(PatternRewriter& rewriter, Instruction dot) { return RaggedDot(rewriter, dot).Expand(); }

}  // namespace

void AddRaggedDotRewriterRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kRaggedDot}, "ragged dots expanded", ExpandRaggedDot);
}

HLOKIT_PASS(RaggedDotRewriter) {
  return {.name = "ragged-dot-rewriter",
          .category = "expand",
          .summary = "expand ragged dots into dots and masks",
          .doc =
              "A dot with all groups, and a select with the ranges of the groups. XLA's masks the operands and "
              "contracts the groups along with the rest, so that an infinity in one group makes NaN in others, "
              "requires batch dimensions to come first, and ignores the groups of a ragged batch dimension; "
              "here masked products are added over the groups, and batches beyond the last group are zero.",
          .example = R"(ENTRY e {
  rows = f32[6,4] parameter(0)
  experts = f32[2,4,3] parameter(1)
  sizes = s32[2] parameter(2)
  ROOT d = f32[6,3] ragged-dot(rows, experts, sizes), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}, metadata={op_name="f/experts"}
})",
          .tolerance = 1e-5,
          .create = MakePass<RulesOf<AddRaggedDotRewriterRules>>};
}

}  // namespace hlokit
