// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/attribute_reader.h"

#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/complete_attributes.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/literal_proto.h"

namespace hlokit {
namespace {

using google::protobuf::RepeatedField;

absl::Span<const int64_t> Ints(const RepeatedField<int64_t>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

std::optional<uint32_t> Flag(bool value) { return value ? std::optional<uint32_t>(1) : std::nullopt; }

std::vector<int64_t> EncodeWindow(const xla::Window& window) {
  std::vector<int64_t> list;
  for (const xla::WindowDimension& d : window.dimensions()) {
    list.insert(list.end(), {d.size(), d.stride(), d.padding_low(), d.padding_high(), d.base_dilation(),
                             d.window_dilation(), d.window_reversal()});
  }
  return list;
}

absl::StatusOr<std::vector<int64_t>> EncodeConvolution(const xla::ConvolutionDimensionNumbers& dims) {
  const int spatial = dims.input_spatial_dimensions_size();
  if (dims.kernel_spatial_dimensions_size() != spatial || dims.output_spatial_dimensions_size() != spatial) {
    return absl::InvalidArgumentError("input, kernel and output must have the same number of spatial dimensions");
  }
  std::vector<int64_t> list = {spatial};
  const auto add = [&list](int64_t a, int64_t b, const RepeatedField<int64_t>& more) {
    list.push_back(a);
    list.push_back(b);
    list.insert(list.end(), more.begin(), more.end());
  };
  add(dims.input_batch_dimension(), dims.input_feature_dimension(), dims.input_spatial_dimensions());
  add(dims.kernel_input_feature_dimension(), dims.kernel_output_feature_dimension(), dims.kernel_spatial_dimensions());
  add(dims.output_batch_dimension(), dims.output_feature_dimension(), dims.output_spatial_dimensions());
  // As labels in HLO text: each dimension once on each side.
  const size_t side = static_cast<size_t>(spatial) + 2;
  for (size_t s = 0; s < 3; ++s) {
    std::vector<uint8_t> seen(side, 0);
    for (size_t k = 0; k < side; ++k) {
      const int64_t d = list[1 + s * side + k];
      if (d < 0 || d >= static_cast<int64_t>(side) || seen[static_cast<size_t>(d)]++ != 0) {
        return absl::InvalidArgumentError("convolution_dimension_numbers must name each dimension once");
      }
    }
  }
  return list;
}

std::string SparsityText(const xla::SparsityConfig& config) {
  const auto side = [](std::string_view name, const xla::SparsityConfig::TensorSparsityConfig& c) {
    return StrCat(name, "={sparsity=", c.num_non_zero(), "x", c.block_size(), " dimension=", c.dimension(),
                  " stride=", c.stride(), " idx=", c.idx(), "}");
  };
  std::string text = "{";
  if (config.has_lhs()) text += side("lhs", config.lhs());
  if (config.has_lhs() && config.has_rhs()) text += " ";
  if (config.has_rhs()) text += side("rhs", config.rhs());
  return text + "}";
}

const xla::DotDimensionNumbers& DotDimensions(const xla::HloInstructionProto& proto) {
  return proto.has_ragged_dot_dimension_numbers() ? proto.ragged_dot_dimension_numbers().dot_dimension_numbers()
                                                  : proto.dot_dimension_numbers();
}

}  // namespace

std::optional<Opcode> ProtoOpcode(const std::string& name, std::string_view* direction) {
  constexpr std::pair<std::string_view, std::string_view> kComparisons[] = {
      {"equal-to", "EQ"},     {"not-equal-to", "NE"}, {"greater-than-or-equal-to", "GE"},
      {"greater-than", "GT"}, {"less-than", "LT"},    {"less-than-or-equal-to", "LE"}};
  *direction = {};
  if (const std::optional<Opcode> opcode = OpcodeFromText(name)) return opcode;
  for (const auto& [old, word] : kComparisons) {
    if (name != old) continue;
    *direction = word;
    return Opcode::kCompare;
  }
  return std::nullopt;
}

const std::string* BackendConfigOf(const xla::HloInstructionProto& proto, const xla::HloModuleProto& module) {
  if (!proto.backend_config().empty()) return &proto.backend_config();
  const xla::Payload& payload = proto.backend_config_payload();
  if (payload.has_value()) return &payload.value();
  if (payload.has_id() && payload.id() >= 0 && payload.id() < module.payloads_size()) {
    return &module.payloads(static_cast<int>(payload.id()));
  }
  constexpr int kCustomCallOpaque = 53;  // in older files
  const google::protobuf::UnknownFieldSet& others = proto.GetReflection()->GetUnknownFields(proto);
  for (int k = 0; k < others.field_count(); ++k) {
    if (others.field(k).number() == kCustomCallOpaque &&
        others.field(k).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      return &others.field(k).length_delimited();
    }
  }
  return nullptr;
}

AttributeReader::Payload AttributeReader::Enum(Attr attr, int number) {
  const EnumType type = InfoOf(attr).enum_type;
  const size_t count = EnumTexts(type).size();
  for (uint32_t value = 0; value < count; ++value) {
    if (EnumProtoNumber(type, value) == number) return std::optional<uint32_t>(value);
  }
  return absl::InvalidArgumentError(StrCat("unknown value ", number, " of `", ToString(attr), "`"));
}

AttributeReader::Payload AttributeReader::EnumText(Attr attr, const std::string& text) {
  const std::optional<uint32_t> value = EnumFromText(InfoOf(attr).enum_type, text);
  if (value) return value;
  return absl::InvalidArgumentError(StrCat("unknown value `", text, "` of `", ToString(attr), "`"));
}

AttributeReader::Payload AttributeReader::Callee(const xla::HloInstructionProto& proto, int index) {
  if (index >= proto.called_computation_ids_size()) {
    return absl::InvalidArgumentError(
        StrCat("expected at least ", index + 1, " called computations, found ", proto.called_computation_ids_size()));
  }
  const absl::StatusOr<ComputationId> id = scope_.computation(proto.called_computation_ids(index));
  if (!id.ok()) return id.status();
  return std::optional<uint32_t>(id->value);
}

AttributeReader::Payload AttributeReader::Callees(const xla::HloInstructionProto& proto) {
  std::vector<int64_t> list;
  for (int64_t number : proto.called_computation_ids()) {
    const absl::StatusOr<ComputationId> id = scope_.computation(number);
    if (!id.ok()) return id.status();
    list.push_back(id->value);
  }
  return List(list);
}

// Computations are in the order of the attributes in HLO text, except that the body of a while comes first.
AttributeReader::Payload AttributeReader::ReadCallee(const xla::HloInstructionProto& proto, Opcode opcode, bool by_pred,
                                                     Attr attr) {
  if (attr == Attr::kBranchComputations) return by_pred ? Payload(std::nullopt) : Callees(proto);
  if (attr == Attr::kCalledComputations) return Callees(proto);
  if (attr == Attr::kTrueComputation || attr == Attr::kFalseComputation) {
    return by_pred ? Callee(proto, attr == Attr::kTrueComputation ? 0 : 1) : Payload(std::nullopt);
  }
  if (attr == Attr::kCondition || attr == Attr::kScatter) return Callee(proto, 1);
  const AttrSpec* spec = FindAttrSpec(opcode, attr);
  if (spec != nullptr && spec->presence == AttrSpec::kLegacy) return Payload(std::nullopt);
  return Callee(proto, 0);
}

// Messages have the sizes of all slices one after another, HLO text a list for each slice: as long as the rank of the
// array that it is a slice of.
AttributeReader::Payload AttributeReader::PermuteSliceSizes(const xla::HloInstructionProto& proto,
                                                            absl::Span<const InstructionId> operands) {
  if (proto.dynamic_slice_sizes_size() == 0 || operands.empty()) return Payload(std::nullopt);
  const std::vector<Shape> leaves = Leaves(module_.instruction(operands[0]).shape());
  int64_t total_rank = 0;
  for (Shape leaf : leaves) total_rank += leaf.rank();
  const int64_t sizes = proto.dynamic_slice_sizes_size();
  if (total_rank == 0 || sizes % total_rank != 0) {  // of no array: one slice
    std::vector<int64_t> one = {sizes};
    one.insert(one.end(), proto.dynamic_slice_sizes().begin(), proto.dynamic_slice_sizes().end());
    return List(one);
  }
  std::vector<int64_t> list;
  int at = 0;
  for (Shape leaf : leaves) {
    for (int64_t slice = 0; slice < sizes / total_rank; ++slice) {
      list.push_back(leaf.rank());
      for (int64_t d = 0; d < leaf.rank(); ++d) list.push_back(proto.dynamic_slice_sizes(at++));
    }
  }
  return List(list);
}

AttributeReader::Payload AttributeReader::ShardingOf(const xla::OpSharding& proto) {
  const absl::StatusOr<ListId> sharding = ReadSharding(proto, scope_.metadata, &context());
  if (!sharding.ok()) return sharding.status();
  return std::optional<uint32_t>(sharding->value);
}

absl::Status AttributeReader::Read(const xla::HloInstructionProto& proto, Opcode opcode,
                                   absl::Span<const InstructionId> operands, std::vector<AttrValue>* attrs) {
  for (const AttrSpec& spec : InfoOf(opcode).attributes) {
    const Payload payload = ReadOne(proto, opcode, operands, spec.attr);
    if (!payload.ok()) return payload.status();
    if (*payload) attrs->push_back({spec.attr, **payload});
  }
  if (proto.has_parameter_replication() && opcode == Opcode::kParameter) {
    std::vector<int64_t> list;
    for (bool replicated : proto.parameter_replication().replicated_at_leaf_buffers()) list.push_back(replicated);
    if (!list.empty()) attrs->push_back({Attr::kParameterReplication, module_.ListPayload(list)});
  }
  if (proto.has_sharding()) {
    const Payload sharding = ShardingOf(proto.sharding());
    if (!sharding.ok()) return sharding.status();
    attrs->push_back({Attr::kSharding, **sharding});
  }
  if (proto.has_original_value()) {
    // One that is no tree has no form here.
    const absl::StatusOr<ListId> origin = ReadOriginalValue(proto.original_value(), &context());
    if (origin.ok()) attrs->push_back({Attr::kOrigin, origin->value});
  }
  if (proto.frontend_attributes().map_size() != 0) {
    const ListId id = ReadFrontendAttributes(proto.frontend_attributes(), &context());
    attrs->push_back({Attr::kFrontendAttributes, id.value});
  }
  if (proto.statistics_viz().statistics_size() != 0) {
    attrs->push_back({Attr::kStatistics, ReadStatistics(proto.statistics_viz(), &context()).value});
  }
  if (const std::string* config = BackendConfigOf(proto, *scope_.proto); config != nullptr && !config->empty()) {
    attrs->push_back({Attr::kBackendConfig, context().strings.Intern(*config).value});
  }
  return absl::OkStatus();
}

AttributeReader::Payload AttributeReader::Comparison(const xla::HloInstructionProto& proto,
                                                     absl::Span<const InstructionId> operands) {
  const std::string& order = proto.comparison_order();
  if (order != "TOTAL" && order != "PARTIAL") {
    return absl::InvalidArgumentError(StrCat("the order of a comparison is TOTAL or PARTIAL, not `", order, "`"));
  }
  // The older form says the same, or more of it: of integers whether they are signed.
  const std::string& type = proto.comparison_type();
  if (!type.empty() && (type == "FLOAT") == (order == "PARTIAL")) return EnumText(Attr::kCompareType, type);
  const Shape operand = operands.empty() ? Shape() : module_.instruction(operands[0]).shape();
  if (!operand.valid() || !operand.IsArray()) return std::optional<uint32_t>();
  const std::optional<ComparisonType> comparison = ComparisonOfOrder(order == "TOTAL", operand.element_type());
  if (!comparison) return std::optional<uint32_t>();
  return std::optional<uint32_t>(static_cast<uint32_t>(*comparison));
}

AttributeReader::Payload AttributeReader::ReadOne(const xla::HloInstructionProto& proto, Opcode opcode,
                                                  absl::Span<const InstructionId> operands, Attr attr) {
  const Payload absent = std::optional<uint32_t>();
  switch (attr) {
    case Attr::kApiVersion:
      return proto.custom_call_api_version() == xla::API_VERSION_UNSPECIFIED
                 ? absent
                 : Enum(attr, proto.custom_call_api_version());
    case Attr::kAsyncExecutionThread:
      return proto.async_execution_thread().empty() ? absent : String(proto.async_execution_thread());
    case Attr::kBatchGroupCount:
      return proto.batch_group_count() == 0 ? absent : Int(proto.batch_group_count());
    case Attr::kChannelId: {
      if (proto.has_channel_id() && proto.channel_id() >= 0) return Int(proto.channel_id());
      return proto.all_reduce_id() > 0 ? Int(proto.all_reduce_id()) : absent;
    }
    case Attr::kCollapsedSliceDims:
      return List(Ints(proto.gather_dimension_numbers().collapsed_slice_dims()));
    case Attr::kCompareType:
      if (!proto.comparison_order().empty()) return Comparison(proto, operands);
      return proto.comparison_type().empty() ? absent : EnumText(attr, proto.comparison_type());
    case Attr::kConstrainLayout:
      return Flag(proto.constrain_layout());
    case Attr::kConvolutionKind:
      return Enum(attr, proto.conv_kind());
    case Attr::kCrossProgramPrefetchIndex:
      if (proto.has_cross_program_prefetch_index()) return Int(proto.cross_program_prefetch_index());
      return proto.is_cross_program_prefetch() ? Int(0) : absent;
    case Attr::kCustomCallHasSideEffect:
      return Flag(proto.custom_call_has_side_effect());
    case Attr::kCustomCallTarget:
      return String(proto.custom_call_target());
    case Attr::kDelta:
      return Int(proto.delta());
    case Attr::kDimensions: {
      const AttrSpec* spec = FindAttrSpec(opcode, attr);
      const bool optional = spec != nullptr && spec->presence == AttrSpec::kOptional && opcode != Opcode::kBroadcast;
      return optional && proto.dimensions_size() == 0 ? absent : List(Ints(proto.dimensions()));
    }
    case Attr::kDimLabels: {
      if (!proto.has_convolution_dimension_numbers()) return absent;
      const absl::StatusOr<std::vector<int64_t>> dims = EncodeConvolution(proto.convolution_dimension_numbers());
      return dims.ok() ? List(*dims) : Payload(dims.status());
    }
    case Attr::kDirection: {
      std::string_view direction;
      ProtoOpcode(proto.opcode(), &direction);
      return EnumText(attr, direction.empty() ? proto.comparison_direction() : std::string(direction));
    }
    case Attr::kDistribution:
      return Enum(attr, proto.distribution());
    case Attr::kDomain: {
      const Payload entry = ShardingOf(proto.domain_entry_sharding());
      if (!entry.ok()) return entry;
      const Payload exit = ShardingOf(proto.domain_exit_sharding());
      if (!exit.ok()) return exit;
      const int64_t domain[] = {context().strings.Intern("sharding").value, **entry, **exit};
      return List(domain);
    }
    case Attr::kDotAlgorithm:
      return Enum(attr, proto.precision_config().algorithm());
    case Attr::kDynamicSliceSizes:
      return List(Ints(proto.dynamic_slice_sizes()));
    case Attr::kEpsilon:
      return std::optional<uint32_t>(std::bit_cast<uint32_t>(proto.epsilon()));
    case Attr::kExponentBits:
      return Int(proto.exponent_bits());
    case Attr::kFeatureGroupCount:
      return proto.feature_group_count() == 0 ? absent : Int(proto.feature_group_count());
    case Attr::kFeatureIndex:
      return Int(proto.feature_index());
    case Attr::kFftLength:
      return List(Ints(proto.fft_length()));
    case Attr::kFftType:
      return Enum(attr, proto.fft_type());
    case Attr::kFusionKind:
      return EnumText(attr, proto.fusion_kind());
    case Attr::kHasDynamicRoot:
      return Flag(proto.has_dynamic_root());
    case Attr::kIndex:
      return Int(proto.tuple_index());
    case Attr::kIndexVectorDim:
      return Int(opcode == Opcode::kGather ? proto.gather_dimension_numbers().index_vector_dim()
                                           : proto.scatter_dimension_numbers().index_vector_dim());
    case Attr::kIndicesAreSorted:
      return Flag(proto.indices_are_sorted());
    case Attr::kInferredDimension:
      return proto.dimensions_size() == 0 ? absent : Int(proto.dimensions(0));
    case Attr::kIotaDimension:
      if (proto.dimensions_size() != 1) return absl::InvalidArgumentError("expected one dimension of an iota");
      return Int(proto.dimensions(0));
    case Attr::kInfeedConfig:
      return String(proto.infeed_config());
    case Attr::kInputBatchingDims:
      return List(Ints(proto.scatter_dimension_numbers().input_batching_dims()));
    case Attr::kInsertedWindowDims:
      return List(Ints(proto.scatter_dimension_numbers().inserted_window_dims()));
    case Attr::kIsAssociative:
      return Flag(proto.is_associative() == xla::TRI_STATE_TRUE);
    case Attr::kIsComposite:
      return Flag(proto.is_composite());
    case Attr::kIsHostTransfer:
      return Flag(proto.is_host_transfer());
    case Attr::kIsReverse:
      return Flag(proto.is_reverse());
    case Attr::kIsStable:
      return std::optional<uint32_t>(proto.is_stable());
    case Attr::kK:
      return Int(proto.k());
    case Attr::kLargest:
      return std::optional<uint32_t>(proto.largest());
    case Attr::kLeftSide:
      return Flag(proto.triangular_solve_options().left_side());
    case Attr::kLhsBatchDims:
      return List(Ints(DotDimensions(proto).lhs_batch_dimensions()));
    case Attr::kLhsContractingDims:
      return List(Ints(DotDimensions(proto).lhs_contracting_dimensions()));
    case Attr::kLhsRaggedDims:
      return List(Ints(proto.ragged_dot_dimension_numbers().lhs_ragged_dimensions()));
    case Attr::kLiteral: {
      if (!proto.has_literal()) return absent;
      const absl::StatusOr<Shape> shape = ReadShape(proto.literal().shape(), &context());
      if (!shape.ok()) return shape.status();
      const absl::StatusOr<LiteralId> literal = ReadConstant(proto.literal(), *shape, &context(), scope_.literal_bytes);
      if (!literal.ok()) return literal.status();
      return std::optional<uint32_t>(literal->value);
    }
    case Attr::kLower:
      return Flag(opcode == Opcode::kCholesky ? proto.cholesky_options().lower()
                                              : proto.triangular_solve_options().lower());
    case Attr::kMantissaBits:
      return Int(proto.mantissa_bits());
    case Attr::kNumCarries:
      return Int(proto.num_carries());
    case Attr::kOffsetDims:
      return List(Ints(proto.gather_dimension_numbers().offset_dims()));
    case Attr::kOperandBatchingDims:
      return List(Ints(proto.gather_dimension_numbers().operand_batching_dims()));
    case Attr::kOperandLayoutConstraints: {
      if (!proto.constrain_layout()) return absent;
      std::vector<int64_t> list;
      for (const xla::ShapeProto& shape : proto.operand_shapes_with_layout()) {
        const absl::StatusOr<Shape> read = ReadShape(shape, &context());
        if (!read.ok()) return read.status();
        list.push_back(read->id().value);
      }
      return List(list);
    }
    case Attr::kOperandPrecision: {
      std::vector<int64_t> list;
      for (int precision : proto.precision_config().operand_precision()) {
        constexpr int kLast = static_cast<int>(Precision::kPackedNibble);
        if (precision < 0 || precision > kLast) {
          return absl::InvalidArgumentError(StrCat("unknown precision ", precision));
        }
        list.push_back(precision);
      }
      return list.empty() ? absent : List(list);
    }
    case Attr::kOutfeedConfig:
      return String(proto.outfeed_config());
    case Attr::kOutfeedShape: {
      if (!proto.has_outfeed_shape()) return absent;
      const absl::StatusOr<Shape> shape = ReadShape(proto.outfeed_shape(), &context());
      if (!shape.ok()) return shape.status();
      return std::optional<uint32_t>(shape->id().value);
    }
    case Attr::kOutputToOperandAliasing: {
      std::vector<int64_t> list;
      const auto add_index = [&list](const RepeatedField<int64_t>& index) {
        list.push_back(index.size());
        list.insert(list.end(), index.begin(), index.end());
      };
      for (const xla::OutputOperandAliasing& entry : proto.output_operand_aliasing()) {
        add_index(entry.output_shape_index());
        list.push_back(entry.operand_index());
        add_index(entry.operand_shape_index());
      }
      return List(list);
    }
    case Attr::kPadding: {
      std::vector<int64_t> list;
      for (const xla::PaddingConfig::PaddingConfigDimension& d : proto.padding_config().dimensions()) {
        list.insert(list.end(), {d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
      }
      return List(list);
    }
    case Attr::kPaddingType:
      return Enum(attr, proto.padding_type());
    case Attr::kPermuteSliceSizes:
      return PermuteSliceSizes(proto, operands);
    case Attr::kReplicaGroups: {
      const absl::StatusOr<ListId> groups = ReadReplicaGroups(proto, &context());
      if (!groups.ok()) return groups.status();
      return std::optional<uint32_t>(groups->value);
    }
    case Attr::kResultAccuracy:
      if (!proto.has_result_accuracy()) return absent;
      return std::optional<uint32_t>(ReadAccuracy(proto.result_accuracy(), &context()).value);
    case Attr::kRhsBatchDims:
      return List(Ints(DotDimensions(proto).rhs_batch_dimensions()));
    case Attr::kRhsContractingDims:
      return List(Ints(DotDimensions(proto).rhs_contracting_dimensions()));
    case Attr::kRhsGroupDims:
      return List(Ints(proto.ragged_dot_dimension_numbers().rhs_group_dimensions()));
    case Attr::kRngAlgorithm:
      return Enum(attr, proto.rng_algorithm());
    case Attr::kScatterDimsToOperandDims:
      return List(Ints(proto.scatter_dimension_numbers().scatter_dims_to_operand_dims()));
    case Attr::kScatterIndicesBatchingDims:
      return List(Ints(proto.scatter_dimension_numbers().scatter_indices_batching_dims()));
    case Attr::kSchedule:
      return Enum(attr, proto.custom_call_schedule());
    case Attr::kSlice: {
      std::vector<int64_t> list;
      for (const xla::HloInstructionProto::SliceDimensions& d : proto.slice_dimensions()) {
        list.insert(list.end(), {d.start(), d.limit(), d.stride()});
      }
      return List(list);
    }
    case Attr::kSliceSizes:
      return List(Ints(proto.gather_slice_sizes()));
    case Attr::kSourceTargetPairs: {
      std::vector<int64_t> list;
      for (const xla::SourceTarget& pair : proto.source_target_pairs()) {
        list.insert(list.end(), {2, pair.source(), pair.target()});
      }
      return List(list);
    }
    case Attr::kSparsityConfig:
      if (!proto.sparsity_config().has_lhs() && !proto.sparsity_config().has_rhs()) return absent;
      return String(SparsityText(proto.sparsity_config()));
    case Attr::kStartIndexMap:
      return List(Ints(proto.gather_dimension_numbers().start_index_map()));
    case Attr::kStartIndicesBatchingDims:
      return List(Ints(proto.gather_dimension_numbers().start_indices_batching_dims()));
    case Attr::kTransposeA:
      return Enum(attr, proto.triangular_solve_options().transpose_a());
    case Attr::kUniqueIndices:
      return Flag(proto.unique_indices());
    case Attr::kUnitDiagonal:
      return Flag(proto.triangular_solve_options().unit_diagonal());
    case Attr::kUpdateWindowDims:
      return List(Ints(proto.scatter_dimension_numbers().update_window_dims()));
    case Attr::kUseGlobalDeviceIds:
      return Flag(proto.use_global_device_ids());
    case Attr::kWindow:
      // Only of custom calls is a window without dimensions other than none.
      if (proto.window().dimensions_size() == 0 && (opcode != Opcode::kCustomCall || !proto.has_window()))
        return absent;
      return List(EncodeWindow(proto.window()));
    case Attr::kBody:
    case Attr::kBranchComputations:
    case Attr::kCalledComputations:
    case Attr::kCalls:
    case Attr::kCondition:
    case Attr::kFalseComputation:
    case Attr::kScatter:
    case Attr::kSelect:
    case Attr::kToApply:
    case Attr::kTrueComputation: {
      const Shape selector = operands.empty() ? Shape() : module_.instruction(operands[0]).shape();
      const bool by_pred = selector.valid() && selector.element_type() == ElementType::kPred;
      return ReadCallee(proto, opcode, by_pred, attr);
    }
    // Without a field, or common to all opcodes.
    case Attr::kMode:
    case Attr::kParameterReplication:
    case Attr::kSharding:
    case Attr::kOrigin:
    case Attr::kFrontendAttributes:
    case Attr::kControlPredecessors:
    case Attr::kStatistics:
    case Attr::kMetadata:
    case Attr::kBackendConfig:
    case Attr::kUnknownOpcode:
    case Attr::kUnknownAttributes:
      return absent;
  }
  return absent;
}

}  // namespace hlokit
