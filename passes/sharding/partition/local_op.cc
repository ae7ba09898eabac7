// SPDX-License-Identifier: Apache-2.0
// An operation on the parts of one device: attributes of the sizes of parts, and masks where padding would reach a
// result.
#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/sharding/tile_assignment.h"
#include "ir/types/float_types.h"
#include "passes/sharding/contraction_dims.h"
#include "passes/sharding/partition/identity.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

// Returns the dimensions of an array that have a reduced factor.
std::vector<int64_t> ReducedDims(const ShardingRule& rule, const ArrayFactors& array) {
  std::vector<int64_t> dims;
  for (size_t d = 0; d < array.size(); ++d) {
    for (int32_t f : array[d]) {
      if (rule.factors[ToSize(f)].kind == FactorKind::kReduced) dims.push_back(static_cast<int64_t>(d));
    }
  }
  return dims;
}

// Returns the configuration of a kernel with its cost estimate, as Pallas writes it, divided by the number of parts.
std::string DividedCost(std::string_view config, int64_t parts) {
  std::string text(config);
  const size_t begin = text.find("\"cost_estimate\"");
  if (begin == std::string::npos) return text;
  for (const std::string_view key : {"\"flops\"", "\"transcendentals\"", "\"bytes_accessed\""}) {
    size_t at = text.find(key, begin);
    if (at == std::string::npos) continue;
    at = text.find_first_not_of(" :\"", at + key.size());
    if (at == std::string::npos) continue;
    const size_t end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
    // Numbers with a fraction or an exponent, and those beyond 64 bits, become integers too.
    const char* const first = text.data() + at;
    const char* const last = text.data() + end;
    int64_t whole = 0;
    if (const auto [rest, error] = std::from_chars(first, last, whole); error != std::errc() || rest != last) {
      double value = 0;
      const auto [after, wrong] = std::from_chars(first, last, value);
      if (wrong != std::errc() || after != last || !(value >= 0 && value < 9e18)) continue;
      whole = static_cast<int64_t>(value);
    }
    text.replace(at, end - at, StrCat(whole / parts));
  }
  return text;
}

}  // namespace

std::vector<InstructionId> ComputationPartitioner::InlineBody(Builder* b, Computation body,
                                                              absl::Span<const InstructionId> arguments,
                                                              absl::Span<const int64_t> sizes) {
  absl::flat_hash_map<uint32_t, InstructionId> made;
  const std::vector<InstructionId> order = PostOrder(body);
  for (size_t p = 0; p < arguments.size(); ++p) {
    made[body.parameter(static_cast<int64_t>(p)).id().value] = arguments[p];
  }
  // Scalars become arrays too, if the parameters are scalars and the arguments are not.
  const bool widens = !sizes.empty() && body.parameter_count() > 0 && body.parameter(0).shape().IsScalar();
  for (const InstructionId id : order) {
    const Instruction i = module_.instruction(id);
    if (i.opcode() == Opcode::kParameter || (i.is_root() && i.opcode() == Opcode::kTuple)) continue;
    if (widens && i.opcode() == Opcode::kBroadcast) {
      made[id.value] = made.at(i.operand(0).id().value);
      continue;
    }
    std::vector<InstructionId> operands;
    for (const Instruction operand : OperandsOf(i)) operands.push_back(made.at(operand.id().value));
    const Shape shape = i.shape();
    const InstructionId clone = b->MakeClone(id, operands);
    module_.RemoveAttr(clone, Attr::kSharding);
    module_.RemoveAttr(clone, Attr::kControlPredecessors);
    if (sizes.empty() || !shape.IsArray()) {
      made[id.value] = clone;
      continue;
    }
    const Shape sized = b->shapes().Array(shape.element_type(), sizes);
    const bool constant = widens && i.opcode() == Opcode::kConstant;
    if (!constant && (widens || !shape.IsScalar())) module_.SetShape(clone, sized);
    made[id.value] = constant ? b->MakeSplat(sized, clone) : clone;
  }
  const Instruction root = body.root();
  if (!root.shape().IsTuple()) return {made.at(root.id().value)};
  std::vector<InstructionId> results;
  if (root.opcode() == Opcode::kTuple) {
    for (const Instruction element : OperandsOf(root)) results.push_back(made.at(element.id().value));
  } else {
    const InstructionId tuple = made.at(root.id().value);
    for (int64_t k = 0; k < root.shape().tuple_size(); ++k) results.push_back(b->MakeElement(tuple, k));
  }
  return results;
}

ComputationId ComputationPartitioner::Combiner(Instruction i, ElementType type) {
  const RuleClass rule = RuleClassOf(i);
  if (rule == RuleClass::kReduce || rule == RuleClass::kScatter) return i.computation_attr(Attr::kToApply).id();
  return state_.Reducer(type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd, type);
}

void ComputationPartitioner::MaskOperands(Instruction i, const ShardingRule& rule, const FactorChoice& choice,
                                          std::vector<InstructionId>* operands) {
  const AxisList& partial = choice.partial;
  if (partial.empty()) return;
  // Blocks are never cut, and stated factors are cut into equal parts.
  if (RuleClassOf(i) == RuleClass::kCustomCall || RuleClassOf(i) == RuleClass::kStated) return;
  const bool reduce = RuleClassOf(i) == RuleClass::kReduce;
  const size_t arrays = reduce ? operands->size() / 2 : std::min<size_t>(operands->size(), 2);
  for (size_t k = 0; k < arrays; ++k) {
    const Shape whole = i.operand(static_cast<int64_t>(k)).shape();
    const Tiling tiling = TilingFor(rule, choice, rule.operands[k]);
    InstructionId value;
    if (reduce) {
      const std::optional<Opcode> opcode = BinaryOpcodeOf(i.computation_attr(Attr::kToApply));
      value = MakeIdentity(&emitter_, *opcode, whole.element_type());
    } else {
      value = emitter_.Scalar(whole.element_type(), 0);
    }
    (*operands)[k] = emitter_.MaskPadding((*operands)[k], whole, tiling, ReducedDims(rule, rule.operands[k]), value);
  }
  if (!reduce) return;
  // The initial value counts once: only the first part begins with it.
  const std::optional<Opcode> opcode = BinaryOpcodeOf(i.computation_attr(Attr::kToApply));
  InstructionId& init = operands->back();
  if (IsIdempotent(*opcode) || IsIdentity(i.operand(1), *opcode)) return;
  const InstructionId tile = emitter_.TileNumber(choice.frame, partial);
  const InstructionId first = builder().MakeCompare(ComparisonDirection::kEq, tile, emitter_.Constant(0));
  init = emitter_.Select(first, init, MakeIdentity(&emitter_, *opcode, i.operand(1).shape().element_type()));
}

void ComputationPartitioner::LocalizeAttributes(Instruction i, const FactorChoice& choice, InstructionId local) {
  const auto operand_dims = [&](int64_t k) { return module_.instruction(local).operand(k).shape().dims(); };
  switch (RuleClassOf(i)) {
    case RuleClass::kConvolution: {
      const int64_t feature_groups = i.int_attr(Attr::kFeatureGroupCount, 1);
      const int64_t batch_groups = i.int_attr(Attr::kBatchGroupCount, 1);
      // The factors in the order of the rule: batch groups, batch, feature groups.
      const auto tiles = [&](size_t factor) { return SizeOf(choice.axes[factor]); };
      if (batch_groups > 1) {
        const int64_t groups = batch_groups / tiles(0);
        module_.SetAttr(local, Attr::kBatchGroupCount, module_.EncodeInt64(groups));
        if (groups == 1) module_.RemoveAttr(local, Attr::kBatchGroupCount);
      }
      if (feature_groups > 1) {
        const int64_t groups = feature_groups / tiles(batch_groups > 1 ? 2 : 1);
        module_.SetAttr(local, Attr::kFeatureGroupCount, module_.EncodeInt64(groups));
        if (groups == 1) module_.RemoveAttr(local, Attr::kFeatureGroupCount);
      }
      const ConvolutionDims dims = ConvolutionDims::Of(i);
      std::vector<int64_t> window = ToVector(i.list_attr(Attr::kWindow));
      for (int64_t s = 0; s < dims.spatial_rank() && !window.empty(); ++s) {
        int64_t* w = window.data() + s * WindowView::kFields;
        const int64_t kernel = operand_dims(1)[ToSize(dims.kernel_spatial[ToSize(s)])];
        const int64_t input = operand_dims(0)[ToSize(dims.input_spatial[ToSize(s)])];
        switch (sharding::SpatialKindOf(i, s)) {
          case sharding::ConvolutionSpatialKind::kBatch:
            w[0] = kernel;
            w[1] = std::max<int64_t>(input - 1, 1);
            w[4] = input;
            break;
          case sharding::ConvolutionSpatialKind::kContracted:
            w[0] = kernel;
            break;
          case sharding::ConvolutionSpatialKind::kKernelOnly:
            w[0] = kernel;
            w[2] = w[3] = kernel - 1;
            break;
          case sharding::ConvolutionSpatialKind::kInputOnly:
          case sharding::ConvolutionSpatialKind::kWindow:
            break;
        }
      }
      if (!window.empty()) module_.SetAttr(local, Attr::kWindow, module_.ListPayload(window));
      break;
    }
    case RuleClass::kStated: {
      int64_t parts = 1;
      for (const AxisList& axes : choice.axes) parts *= SizeOf(axes);
      const std::string_view config = i.string_attr(Attr::kBackendConfig);
      if (parts == 1 || config.empty()) break;
      module_.SetAttr(local, Attr::kBackendConfig, module_.context().strings.Intern(DividedCost(config, parts)).value);
      break;
    }
    case RuleClass::kElementwise:
    case RuleClass::kForwarding:
    case RuleClass::kNothing:
    case RuleClass::kSource:
    case RuleClass::kWhole:
    case RuleClass::kDeviceDimension:
    case RuleClass::kBatchNorm:
    case RuleClass::kBitcastConvert:
    case RuleClass::kBroadcast:
    case RuleClass::kConcatenate:
    case RuleClass::kCustomCall:
    case RuleClass::kDot:
    case RuleClass::kDynamicSlice:
    case RuleClass::kDynamicUpdateSlice:
    case RuleClass::kFft:
    case RuleClass::kGather:
    case RuleClass::kMatrixWhole:
    case RuleClass::kPad:
    case RuleClass::kRaggedDot:
    case RuleClass::kReduce:
    case RuleClass::kReduceWindow:
    case RuleClass::kReshape:
    case RuleClass::kReverse:
    case RuleClass::kRngBitGenerator:
    case RuleClass::kScan:
    case RuleClass::kScatter:
    case RuleClass::kSelectAndScatter:
    case RuleClass::kSlice:
    case RuleClass::kSort:
    case RuleClass::kTopK:
    case RuleClass::kTranspose:
    case RuleClass::kTriangularSolve:
      break;
  }
  if (module_.instruction(local).has(Attr::kOperandLayoutConstraints)) {
    std::vector<int64_t> constraints = ToVector(i.list_attr(Attr::kOperandLayoutConstraints));
    for (size_t k = 0; k < constraints.size(); ++k) {
      ShapeTable& shapes = module_.context().shapes;
      const Shape given = shapes[ShapeId(static_cast<uint32_t>(constraints[k]))];
      if (!given.IsArray()) continue;
      const std::vector<int64_t> dims = ToVector(operand_dims(static_cast<int64_t>(k)));
      constraints[k] = shapes.Array(given.element_type(), dims, {}, given.layout()).id().value;
    }
    module_.SetAttr(local, Attr::kOperandLayoutConstraints, module_.ListPayload(constraints));
  }
}

}  // namespace hlokit::spmd
