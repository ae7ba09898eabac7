// SPDX-License-Identifier: Apache-2.0
#include "check/arguments/argument_constraints.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_table.h"

namespace hlokit::interp {
namespace {

// Instructions with positive results if operands [first, last) are positive.
constexpr std::pair<Opcode, OperandIndexRange> kSignKeepers[] = {
    {Opcode::kAdd, {0, 2}},    {Opcode::kDivide, {0, 2}},       {Opcode::kMultiply, {0, 2}},
    {Opcode::kReduce, {0, 1}}, {Opcode::kReduceWindow, {0, 1}},
};

OperandIndexRange SignOperands(Opcode opcode) {
  const auto found = std::find_if(std::begin(kSignKeepers), std::end(kSignKeepers),
                                  [&](const auto& keeper) { return keeper.first == opcode; });
  return found == std::end(kSignKeepers) ? OperandIndexRange{0, 0} : found->second;
}

// Operands whose negative values give NaN.
constexpr std::pair<Opcode, int64_t> kPositiveOperands[] = {
    {Opcode::kBatchNormGrad, 3}, {Opcode::kBatchNormInference, 4}, {Opcode::kLog, 0}, {Opcode::kRsqrt, 0},
    {Opcode::kSqrt, 0},
};

// Kinds of constraints that are traced from an instruction to the arguments.
enum class Trail : uint8_t { kIndex, kPositive, kFactor };

struct Requirement {
  Instruction of;
  Trail trail;
  int64_t value = 0;  // index bound, or number of products of a contraction
};

// A leaf of the value of an instruction.
struct ValueLeaf {
  Instruction instruction;
  int64_t leaf = 0;
};

class UseFinder {
 public:
  explicit UseFinder(const Module& module) : module_(module), callers_(module.computation_id_bound()) {}

  std::vector<ArgumentConstraints> Find() {
    const Computation entry = module_.entry();
    int64_t leaves = 0;
    for (int64_t i = 0; i < entry.parameter_count(); ++i) {
      entry_leaves_.push_back(leaves);
      leaves += entry.parameter(i).shape().leaf_count();
    }
    found_.resize(static_cast<size_t>(leaves));
    for (Computation computation : module_.computations()) {
      for (Instruction i : computation.instructions()) {
        i.ForEachCallee([&](Computation called) {
          if (called.valid()) callers_[called.id().value].push_back(i);
        });
        CollectIndices(i);
        CollectRoots(i);
        CollectFactors(i);
      }
    }
    // The first requirement that reaches a value wins: the smallest bound, the largest contraction.
    std::stable_sort(required_.begin(), required_.end(), [](const Requirement& a, const Requirement& b) {
      if (a.trail != b.trail) return a.trail < b.trail;
      return a.trail == Trail::kFactor ? a.value > b.value : a.value < b.value;
    });
    for (const Requirement& r : required_) Follow(r);
    return std::move(found_);
  }

 private:
  void AddUse(Instruction index, int64_t bound) {
    if (index.shape().IsArray() && IsInteger(index.shape().element_type()) && bound >= 1) {
      required_.push_back({index, Trail::kIndex, bound});
    }
  }

  void CollectRoots(Instruction i) {
    for (const auto& [opcode, operand] : kPositiveOperands) {
      if (i.opcode() != opcode || operand >= i.operand_count()) continue;
      const Shape shape = i.operand(operand).shape();
      if (shape.IsArray() && IsFloat(shape.element_type())) {
        required_.push_back({i.operand(operand), Trail::kPositive});
      }
    }
  }

  // Each result element of a dot or convolution sums one product for each element of operand 1 that contributes to it.
  void CollectFactors(Instruction i) {
    if (i.operand_count() < 2) return;
    const Shape factor = i.operand(1).shape();
    if (!factor.IsArray() || !IsFloat(factor.element_type())) return;
    int64_t terms = 1;
    if (i.opcode() == Opcode::kDot) {
      for (int64_t d : DotDims::Of(i).rhs_contracting) {
        if (d >= 0 && d < factor.rank()) terms = Multiplied(terms, factor.dim(d));
      }
    } else if (i.opcode() == Opcode::kConvolution) {
      const ConvolutionDims dims = ConvolutionDims::Of(i);
      for (int64_t d = 0; d < factor.rank(); ++d) {
        if (dims.ok() && d != dims.kernel_output_feature) terms = Multiplied(terms, factor.dim(d));
      }
    }
    if (terms > 1) required_.push_back({i.operand(1), Trail::kFactor, terms});
  }
  static int64_t Multiplied(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
  }

  void CollectIndices(Instruction i) {
    const auto array = [&](int64_t operand) {
      return operand < i.operand_count() && i.operand(operand).shape().IsArray();
    };
    const IndexKind kind = KindOf(i.opcode());
    switch (kind) {
      case IndexKind::kNone:
        return;
      case IndexKind::kGather: {
        const GatherDims dims = GatherDims::Of(i);
        if (!array(0) || !array(1)) return;
        int64_t bound = std::numeric_limits<int64_t>::max();
        for (int64_t d : dims.start_index_map) {
          if (d < 0 || d >= i.operand(0).shape().rank() || d >= static_cast<int64_t>(dims.slice_sizes.size())) return;
          bound = std::min(bound, i.operand(0).shape().dim(d) - dims.slice_sizes[static_cast<size_t>(d)] + 1);
        }
        if (!dims.start_index_map.empty()) AddUse(i.operand(1), bound);
        return;
      }
      case IndexKind::kScatter:
        return CollectScatterIndices(i);
      case IndexKind::kDynamicSlice:
      case IndexKind::kDynamicUpdateSlice: {
        const bool update = kind == IndexKind::kDynamicUpdateSlice;
        if (!array(0) || (update && !array(1))) return;
        const Shape window = update ? i.operand(1).shape() : i.shape();
        const int64_t first = update ? 2 : 1;
        const int64_t rank = std::min(i.operand(0).shape().rank(), window.rank());
        for (int64_t d = 0; d < rank && first + d < i.operand_count(); ++d) {
          AddUse(i.operand(first + d), i.operand(0).shape().dim(d) - window.dim(d) + 1);
        }
        return;
      }
      case IndexKind::kDimensionSize: {
        const int64_t d = i.list_attr(Attr::kDimensions).empty() ? -1 : i.list_attr(Attr::kDimensions)[0];
        if (array(0) && array(1) && d >= 0 && d < i.operand(0).shape().rank()) {
          AddUse(i.operand(1), i.operand(0).shape().dim(d) + 1);
        }
        return;
      }
      case IndexKind::kBranch:
        if (array(0)) AddUse(i.operand(0), i.operand_count() - 1);
        return;
    }
  }

  void CollectScatterIndices(Instruction i) {
    const ScatterDims dims = ScatterDims::Of(i);
    const int64_t inputs = i.operand_count() / 2;
    if (inputs == 0 || !i.operand(0).shape().IsArray()) return;
    const Shape array = i.operand(0).shape();
    const Shape updates = i.operand(i.operand_count() - 1).shape();
    int64_t bound = std::numeric_limits<int64_t>::max();
    for (int64_t d : dims.scatter_dims_to_operand_dims) {
      if (d < 0 || d >= array.rank()) return;
      bound = std::min(bound, array.dim(d) - ScatterWindowSize(dims, array, updates, d) + 1);
    }
    if (!dims.scatter_dims_to_operand_dims.empty()) AddUse(i.operand(inputs), bound);
  }

  // Returns the window size in dimension `dim` of the scatter's operand.
  static int64_t ScatterWindowSize(const ScatterDims& dims, Shape array, Shape updates, int64_t dim) {
    size_t window = 0;
    for (int64_t d = 0; d < array.rank(); ++d) {
      const bool in_window =
          !absl::c_linear_search(dims.inserted_window_dims, d) && !absl::c_linear_search(dims.input_batching_dims, d);
      if (d == dim) {
        if (!in_window || window >= dims.update_window_dims.size()) return 1;
        const int64_t from = dims.update_window_dims[window];
        return updates.IsArray() && from >= 0 && from < updates.rank() ? updates.dim(from) : 1;
      }
      if (in_window) ++window;
    }
    return 1;
  }

  enum class IndexKind : uint8_t {
    kNone,
    kGather,
    kScatter,
    kDynamicSlice,
    kDynamicUpdateSlice,
    kDimensionSize,
    kBranch
  };
  static IndexKind KindOf(Opcode opcode) {
    static constexpr OpcodeRow<IndexKind> kRows[] = {
        {Opcode::kGather, IndexKind::kGather},
        {Opcode::kScatter, IndexKind::kScatter},
        {Opcode::kDynamicSlice, IndexKind::kDynamicSlice},
        {Opcode::kDynamicUpdateSlice, IndexKind::kDynamicUpdateSlice},
        {Opcode::kSetDimensionSize, IndexKind::kDimensionSize},
        {Opcode::kConditional, IndexKind::kBranch},
    };
    static constexpr auto kKinds = MakeOpcodeTable<IndexKind>(
        kRows, {.elementwise = IndexKind::kNone, .other = IndexKind::kNone, .unknown = IndexKind::kNone});
    return kKinds[static_cast<size_t>(opcode)];
  }

  void Follow(const Requirement& required) {
    std::vector<ValueLeaf> pending = {{required.of, 0}};
    while (!pending.empty()) {
      const ValueLeaf at = pending.back();
      pending.pop_back();
      if (!at.instruction.valid() || !seen_.insert({at.instruction.id().value, at.leaf, required.trail}).second)
        continue;
      Visit(at, required, &pending);
    }
  }

  void Visit(ValueLeaf at, const Requirement& required, std::vector<ValueLeaf>* pending) {
    const Instruction i = at.instruction;
    const Opcode opcode = i.opcode();
    if (i.shape().IsArray() && PassOn(ElementOperands(opcode, i.operand_count()), at, pending)) return;
    if (required.trail == Trail::kPositive) {
      const bool square = opcode == Opcode::kMultiply && i.operand(0) == i.operand(1);
      const bool variadic = HasTrait(opcode, kAppliesComputation) && i.operand_count() != 2;
      if (square || variadic || PassOn(SignOperands(opcode), at, pending)) return;
    }
    using Rule = void (UseFinder::*)(ValueLeaf, const Requirement&, std::vector<ValueLeaf>*);
    static constexpr OpcodeRow<Rule> kRows[] = {
        {Opcode::kParameter, &UseFinder::VisitParameter},
        {Opcode::kTuple, &UseFinder::VisitTuple},
        {Opcode::kGetTupleElement, &UseFinder::VisitElement},
        {Opcode::kOptimizationBarrier, &UseFinder::VisitBarrier},
        {Opcode::kWhile, &UseFinder::VisitLoop},
    };
    static constexpr auto kRules = MakeOpcodeHandlers<Rule>(kRows);
    if (const Rule rule = kRules[static_cast<size_t>(opcode)]; rule != nullptr) {
      (this->*rule)(at, required, pending);
    } else if (HasTrait(opcode, kControlFlow)) {
      i.ForEachCallee([&](Computation called) {
        if (called.valid()) pending->push_back({called.root(), at.leaf});
      });
    }
  }

  void VisitTuple(ValueLeaf at, const Requirement& /*required*/, std::vector<ValueLeaf>* pending) {
    const std::vector<int64_t>& begins = BeginsOf(at.instruction.shape());
    const auto after = std::upper_bound(begins.begin(), begins.end(), at.leaf);
    const int64_t k = after - begins.begin() - 1;
    pending->push_back({at.instruction.operand(k), at.leaf - begins[static_cast<size_t>(k)]});
  }

  void VisitElement(ValueLeaf at, const Requirement& /*required*/, std::vector<ValueLeaf>* pending) {
    const Instruction tuple = at.instruction.operand(0);
    const int64_t index = at.instruction.int_attr(Attr::kIndex);
    pending->push_back({tuple, at.leaf + BeginsOf(tuple.shape())[static_cast<size_t>(index)]});
  }

  void VisitBarrier(ValueLeaf at, const Requirement& /*required*/, std::vector<ValueLeaf>* pending) {
    if (at.instruction.operand_count() == 1) pending->push_back({at.instruction.operand(0), at.leaf});
  }

  void VisitLoop(ValueLeaf at, const Requirement& /*required*/, std::vector<ValueLeaf>* pending) {
    pending->push_back({at.instruction.operand(0), at.leaf});
    if (const Computation body = at.instruction.computation_attr(Attr::kBody); body.valid()) {
      pending->push_back({body.root(), at.leaf});
    }
  }

  // Continues with these operands. Returns false if there are none.
  static bool PassOn(OperandIndexRange operands, ValueLeaf at, std::vector<ValueLeaf>* pending) {
    for (int64_t k = operands.first; k < operands.last; ++k) pending->push_back({at.instruction.operand(k), at.leaf});
    return operands.first < operands.last;
  }

  void VisitParameter(ValueLeaf at, const Requirement& required, std::vector<ValueLeaf>* pending) {
    const Computation computation = at.instruction.parent();
    const int64_t number = at.instruction.parameter_number();
    if (computation.is_entry()) {
      ArgumentConstraints& use = found_[static_cast<size_t>(entry_leaves_[static_cast<size_t>(number)] + at.leaf)];
      switch (required.trail) {
        case Trail::kIndex:
          use.index_bound = required.value;
          break;
        case Trail::kPositive:
          use.positive = true;
          break;
        case Trail::kFactor:
          use.contraction_size = required.value;
          break;
      }
      return;
    }
    for (Instruction caller : callers_[computation.id().value]) {
      if (caller.opcode() == Opcode::kWhile) {
        VisitLoop({caller, at.leaf}, required, pending);
      } else if (caller.opcode() == Opcode::kConditional) {
        const std::vector<Computation> branches = caller.called_computations();
        for (size_t k = 0; k < branches.size() && static_cast<int64_t>(k) + 1 < caller.operand_count(); ++k) {
          if (branches[k] == computation) pending->push_back({caller.operand(static_cast<int64_t>(k) + 1), at.leaf});
        }
      } else if (HasTrait(caller.opcode(), kControlFlow) && number < caller.operand_count()) {
        pending->push_back({caller.operand(number), at.leaf});
      }
    }
  }

  // Returns the first leaf of each element of a tuple.
  const std::vector<int64_t>& BeginsOf(Shape tuple) {
    std::vector<int64_t>& begins = begins_[tuple.record()];
    if (begins.empty()) {
      int64_t leaf = 0;
      for (Shape element : tuple.elements()) {
        begins.push_back(leaf);
        leaf += element.leaf_count();
      }
    }
    return begins;
  }

  const Module& module_;
  std::vector<std::vector<Instruction>> callers_;  // by computation id
  std::vector<int64_t> entry_leaves_;              // first leaf of each parameter
  std::vector<ArgumentConstraints> found_;
  std::vector<Requirement> required_;
  absl::flat_hash_set<std::tuple<uint32_t, int64_t, Trail>> seen_;
  absl::flat_hash_map<const ShapeRecord*, std::vector<int64_t>> begins_;
};

}  // namespace

std::vector<ArgumentConstraints> InferArgumentConstraints(const Module& module) { return UseFinder(module).Find(); }

}  // namespace hlokit::interp
