// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/sharding_rule.h"

#include <algorithm>
#include <cstddef>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_table.h"
#include "ir/sharding/tiling_reshape.h"
#include "ir/text/frontend_attributes.h"
#include "passes/sharding/rule_builder.h"

namespace hlokit {
namespace sharding {

RuleBuilder::RuleBuilder(Instruction instruction) : instruction_(instruction) {
  for (Instruction operand : instruction.operands()) {
    operands_.push_back(operand.shape());
    rule_.operands.emplace_back(ToSize(operand.shape().rank()));
  }
  results_ = Leaves(instruction.shape());
  for (Shape leaf : results_) rule_.results.emplace_back(ToSize(leaf.rank()));
}

void RuleBuilder::Operand(int64_t i, int64_t dim, int32_t factor) {
  if (i < operand_count() && dim < operand(i).rank()) {
    rule_.operands[ToSize(i)][ToSize(dim)].push_back(factor);
  }
}

void RuleBuilder::Result(int64_t i, int64_t dim, int32_t factor) {
  if (i < result_count() && dim < result(i).rank()) rule_.results[ToSize(i)][ToSize(dim)].push_back(factor);
}

bool RuleBuilder::HasOperand(int64_t i, int64_t dim) const { return !rule_.operands[ToSize(i)][ToSize(dim)].empty(); }
bool RuleBuilder::HasResult(int64_t i, int64_t dim) const { return !rule_.results[ToSize(i)][ToSize(dim)].empty(); }

void RuleBuilder::Elementwise(int64_t rank, FactorKind kind) {
  // The roots of a collective follow its arrays.
  const int64_t arrays = operand_count() - (instruction().bool_attr(Attr::kHasDynamicRoot) ? 1 : 0);
  for (int64_t d = 0; d < rank; ++d) {
    const int32_t factor = Add(result_count() > 0 && result().rank() == rank ? result().dim(d) : 1, kind);
    for (int64_t i = 0; i < arrays; ++i) {
      if (operand(i).rank() == rank) Operand(i, d, factor);
    }
    for (int64_t i = 0; i < result_count(); ++i) {
      if (result(i).rank() == rank) Result(i, d, factor);
    }
  }
}

ShardingRule RuleBuilder::Finish(FactorKind rest) {
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (size_t d = 0; d < rule_.operands[i].size(); ++d) {
      if (rule_.operands[i][d].empty()) {
        rule_.operands[i][d].push_back(Add(operands_[i].dim(static_cast<int64_t>(d)), FactorKind::kWhole));
      }
    }
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    for (size_t d = 0; d < rule_.results[i].size(); ++d) {
      if (rule_.results[i][d].empty()) {
        rule_.results[i][d].push_back(Add(results_[i].dim(static_cast<int64_t>(d)), rest));
      }
    }
  }
  return std::move(rule_);
}

}  // namespace sharding

namespace {

using sharding::RuleBuilder;

struct OpcodeRule {
  RuleClass rule;
  uint8_t traits = kNoShardingTraits;
};
constexpr OpcodeRow<OpcodeRule> kRuleRows[] = {
#define OPCODE_SHARDING_RULE(name, rule, ...) {Opcode::k##name, {RuleClass::k##rule __VA_OPT__(, ) __VA_ARGS__}},
#include "passes/sharding/opcode_sharding_rules.def"
};
constexpr auto kOpcodeRules = MakeOpcodeTable<OpcodeRule>(
    kRuleRows,
    {.elementwise = OpcodeRule{RuleClass::kElementwise}, .other = std::nullopt, .unknown = {RuleClass::kWhole}});

// Custom-calls that are known to divide like an operation. They keep every dimension.
struct CustomCallRow {
  std::string_view target;
  RuleClass rule;
};
constexpr std::string_view kStatedRuleKey = "xla.sdy.sharding_rule";
constexpr CustomCallRow kCustomCalls[] = {
    {"Sharding", RuleClass::kElementwise},
    {"ShardBarrierFrom", RuleClass::kForwarding},
    {"ShardBarrierTo", RuleClass::kForwarding},
    {"X64Combine", RuleClass::kElementwise},
    {"LayoutConstraint", RuleClass::kElementwise},
    {"MoveToHost", RuleClass::kElementwise},
    {"MoveToDevice", RuleClass::kElementwise},
    {"PinToDevice", RuleClass::kElementwise},
    {"PinToDeviceSram", RuleClass::kElementwise},
    {"annotate_device_placement", RuleClass::kElementwise},
    {"Cholesky", RuleClass::kMatrixWhole},
    {"Eigh", RuleClass::kMatrixWhole},
    {"LuDecomposition", RuleClass::kMatrixWhole},
    {"ProductOfElementaryHouseholderReflectors", RuleClass::kMatrixWhole},
    {"Qr", RuleClass::kMatrixWhole},
    {"TopK", RuleClass::kTopK},
};

void MakeBroadcastRule(RuleBuilder& b) {
  const absl::Span<const int64_t> dims = b.instruction().list_attr(Attr::kDimensions);
  for (size_t d = 0; d < dims.size(); ++d) {
    const int32_t factor = b.Add(b.result().dim(dims[d]));
    b.Operand(0, static_cast<int64_t>(d), factor);
    b.Result(0, dims[d], factor);
  }
}

void MakeTransposeRule(RuleBuilder& b) {
  const absl::Span<const int64_t> dims = b.instruction().list_attr(Attr::kDimensions);
  for (size_t d = 0; d < dims.size(); ++d) {
    const int32_t factor = b.Add(b.result().dim(static_cast<int64_t>(d)));
    b.Operand(0, dims[d], factor);
    b.Result(0, static_cast<int64_t>(d), factor);
  }
}

void MakeReshapeRule(RuleBuilder& b) {
  const Shape from = b.operand(0), to = b.result();
  if (from.element_count() <= 0 || from.element_count() != to.element_count()) return;
  const ReshapeFactors factors = FactorReshape(from.dims(), to.dims());
  // A factor that only one side has must be complete.
  std::vector<int> sides(factors.sizes.size());
  for (const auto* dims : {&factors.from, &factors.to}) {
    for (const std::vector<int64_t>& dim : *dims) {
      for (int64_t f : dim) ++sides[ToSize(f)];
    }
  }
  for (size_t f = 0; f < sides.size(); ++f) {
    b.Add(factors.sizes[f], sides[f] == 2 ? FactorKind::kParallel : FactorKind::kWhole);
  }
  for (size_t d = 0; d < factors.from.size(); ++d) {
    for (int64_t f : factors.from[d]) b.Operand(0, static_cast<int64_t>(d), static_cast<int32_t>(f));
  }
  for (size_t d = 0; d < factors.to.size(); ++d) {
    for (int64_t f : factors.to[d]) b.Result(0, static_cast<int64_t>(d), static_cast<int32_t>(f));
  }
}

// Dimensions of the same number belong together; those that change their size are of `kind`.
void MakeResizingRule(RuleBuilder& b, FactorKind kind) {
  const Shape from = b.operand(0), to = b.result();
  if (from.rank() != to.rank()) return;
  for (int64_t d = 0; d < to.rank(); ++d) {
    const bool same = from.dim(d) == to.dim(d);
    const int32_t factor = b.Add(std::max(from.dim(d), to.dim(d)), same ? FactorKind::kParallel : kind);
    for (int64_t i = 0; i < b.operand_count(); ++i) {
      if (b.operand(i).rank() == to.rank()) b.Operand(i, d, factor);
    }
    for (int64_t i = 0; i < b.result_count(); ++i) b.Result(i, d, factor);
  }
}

void MakeReverseRule(RuleBuilder& b) {
  const absl::Span<const int64_t> dims = b.instruction().list_attr(Attr::kDimensions);
  for (int64_t d = 0; d < b.result().rank(); ++d) {
    const bool reversed = std::find(dims.begin(), dims.end(), d) != dims.end();
    const int32_t factor = b.Add(b.result().dim(d), reversed ? FactorKind::kWindow : FactorKind::kParallel);
    b.Operand(0, d, factor);
    b.Result(0, d, factor);
  }
}

// One dimension of all arrays of the result's rank is `kind`, the others are parallel.
void MakeAlongDimensionRule(RuleBuilder& b, int64_t dimension, FactorKind kind) {
  if (b.result_count() == 0) return;
  const int64_t rank = b.result().rank();
  for (int64_t d = 0; d < rank; ++d) {
    const int32_t factor = b.Add(b.result().dim(d), d == dimension ? kind : FactorKind::kParallel);
    for (int64_t i = 0; i < b.operand_count(); ++i) {
      if (b.operand(i).rank() == rank) b.Operand(i, d, factor);
    }
    for (int64_t i = 0; i < b.result_count(); ++i) {
      if (b.result(i).rank() == rank) b.Result(i, d, factor);
    }
  }
}

int64_t FirstDimension(Instruction i) {
  const absl::Span<const int64_t> dims = i.list_attr(Attr::kDimensions);
  return dims.empty() ? 0 : dims[0];
}

void MakeReduceRule(RuleBuilder& b) {
  const absl::Span<const int64_t> dims = b.instruction().list_attr(Attr::kDimensions);
  const int64_t inputs = b.operand_count() / 2;
  if (inputs == 0) return;
  int64_t kept = 0;
  for (int64_t d = 0; d < b.operand(0).rank(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    const int32_t factor = b.Add(b.operand(0).dim(d), reduced ? FactorKind::kReduced : FactorKind::kParallel);
    for (int64_t i = 0; i < inputs; ++i) b.Operand(i, d, factor);
    if (reduced) continue;
    for (int64_t i = 0; i < b.result_count(); ++i) b.Result(i, kept, factor);
    ++kept;
  }
}

void MakeWindowRule(RuleBuilder& b) {
  const WindowView window = WindowView::Of(b.instruction());
  for (int64_t d = 0; d < b.result().rank(); ++d) {
    const WindowDim w = d < window.rank() ? window[d] : WindowDim();
    const bool trivial =
        w.size == 1 && w.stride == 1 && w.padding_low == 0 && w.padding_high == 0 && w.base_dilation == 1;
    const int64_t size = b.result().dim(d);
    const int32_t factor = b.Add(size, trivial ? FactorKind::kParallel : FactorKind::kWindow);
    const int64_t inputs = b.instruction().opcode() == Opcode::kSelectAndScatter ? 2 : b.operand_count() / 2;
    for (int64_t i = 0; i < inputs; ++i) b.Operand(i, d, factor);
    for (int64_t i = 0; i < b.result_count(); ++i) b.Result(i, d, factor);
  }
}

// Inputs and outputs have the scanned dimension, carries have not.
void MakeScanRule(RuleBuilder& b) {
  const int64_t dim = FirstDimension(b.instruction());
  const int64_t carries = b.instruction().int_attr(Attr::kNumCarries);
  const int64_t inputs = b.operand_count() - carries, outputs = b.result_count() - carries;
  if (inputs < 0 || outputs < 0) return;
  const int64_t rank = inputs > 0 ? b.operand(0).rank() : outputs > 0 ? b.result().rank() : 0;
  const bool associative = b.instruction().bool_attr(Attr::kIsAssociative);
  for (int64_t d = 0; d < rank; ++d) {
    const bool scanned = d == dim;
    const int32_t factor =
        b.Add(inputs > 0 ? b.operand(0).dim(d) : b.result().dim(d),
              scanned ? (associative ? FactorKind::kPrefix : FactorKind::kWhole) : FactorKind::kParallel);
    for (int64_t i = 0; i < b.operand_count(); ++i) {
      if (i < inputs) {
        if (b.operand(i).rank() == rank) b.Operand(i, d, factor);
      } else if (!scanned && b.operand(i).rank() == rank - 1) {
        b.Operand(i, d > dim ? d - 1 : d, factor);
      }
    }
    for (int64_t i = 0; i < b.result_count(); ++i) {
      if (i < outputs) {
        if (b.result(i).rank() == rank) b.Result(i, d, factor);
      } else if (!scanned && b.result(i).rank() == rank - 1) {
        b.Result(i, d > dim ? d - 1 : d, factor);
      }
    }
  }
}

bool IsSameDim(Shape a, Shape b, int64_t d) { return a.IsArray() && d < a.rank() && a.dim(d) == b.dim(d); }

// The dimensions before the last `count` are a batch of all arrays; the last ones are whole. Arrays with fewer
// dimensions, such as the eigenvalues of matrices, have those of the batch.
void MakeBatchRule(RuleBuilder& b, int64_t count) {
  const int64_t rank = b.result().rank();
  for (int64_t d = 0; d < rank; ++d) {
    const int32_t factor = b.Add(b.result().dim(d), d < rank - count ? FactorKind::kParallel : FactorKind::kWhole);
    for (int64_t i = 0; i < b.operand_count(); ++i) {
      const bool has = b.operand(i).rank() == rank || d < rank - count;
      if (has && IsSameDim(b.operand(i), b.result(), d)) b.Operand(i, d, factor);
    }
    for (int64_t i = 0; i < b.result_count(); ++i) {
      if (b.result(i).rank() == rank || (d < rank - count && IsSameDim(b.result(i), b.result(), d))) {
        b.Result(i, d, factor);
      }
    }
  }
}

void MakeTriangularSolveRule(RuleBuilder& b) {
  const int64_t rank = b.result().rank();
  const bool left = b.instruction().bool_attr(Attr::kLeftSide);
  for (int64_t d = 0; d < rank; ++d) {
    const bool batch = d < rank - 2;
    // The columns of the other side (its rows, if the matrix is on the right) are independent of each other.
    const bool independent = d == (left ? rank - 1 : rank - 2);
    const int32_t factor = b.Add(b.result().dim(d), batch || independent ? FactorKind::kParallel : FactorKind::kWhole);
    if (batch) b.Operand(0, d, factor);
    b.Operand(1, d, factor);
    b.Result(0, d, factor);
  }
}

void MakeBatchNormRule(RuleBuilder& b) {
  const int64_t feature = b.instruction().int_attr(Attr::kFeatureIndex);
  const bool inference = b.instruction().opcode() == Opcode::kBatchNormInference;
  const Shape operand = b.operand(0);
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const int32_t factor =
        b.Add(operand.dim(d), d == feature || inference ? FactorKind::kParallel : FactorKind::kReduced);
    for (int64_t i = 0; i < b.operand_count(); ++i) {
      if (b.operand(i).rank() == operand.rank() && operand.rank() != 1) b.Operand(i, d, factor);
      if (b.operand(i).rank() == 1 && d == feature) b.Operand(i, 0, factor);
    }
    for (int64_t i = 0; i < b.result_count(); ++i) {
      if (b.result(i).rank() == operand.rank() && operand.rank() != 1) b.Result(i, d, factor);
      if (b.result(i).rank() == 1 && d == feature) b.Result(i, 0, factor);
    }
  }
}

// The dimension that only one side has, of the parts of an element, is whole.
void MakeBitcastConvertRule(RuleBuilder& b) {
  const int64_t rank = std::min(b.operand(0).rank(), b.result().rank());
  for (int64_t d = 0; d < rank; ++d) {
    const int32_t factor = b.Add(b.result().dim(d));
    b.Operand(0, d, factor);
    b.Result(0, d, factor);
  }
}

void MakeFftRule(RuleBuilder& b) {
  MakeBatchRule(b, static_cast<int64_t>(b.instruction().list_attr(Attr::kFftLength).size()));
}

// The custom-call of [b,m,k] and [b,n,k] (or without a batch), with scales for blocks of k. Returns false for others.
bool MakeBlockScaledDotRule(RuleBuilder& b) {
  if (b.instruction().string_attr(Attr::kCustomCallTarget) != "__op$block_scaled_dot" || b.operand_count() != 4 ||
      b.result_count() != 1) {
    return false;
  }
  const int64_t rank = b.result().rank();
  for (int64_t i = 0; i < 4; ++i) {
    if (b.operand(i).rank() != rank) return false;
  }
  if (rank != 2 && rank != 3) return false;
  if (rank == 3) {
    const int32_t batch = b.Add(b.result().dim(0));
    for (int64_t i = 0; i < 4; ++i) b.Operand(i, 0, batch);
    b.Result(0, 0, batch);
  }
  for (int64_t side = 0; side < 2; ++side) {
    const int32_t free = b.Add(b.operand(side).dim(rank - 2));
    b.Operand(side, rank - 2, free);
    b.Operand(side + 2, rank - 2, free);
    b.Result(0, rank - 2 + side, free);
  }
  // Blocks are the major part of the contracted dimension.
  const int64_t size = b.operand(0).dim(rank - 1), blocks = b.operand(2).dim(rank - 1);
  if (blocks < 1 || size % blocks != 0 || b.operand(3).dim(rank - 1) != blocks || b.operand(1).dim(rank - 1) != size) {
    return true;
  }
  const int32_t block = b.Add(blocks, FactorKind::kReduced);
  const int32_t within = b.Add(size / blocks, FactorKind::kWhole);
  for (int64_t i = 0; i < 4; ++i) b.Operand(i, rank - 1, block);
  for (int64_t i = 0; i < 2; ++i) b.Operand(i, rank - 1, within);
  return true;
}

// Adds the factors of dimensions of operands and results that belong together.
void AddFactors(RuleClass rule_class, RuleBuilder& b) {
  switch (rule_class) {
    case RuleClass::kElementwise:
      if (b.result_count() > 0) b.Elementwise(b.result().rank());
      return;
    case RuleClass::kForwarding:
      if (b.operand_count() == 1 && b.operand(0).IsArray() && b.instruction().shape().IsArray()) {
        b.Elementwise(b.result().rank());
      }
      return;
    case RuleClass::kNothing:
    case RuleClass::kWhole:
      return b.MarkUnknown();
    case RuleClass::kSource:
    case RuleClass::kRngBitGenerator:
      return;
    case RuleClass::kDeviceDimension:
      return MakeResizingRule(b, FactorKind::kWhole);
    case RuleClass::kBatchNorm:
      return MakeBatchNormRule(b);
    case RuleClass::kBitcastConvert:
      return MakeBitcastConvertRule(b);
    case RuleClass::kBroadcast:
      return MakeBroadcastRule(b);
    case RuleClass::kConcatenate:
      return MakeAlongDimensionRule(b, FirstDimension(b.instruction()), FactorKind::kWhole);
    case RuleClass::kConvolution:
      return sharding::MakeConvolutionRule(b);
    case RuleClass::kCustomCall:
      if (!MakeBlockScaledDotRule(b)) b.MarkUnknown();
      return;
    case RuleClass::kDot:
      return sharding::MakeDotRule(b);
    case RuleClass::kDynamicSlice:
      return sharding::MakeDynamicSliceRule(b);
    case RuleClass::kDynamicUpdateSlice:
      return sharding::MakeDynamicUpdateSliceRule(b);
    case RuleClass::kFft:
      return MakeFftRule(b);
    case RuleClass::kGather:
      return sharding::MakeGatherRule(b);
    case RuleClass::kMatrixWhole:
      return MakeBatchRule(b, 2);
    case RuleClass::kPad:
    case RuleClass::kSlice:
      return MakeResizingRule(b, FactorKind::kWindow);
    case RuleClass::kRaggedDot:
      return sharding::MakeRaggedDotRule(b);
    case RuleClass::kReduce:
      return MakeReduceRule(b);
    case RuleClass::kReduceWindow:
    case RuleClass::kSelectAndScatter:
      return MakeWindowRule(b);
    case RuleClass::kReshape:
      return MakeReshapeRule(b);
    case RuleClass::kReverse:
      return MakeReverseRule(b);
    case RuleClass::kScan:
      return MakeScanRule(b);
    case RuleClass::kScatter:
      return sharding::MakeScatterRule(b);
    case RuleClass::kSort:
      return MakeAlongDimensionRule(b, FirstDimension(b.instruction()), FactorKind::kWhole);
    case RuleClass::kStated: {
      const StringId text = FindFrontendAttribute(b.instruction(), kStatedRuleKey);
      if (!sharding::MakeStatedRule(b, b.instruction().module().context().str(text))) b.MarkUnknown();
      return;
    }
    case RuleClass::kTopK:
      return MakeBatchRule(b, 1);
    case RuleClass::kTranspose:
      return MakeTransposeRule(b);
    case RuleClass::kTriangularSolve:
      return MakeTriangularSolveRule(b);
  }
}

ShardingRule MakeRule(RuleClass rule_class, RuleBuilder& b) {
  AddFactors(rule_class, b);
  // Dimensions of results that no operand has.
  const bool parallel = rule_class == RuleClass::kSource || rule_class == RuleClass::kBroadcast;
  return b.Finish(parallel ? FactorKind::kParallel : FactorKind::kWhole);
}

std::string Letter(size_t factor) {
  const auto letter = static_cast<char>('a' + factor % 26);
  return factor < 26 ? std::string(1, letter) : StrCat(std::string(1, letter), factor / 26);
}

}  // namespace

bool AddsElements(RuleClass rule) {
  switch (rule) {
    case RuleClass::kBatchNorm:
    case RuleClass::kConvolution:
    case RuleClass::kDot:
    case RuleClass::kFft:
    case RuleClass::kMatrixWhole:
    case RuleClass::kRaggedDot:
    case RuleClass::kReduce:
    case RuleClass::kReduceWindow:
    case RuleClass::kScan:
    case RuleClass::kScatter:
    case RuleClass::kSelectAndScatter:
    case RuleClass::kTriangularSolve:
      return true;
    case RuleClass::kElementwise:
    case RuleClass::kForwarding:
    case RuleClass::kNothing:
    case RuleClass::kSource:
    case RuleClass::kWhole:
    case RuleClass::kDeviceDimension:
    case RuleClass::kBitcastConvert:
    case RuleClass::kBroadcast:
    case RuleClass::kConcatenate:
    case RuleClass::kCustomCall:
    case RuleClass::kStated:
    case RuleClass::kDynamicSlice:
    case RuleClass::kDynamicUpdateSlice:
    case RuleClass::kGather:
    case RuleClass::kPad:
    case RuleClass::kReshape:
    case RuleClass::kReverse:
    case RuleClass::kRngBitGenerator:
    case RuleClass::kSlice:
    case RuleClass::kSort:
    case RuleClass::kTopK:
    case RuleClass::kTranspose:
      return false;
  }
  return false;
}

RuleClass RuleClassOf(Opcode opcode) { return kOpcodeRules[static_cast<size_t>(opcode)].rule; }

bool HasShardingTrait(Opcode opcode, ShardingTrait trait) {
  return (kOpcodeRules[static_cast<size_t>(opcode)].traits & trait) != 0;
}

RuleClass RuleClassOf(Instruction instruction) {
  const RuleClass rule = RuleClassOf(instruction.opcode());
  if (rule != RuleClass::kCustomCall) return rule;
  const std::string_view target = instruction.string_attr(Attr::kCustomCallTarget);
  for (const CustomCallRow& row : kCustomCalls) {
    if (row.target == target) return row.rule;
  }
  return FindFrontendAttribute(instruction, kStatedRuleKey).valid() ? RuleClass::kStated : rule;
}

ShardingRule RuleOf(Instruction instruction) {
  RuleBuilder builder(instruction);
  return MakeRule(RuleClassOf(instruction), builder);
}

Tiling CarryAlongFactors(const ShardingRule& rule, const ArrayFactors& from, const ArrayFactors& to,
                         const Tiling& tiling) {
  return CarryAlongFactors(rule, from, to, tiling, ~uint32_t{0});
}

Tiling CarryAlongFactors(const ShardingRule& rule, const ArrayFactors& from, const ArrayFactors& to,
                         const Tiling& tiling, uint32_t kinds) {
  if (!tiling.tiled()) return tiling;
  std::vector<AxisList> by_factor(rule.factors.size());
  const auto sizes_of = [&](const std::vector<int32_t>& dim) {
    std::vector<int64_t> sizes;
    for (int32_t f : dim) sizes.push_back(rule.factors[ToSize(f)].size);
    return sizes;
  };
  for (size_t d = 0; d < from.size() && d < tiling.dims.size(); ++d) {
    if (tiling.dims[d].empty()) continue;
    std::vector<AxisList> lists = AxesByFactor(tiling.dims[d], sizes_of(from[d]));
    for (size_t i = 0; i < lists.size(); ++i) {
      const size_t factor = ToSize(from[d][i]);
      if ((kinds & KindBit(rule.factors[factor].kind)) != 0) by_factor[factor] = std::move(lists[i]);
    }
  }
  Tiling result = tiling;
  result.dims.assign(to.size(), {});
  for (size_t d = 0; d < to.size(); ++d) {
    std::vector<AxisList> lists;
    for (int32_t f : to[d]) lists.push_back(by_factor[ToSize(f)]);
    if (!lists.empty()) result.dims[d] = AxesOfFactors(lists, sizes_of(to[d]));
  }
  result.Normalize();
  return result;
}

std::string ShardingRule::ToString() const {
  const auto arrays = [](const std::vector<ArrayFactors>& list) {
    std::string text;
    for (size_t i = 0; i < list.size(); ++i) {
      if (i != 0) text += ',';
      for (const std::vector<int32_t>& dim : list[i]) {
        if (dim.size() != 1) text += '(';
        for (int32_t f : dim) text += Letter(ToSize(f));
        if (dim.size() != 1) text += ')';
      }
    }
    return text;
  };
  std::string text = StrCat(arrays(operands), "->", arrays(results));
  std::string kinds;
  for (size_t f = 0; f < factors.size(); ++f) {
    if (factors[f].kind == FactorKind::kParallel) continue;
    kinds += StrCat(kinds.empty() ? "" : ", ", Letter(f), " ", kFactorKindTexts[static_cast<size_t>(factors[f].kind)]);
  }
  if (!kinds.empty()) text += StrCat(" {", kinds, "}");
  return text;
}

}  // namespace hlokit
