// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/attribute_reader.h"

#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/complete_attributes.h"
#include "parser/hlo/attribute_parser.h"
#include "parser/hlo/shape_parser.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/literal_proto.h"
#include "parser/text/text_cursor.h"

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

// Attributes that messages have as text.
constexpr std::array<bool, kAttrCount> kIsText = [] {
  std::array<bool, kAttrCount> table{};
#define PROTO_TEXT(Name) table[static_cast<size_t>(Attr::k##Name)] = true;
#define PROTO_CUSTOM(Name)
#include "parser/proto/attribute_fields.def"
  return table;
}();

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
AttributeReader::Payload AttributeReader::ReadCallee(const Source& in, Attr attr) {
  const xla::HloInstructionProto& proto = in.proto;
  const Shape selector = FirstOperand(in);
  const bool by_pred = selector.valid() && selector.element_type() == ElementType::kPred;
  if (attr == Attr::kBranchComputations) return by_pred ? Absent() : Callees(proto);
  if (attr == Attr::kCalledComputations) return Callees(proto);
  if (attr == Attr::kTrueComputation || attr == Attr::kFalseComputation) {
    return by_pred ? Callee(proto, attr == Attr::kTrueComputation ? 0 : 1) : Absent();
  }
  if (attr == Attr::kCondition || attr == Attr::kScatter) return Callee(proto, 1);
  const AttrSpec* spec = FindAttrSpec(in.opcode, attr);
  if (spec != nullptr && spec->presence == AttrSpec::kLegacy) return Absent();
  return Callee(proto, 0);
}

// The HLO text that InstructionWriter::WriteText wrote.
AttributeReader::Payload AttributeReader::ReadText(const Source& in, Attr attr) {
  const auto& map = in.proto.frontend_attributes().map();
  const auto found = map.find(TextKey(attr));
  if (found == map.end()) return Absent();
  const std::string text = found->second;
  DiagnosticSink sink;
  TextCursor cursor(text, &sink);
  constexpr int64_t kMaxNesting = 64;
  ShapeParser shapes(&cursor, &context(), kMaxNesting);
  LiteralBudget budget;
  AttributeParser parser(&cursor, &context(), &shapes, &budget);
  uint32_t payload = 0;
  if (!parser.Parse(attr, &payload) || !cursor.AtEnd()) {
    return absl::InvalidArgumentError(
        StrCat("the frontend attribute ", TextKey(attr), " is no value of `", ToString(attr), "`: ", text));
  }
  return IsElided(module_, in.opcode, {attr, payload}) ? Absent() : Payload(payload);
}

// Messages have the sizes of all slices one after another, HLO text a list for each slice: as long as the rank of the
// array that it is a slice of.
AttributeReader::Payload AttributeReader::ReadPermuteSliceSizes(const Source& in) {
  const xla::HloInstructionProto& proto = in.proto;
  if (proto.dynamic_slice_sizes_size() == 0 || in.operands.empty()) return Absent();
  const std::vector<Shape> leaves = Leaves(module_.instruction(in.operands[0]).shape());
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
  const absl::StatusOr<ListId> sharding = hlokit::ReadSharding(proto, scope_.metadata, &context());
  if (!sharding.ok()) return sharding.status();
  return std::optional<uint32_t>(sharding->value);
}

Shape AttributeReader::FirstOperand(const Source& in) const {
  return in.operands.empty() ? Shape() : module_.instruction(in.operands[0]).shape();
}

absl::Status AttributeReader::Read(const xla::HloInstructionProto& proto, Opcode opcode,
                                   absl::Span<const InstructionId> operands, std::vector<AttrValue>* attrs) {
  const Source in = {proto, opcode, operands};
  const auto read = [&](Attr attr) {
    const Payload payload = ReadOne(in, attr);
    if (payload.ok() && *payload) attrs->push_back({attr, **payload});
    return payload.status();
  };
  for (const AttrSpec& spec : InfoOf(opcode).attributes) {
    if (absl::Status status = read(spec.attr); !status.ok()) return status;
  }
  // Those of all opcodes. Only parameters have a replication.
  for (size_t i = static_cast<size_t>(Attr::kParameterReplication) + 1; i < kAttrCount; ++i) {
    if (absl::Status status = read(static_cast<Attr>(i)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

AttributeReader::Payload AttributeReader::ReadOne(const Source& in, Attr attr) {
  const xla::HloInstructionProto& proto = in.proto;
  switch (attr) {
#define PROTO_FLAG(Name, field) \
  case Attr::k##Name:           \
    return Flag(proto.field());
#define PROTO_BOOL(Name, field) \
  case Attr::k##Name:           \
    return std::optional<uint32_t>(proto.field());
#define PROTO_INT(Name, field) \
  case Attr::k##Name:          \
    return Int(proto.field());
#define PROTO_COUNT(Name, field) \
  case Attr::k##Name:            \
    return proto.field() == 0 ? Absent() : Int(proto.field());
#define PROTO_INTS(Name, field) \
  case Attr::k##Name:           \
    return List(Ints(proto.field()));
#define PROTO_STRING(Name, field) \
  case Attr::k##Name:             \
    return String(proto.field());
#define PROTO_BYTES(Name, field) PROTO_STRING(Name, field)
#define PROTO_ENUM(Name, field) \
  case Attr::k##Name:           \
    return Enum(attr, proto.field());
#define PROTO_FLAG_IN(Name, message, field) PROTO_FLAG(Name, message().field)
#define PROTO_ENUM_IN(Name, message, field) PROTO_ENUM(Name, message().field)
#define PROTO_INTS_IN(Name, message, field) PROTO_INTS(Name, message().field)
#define PROTO_DOT_DIMS(Name, field) \
  case Attr::k##Name:               \
    return List(Ints(DotDimensions(proto).field()));
#define PROTO_TEXT(Name) \
  case Attr::k##Name:    \
    return ReadText(in, attr);
#define PROTO_CALLEE(Name) \
  case Attr::k##Name:      \
    return ReadCallee(in, attr);
#define PROTO_CUSTOM(Name) \
  case Attr::k##Name:      \
    return Read##Name(in);
#define PROTO_NONE(Name) \
  case Attr::k##Name:    \
    return Absent();
#include "parser/proto/attribute_fields.def"
  }
  return Absent();
}

AttributeReader::Payload AttributeReader::ReadApiVersion(const Source& in) {
  const xla::CustomCallApiVersion version = in.proto.custom_call_api_version();
  return version == xla::API_VERSION_UNSPECIFIED ? Absent() : Enum(Attr::kApiVersion, version);
}

AttributeReader::Payload AttributeReader::ReadAsyncExecutionThread(const Source& in) {
  const std::string& thread = in.proto.async_execution_thread();
  return thread.empty() ? Absent() : String(thread);
}

AttributeReader::Payload AttributeReader::ReadChannelId(const Source& in) {
  if (in.proto.has_channel_id() && in.proto.channel_id() >= 0) return Int(in.proto.channel_id());
  return in.proto.all_reduce_id() > 0 ? Int(in.proto.all_reduce_id()) : Absent();
}

AttributeReader::Payload AttributeReader::ReadCompareType(const Source& in) {
  const std::string& order = in.proto.comparison_order();
  const std::string& type = in.proto.comparison_type();
  if (order.empty()) return type.empty() ? Absent() : EnumText(Attr::kCompareType, type);
  if (order != "TOTAL" && order != "PARTIAL") {
    return absl::InvalidArgumentError(StrCat("the order of a comparison is TOTAL or PARTIAL, not `", order, "`"));
  }
  // The older form says the same, or more of it: of integers whether they are signed.
  if (!type.empty() && (type == "FLOAT") == (order == "PARTIAL")) return EnumText(Attr::kCompareType, type);
  const Shape operand = FirstOperand(in);
  if (!operand.valid() || !operand.IsArray()) return Absent();
  const std::optional<ComparisonType> comparison = ComparisonOfOrder(order == "TOTAL", operand.element_type());
  if (!comparison) return Absent();
  return std::optional<uint32_t>(static_cast<uint32_t>(*comparison));
}

AttributeReader::Payload AttributeReader::ReadCrossProgramPrefetchIndex(const Source& in) {
  if (in.proto.has_cross_program_prefetch_index()) return Int(in.proto.cross_program_prefetch_index());
  return in.proto.is_cross_program_prefetch() ? Int(0) : Absent();
}

AttributeReader::Payload AttributeReader::ReadDimensions(const Source& in) {
  const AttrSpec* spec = FindAttrSpec(in.opcode, Attr::kDimensions);
  const bool optional = spec != nullptr && spec->presence == AttrSpec::kOptional && in.opcode != Opcode::kBroadcast;
  return optional && in.proto.dimensions_size() == 0 ? Absent() : List(Ints(in.proto.dimensions()));
}

AttributeReader::Payload AttributeReader::ReadDimLabels(const Source& in) {
  if (!in.proto.has_convolution_dimension_numbers()) return Absent();
  const absl::StatusOr<std::vector<int64_t>> dims = EncodeConvolution(in.proto.convolution_dimension_numbers());
  return dims.ok() ? List(*dims) : Payload(dims.status());
}

AttributeReader::Payload AttributeReader::ReadDirection(const Source& in) {
  std::string_view direction;
  ProtoOpcode(in.proto.opcode(), &direction);
  return EnumText(Attr::kDirection, direction.empty() ? in.proto.comparison_direction() : std::string(direction));
}

AttributeReader::Payload AttributeReader::ReadDomain(const Source& in) {
  const Payload entry = ShardingOf(in.proto.domain_entry_sharding());
  if (!entry.ok()) return entry;
  const Payload exit = ShardingOf(in.proto.domain_exit_sharding());
  if (!exit.ok()) return exit;
  const int64_t domain[] = {context().strings.Intern("sharding").value, **entry, **exit};
  return List(domain);
}

AttributeReader::Payload AttributeReader::ReadEpsilon(const Source& in) {
  return std::optional<uint32_t>(std::bit_cast<uint32_t>(in.proto.epsilon()));
}

AttributeReader::Payload AttributeReader::ReadFusionKind(const Source& in) {
  return EnumText(Attr::kFusionKind, in.proto.fusion_kind());
}

AttributeReader::Payload AttributeReader::ReadIndexVectorDim(const Source& in) {
  return Int(in.opcode == Opcode::kGather ? in.proto.gather_dimension_numbers().index_vector_dim()
                                          : in.proto.scatter_dimension_numbers().index_vector_dim());
}

AttributeReader::Payload AttributeReader::ReadInferredDimension(const Source& in) {
  return in.proto.dimensions_size() == 0 ? Absent() : Int(in.proto.dimensions(0));
}

AttributeReader::Payload AttributeReader::ReadIotaDimension(const Source& in) {
  if (in.proto.dimensions_size() != 1) return absl::InvalidArgumentError("expected one dimension of an iota");
  return Int(in.proto.dimensions(0));
}

AttributeReader::Payload AttributeReader::ReadIsAssociative(const Source& in) {
  return Flag(in.proto.is_associative() == xla::TRI_STATE_TRUE);
}

AttributeReader::Payload AttributeReader::ReadLiteral(const Source& in) {
  if (!in.proto.has_literal()) return Absent();
  const absl::StatusOr<Shape> shape = ReadShape(in.proto.literal().shape(), &context());
  if (!shape.ok()) return shape.status();
  const absl::StatusOr<LiteralId> literal = ReadConstant(in.proto.literal(), *shape, &context(), scope_.literal_bytes);
  if (!literal.ok()) return literal.status();
  return std::optional<uint32_t>(literal->value);
}

AttributeReader::Payload AttributeReader::ReadLower(const Source& in) {
  return Flag(in.opcode == Opcode::kCholesky ? in.proto.cholesky_options().lower()
                                             : in.proto.triangular_solve_options().lower());
}

AttributeReader::Payload AttributeReader::ReadOperandLayoutConstraints(const Source& in) {
  if (!in.proto.constrain_layout()) return Absent();
  std::vector<int64_t> list;
  for (const xla::ShapeProto& shape : in.proto.operand_shapes_with_layout()) {
    const absl::StatusOr<Shape> read = ReadShape(shape, &context());
    if (!read.ok()) return read.status();
    list.push_back(read->id().value);
  }
  return List(list);
}

AttributeReader::Payload AttributeReader::ReadOperandPrecision(const Source& in) {
  std::vector<int64_t> list;
  for (int precision : in.proto.precision_config().operand_precision()) {
    constexpr int kLast = static_cast<int>(Precision::kPackedNibble);
    if (precision < 0 || precision > kLast) {
      return absl::InvalidArgumentError(StrCat("unknown precision ", precision));
    }
    list.push_back(precision);
  }
  return list.empty() ? Absent() : List(list);
}

AttributeReader::Payload AttributeReader::ReadOutfeedShape(const Source& in) {
  if (!in.proto.has_outfeed_shape()) return Absent();
  const absl::StatusOr<Shape> shape = ReadShape(in.proto.outfeed_shape(), &context());
  if (!shape.ok()) return shape.status();
  return std::optional<uint32_t>(shape->id().value);
}

AttributeReader::Payload AttributeReader::ReadOutputToOperandAliasing(const Source& in) {
  std::vector<int64_t> list;
  const auto add_index = [&list](const RepeatedField<int64_t>& index) {
    list.push_back(index.size());
    list.insert(list.end(), index.begin(), index.end());
  };
  for (const xla::OutputOperandAliasing& entry : in.proto.output_operand_aliasing()) {
    add_index(entry.output_shape_index());
    list.push_back(entry.operand_index());
    add_index(entry.operand_shape_index());
  }
  return List(list);
}

AttributeReader::Payload AttributeReader::ReadPadding(const Source& in) {
  std::vector<int64_t> list;
  for (const xla::PaddingConfig::PaddingConfigDimension& d : in.proto.padding_config().dimensions()) {
    list.insert(list.end(), {d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
  }
  return List(list);
}

AttributeReader::Payload AttributeReader::ReadReplicaGroups(const Source& in) {
  const absl::StatusOr<ListId> groups = hlokit::ReadReplicaGroups(in.proto, &context());
  if (!groups.ok()) return groups.status();
  return std::optional<uint32_t>(groups->value);
}

AttributeReader::Payload AttributeReader::ReadResultAccuracy(const Source& in) {
  if (!in.proto.has_result_accuracy()) return Absent();
  return std::optional<uint32_t>(ReadAccuracy(in.proto.result_accuracy(), &context()).value);
}

AttributeReader::Payload AttributeReader::ReadSlice(const Source& in) {
  std::vector<int64_t> list;
  for (const xla::HloInstructionProto::SliceDimensions& d : in.proto.slice_dimensions()) {
    list.insert(list.end(), {d.start(), d.limit(), d.stride()});
  }
  return List(list);
}

AttributeReader::Payload AttributeReader::ReadSourceTargetPairs(const Source& in) {
  std::vector<int64_t> list;
  for (const xla::SourceTarget& pair : in.proto.source_target_pairs()) {
    list.insert(list.end(), {2, pair.source(), pair.target()});
  }
  return List(list);
}

AttributeReader::Payload AttributeReader::ReadSparsityConfig(const Source& in) {
  const xla::SparsityConfig& config = in.proto.sparsity_config();
  return config.has_lhs() || config.has_rhs() ? String(SparsityText(config)) : Absent();
}

AttributeReader::Payload AttributeReader::ReadWindow(const Source& in) {
  // Only of custom calls is a window without dimensions other than none.
  const bool none = in.opcode != Opcode::kCustomCall || !in.proto.has_window();
  return none && in.proto.window().dimensions_size() == 0 ? Absent() : List(EncodeWindow(in.proto.window()));
}

// ---- attributes of all opcodes ----

AttributeReader::Payload AttributeReader::ReadParameterReplication(const Source& in) {
  std::vector<int64_t> list;
  for (bool replicated : in.proto.parameter_replication().replicated_at_leaf_buffers()) list.push_back(replicated);
  return list.empty() ? Absent() : List(list);
}

AttributeReader::Payload AttributeReader::ReadSharding(const Source& in) {
  return in.proto.has_sharding() ? ShardingOf(in.proto.sharding()) : Absent();
}

AttributeReader::Payload AttributeReader::ReadOrigin(const Source& in) {
  if (!in.proto.has_original_value()) return Absent();
  // One that is no tree has no form here.
  const absl::StatusOr<ListId> origin = ReadOriginalValue(in.proto.original_value(), &context());
  return origin.ok() ? Payload(origin->value) : Absent();
}

AttributeReader::Payload AttributeReader::ReadFrontendAttributes(const Source& in) {
  const xla::FrontendAttributes& given = in.proto.frontend_attributes();
  std::vector<std::string> texts;  // of attributes without a field
  for (const AttrSpec& spec : InfoOf(in.opcode).attributes) {
    if (!kIsText[static_cast<size_t>(spec.attr)]) continue;
    if (std::string key = TextKey(spec.attr); given.map().contains(key)) texts.push_back(std::move(key));
  }
  if (given.map_size() == static_cast<int>(texts.size())) return Absent();
  if (texts.empty()) return std::optional<uint32_t>(hlokit::ReadFrontendAttributes(given, &context()).value);
  xla::FrontendAttributes others = given;
  for (const std::string& key : texts) others.mutable_map()->erase(key);
  return std::optional<uint32_t>(hlokit::ReadFrontendAttributes(others, &context()).value);
}

AttributeReader::Payload AttributeReader::ReadControlPredecessors(const Source& /*in*/) {
  return Absent();  // see Read
}

AttributeReader::Payload AttributeReader::ReadStatistics(const Source& in) {
  if (in.proto.statistics_viz().statistics_size() == 0) return Absent();
  return std::optional<uint32_t>(hlokit::ReadStatistics(in.proto.statistics_viz(), &context()).value);
}

AttributeReader::Payload AttributeReader::ReadBackendConfig(const Source& in) {
  const std::string* config = BackendConfigOf(in.proto, *scope_.proto);
  return config != nullptr && !config->empty() ? String(*config) : Absent();
}

}  // namespace hlokit
