// SPDX-License-Identifier: Apache-2.0
// Attributes as fields of XLA's HloInstructionProto, by the column `proto` of ir/ops/attributes.def.
#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>

#include "ir/graph/attribute_views.h"
#include "ir/text/attribute_text.h"
#include "ir/text/printer.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/instruction_writer.h"
#include "parser/proto/sharding_proto.h"

namespace hlokit {
namespace {

template <typename Field>
void AddAll(absl::Span<const int64_t> values, Field* field) {
  field->Add(values.begin(), values.end());
}

int ProtoNumber(AttrValue value) { return EnumProtoNumber(InfoOf(value.attr).enum_type, value.payload); }

std::string EnumText(AttrValue value) {
  const absl::Span<const std::string_view> texts = EnumTexts(InfoOf(value.attr).enum_type);
  return value.payload < texts.size() ? std::string(texts[value.payload]) : std::string();
}

xla::DotDimensionNumbers* MutableDotDimensions(Instruction i, xla::HloInstructionProto* out) {
  return i.opcode() == Opcode::kRaggedDot ? out->mutable_ragged_dot_dimension_numbers()->mutable_dot_dimension_numbers()
                                          : out->mutable_dot_dimension_numbers();
}

}  // namespace

absl::Status InstructionWriter::WriteAttribute(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  const Attr attr = value.attr;
  switch (attr) {
#define PROTO_FLAG(Name, field)           \
  case Attr::k##Name:                     \
    out->set_##field(value.payload != 0); \
    break;
#define PROTO_BOOL(Name, field) PROTO_FLAG(Name, field)
#define PROTO_INT(Name, field)                                               \
  case Attr::k##Name:                                                        \
    out->set_##field(static_cast<decltype(out->field())>(i.int_attr(attr))); \
    break;
#define PROTO_COUNT(Name, field) PROTO_INT(Name, field)
#define PROTO_INTS(Name, field)                        \
  case Attr::k##Name:                                  \
    AddAll(i.list_attr(attr), out->mutable_##field()); \
    break;
#define PROTO_STRING(Name, field)                \
  case Attr::k##Name:                            \
    out->set_##field(Utf8(i.string_attr(attr))); \
    break;
#define PROTO_BYTES(Name, field)                        \
  case Attr::k##Name:                                   \
    out->set_##field(std::string(i.string_attr(attr))); \
    break;
#define PROTO_ENUM(Name, field)                                                \
  case Attr::k##Name:                                                          \
    out->set_##field(static_cast<decltype(out->field())>(ProtoNumber(value))); \
    break;
#define PROTO_FLAG_IN(Name, message, field)                    \
  case Attr::k##Name:                                          \
    out->mutable_##message()->set_##field(value.payload != 0); \
    break;
#define PROTO_ENUM_IN(Name, message, field)                                                                   \
  case Attr::k##Name:                                                                                         \
    out->mutable_##message()->set_##field(static_cast<decltype(out->message().field())>(ProtoNumber(value))); \
    break;
#define PROTO_INTS_IN(Name, message, field)                                 \
  case Attr::k##Name:                                                       \
    AddAll(i.list_attr(attr), out->mutable_##message()->mutable_##field()); \
    break;
#define PROTO_DOT_DIMS(Name, field)                                             \
  case Attr::k##Name:                                                           \
    AddAll(i.list_attr(attr), MutableDotDimensions(i, out)->mutable_##field()); \
    break;
#define PROTO_CUSTOM(Name) \
  case Attr::k##Name:      \
    return Write##Name(i, value, out);
#define PROTO_TEXT(Name) \
  case Attr::k##Name:    \
    return WriteText(value, out);
// Write has the called computations.
#define PROTO_CALLEE(Name) \
  case Attr::k##Name:      \
    break;
#define PROTO_NONE(Name) \
  case Attr::k##Name:    \
    break;
#include "parser/proto/attribute_fields.def"
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteText(AttrValue value, xla::HloInstructionProto* out) {
  std::string text;
  {
    TextWriter to(&text);
    PrintAttrValue(to, module_, value);
  }
  (*out->mutable_frontend_attributes()->mutable_map())[TextKey(value.attr)] = Utf8(text);
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteApiVersion(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  out->set_custom_call_api_version(static_cast<xla::CustomCallApiVersion>(ProtoNumber(value)));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteAsyncExecutionThread(Instruction i, AttrValue value,
                                                          xla::HloInstructionProto* out) {
  out->set_async_execution_thread(Utf8(i.string_attr(value.attr)));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteChannelId(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  out->set_channel_id(i.int_attr(value.attr));
  return absl::OkStatus();
}

// In the older and the newer form.
absl::Status InstructionWriter::WriteCompareType(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  const bool is_float = static_cast<ComparisonType>(value.payload) == ComparisonType::kFloat;
  out->set_comparison_type(EnumText(value));
  out->set_comparison_order(is_float ? "PARTIAL" : "TOTAL");
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteCrossProgramPrefetchIndex(Instruction i, AttrValue value,
                                                               xla::HloInstructionProto* out) {
  out->set_cross_program_prefetch_index(static_cast<int>(i.int_attr(value.attr)));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteDimensions(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  AddAll(i.list_attr(value.attr), out->mutable_dimensions());
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteDimLabels(Instruction i, AttrValue /*value*/, xla::HloInstructionProto* out) {
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  xla::ConvolutionDimensionNumbers* to = out->mutable_convolution_dimension_numbers();
  to->set_input_batch_dimension(dims.input_batch);
  to->set_input_feature_dimension(dims.input_feature);
  AddAll(dims.input_spatial, to->mutable_input_spatial_dimensions());
  to->set_kernel_input_feature_dimension(dims.kernel_input_feature);
  to->set_kernel_output_feature_dimension(dims.kernel_output_feature);
  AddAll(dims.kernel_spatial, to->mutable_kernel_spatial_dimensions());
  to->set_output_batch_dimension(dims.output_batch);
  to->set_output_feature_dimension(dims.output_feature);
  AddAll(dims.output_spatial, to->mutable_output_spatial_dimensions());
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteDirection(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  out->set_comparison_direction(EnumText(value));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteDomain(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  const absl::Span<const int64_t> domain = module_.context().list(ListId(value.payload));  // kind, entry, exit
  if (domain.size() != 3) return absl::OkStatus();
  const auto sharding = [&](size_t k) { return ListId(static_cast<uint32_t>(domain[k])); };
  if (absl::Status status = WriteShardingTo(sharding(1), out->mutable_domain_entry_sharding()); !status.ok()) {
    return status;
  }
  return WriteShardingTo(sharding(2), out->mutable_domain_exit_sharding());
}

absl::Status InstructionWriter::WriteEpsilon(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  out->set_epsilon(i.float_attr(value.attr));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteFusionKind(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  out->set_fusion_kind(EnumText(value));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteIndexVectorDim(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  if (i.opcode() == Opcode::kGather) {
    out->mutable_gather_dimension_numbers()->set_index_vector_dim(i.int_attr(value.attr));
  } else {
    out->mutable_scatter_dimension_numbers()->set_index_vector_dim(i.int_attr(value.attr));
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteInferredDimension(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  out->add_dimensions(i.int_attr(value.attr));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteIotaDimension(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  out->add_dimensions(i.int_attr(value.attr));
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteIsAssociative(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  out->set_is_associative(value.payload != 0 ? xla::TRI_STATE_TRUE : xla::TRI_STATE_FALSE);
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteLiteral(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  const LiteralId literal(value.payload);
  return WriteConstant(literal, module_.context().literals[literal].shape, out->mutable_literal());
}

absl::Status InstructionWriter::WriteLower(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  if (i.opcode() == Opcode::kCholesky) {
    out->mutable_cholesky_options()->set_lower(value.payload != 0);
  } else {
    out->mutable_triangular_solve_options()->set_lower(value.payload != 0);
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteOperandLayoutConstraints(Instruction i, AttrValue value,
                                                              xla::HloInstructionProto* out) {
  out->set_constrain_layout(true);
  for (int64_t id : i.list_attr(value.attr)) {
    const Shape shape = module_.context().shape(ShapeId(static_cast<uint32_t>(id)));
    absl::Status status = shapes_.Write(shape, out->add_operand_shapes_with_layout());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteOperandPrecision(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  for (int64_t p : i.list_attr(value.attr)) {
    out->mutable_precision_config()->add_operand_precision(
        static_cast<xla::PrecisionConfig::Precision>(EnumProtoNumber(EnumType::kPrecision, static_cast<uint32_t>(p))));
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteOutfeedShape(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  return shapes_.Write(module_.context().shape(ShapeId(value.payload)), out->mutable_outfeed_shape());
}

absl::Status InstructionWriter::WriteOutputToOperandAliasing(Instruction i, AttrValue value,
                                                             xla::HloInstructionProto* out) {
  // For each entry: size and values of the output index, operand, size and values of its index.
  const absl::Span<const int64_t> encoded = i.list_attr(value.attr);
  size_t at = 0;
  const auto next = [&] { return at < encoded.size() ? encoded[at++] : 0; };
  while (at < encoded.size()) {
    xla::OutputOperandAliasing* entry = out->add_output_operand_aliasing();
    for (int64_t n = next(); n > 0; --n) entry->add_output_shape_index(next());
    entry->set_operand_index(next());
    for (int64_t n = next(); n > 0; --n) entry->add_operand_shape_index(next());
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WritePadding(Instruction i, AttrValue /*value*/, xla::HloInstructionProto* out) {
  const PaddingView padding = PaddingView::Of(i);
  for (int64_t d = 0; d < padding.rank(); ++d) {
    xla::PaddingConfig::PaddingConfigDimension* to = out->mutable_padding_config()->add_dimensions();
    to->set_edge_padding_low(padding.low(d));
    to->set_edge_padding_high(padding.high(d));
    to->set_interior_padding(padding.interior(d));
  }
  return absl::OkStatus();
}

// The sizes of all slices, one after another. In the attribute each slice is preceded by its rank.
absl::Status InstructionWriter::WritePermuteSliceSizes(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  const absl::Span<const int64_t> lists = i.list_attr(value.attr);
  for (size_t at = 0; at < lists.size(); at += static_cast<size_t>(lists[at]) + 1) {
    for (int64_t k = 0; k < lists[at]; ++k) out->add_dynamic_slice_sizes(lists[at + 1 + static_cast<size_t>(k)]);
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteReplicaGroups(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  hlokit::WriteReplicaGroups(module_.context(), ListId(value.payload), out);
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteResultAccuracy(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  WriteAccuracy(module_.context(), ListId(value.payload), out->mutable_result_accuracy());
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteSlice(Instruction i, AttrValue /*value*/, xla::HloInstructionProto* out) {
  const SliceView slice = SliceView::Of(i);
  for (int64_t d = 0; d < slice.rank(); ++d) {
    xla::HloInstructionProto::SliceDimensions* to = out->add_slice_dimensions();
    to->set_start(slice.start(d));
    to->set_limit(slice.limit(d));
    to->set_stride(slice.stride(d));
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteSourceTargetPairs(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  // Each pair is preceded by its size.
  const absl::Span<const int64_t> list = i.list_attr(value.attr);
  for (size_t at = 0; at + 2 < list.size(); at += static_cast<size_t>(list[at]) + 1) {
    if (list[at] != 2) break;
    xla::SourceTarget* to = out->add_source_target_pairs();
    to->set_source(list[at + 1]);
    to->set_target(list[at + 2]);
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteSparsityConfig(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  const std::string_view text = i.string_attr(value.attr);  // as the parser of HLO text normalizes it
  xla::SparsityConfig* const config = out->mutable_sparsity_config();
  const auto side = [text](std::string_view name, auto make) {
    const size_t at = text.find(name);
    int64_t kept, block, dimension, stride, operand;
    const std::string fields(at == std::string_view::npos ? std::string_view() : text.substr(at + name.size()));
    if (std::sscanf(fields.c_str(),
                    "sparsity=%" SCNd64 "x%" SCNd64 " dimension=%" SCNd64 " stride=%" SCNd64 " idx=%" SCNd64, &kept,
                    &block, &dimension, &stride, &operand) != 5) {
      return;
    }
    xla::SparsityConfig::TensorSparsityConfig* to = make();
    to->set_num_non_zero(kept);
    to->set_block_size(block);
    to->set_dimension(dimension);
    to->set_stride(stride);
    to->set_idx(static_cast<int32_t>(operand));
  };
  side("lhs={", [config] { return config->mutable_lhs(); });
  side("rhs={", [config] { return config->mutable_rhs(); });
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteWindow(Instruction i, AttrValue /*value*/, xla::HloInstructionProto* out) {
  const WindowView window = WindowView::Of(i);
  xla::Window* const to_window = out->mutable_window();
  for (int64_t d = 0; d < window.rank(); ++d) {
    const WindowDim dim = window[d];
    xla::WindowDimension* to = to_window->add_dimensions();
    to->set_size(dim.size);
    to->set_stride(dim.stride);
    to->set_padding_low(dim.padding_low);
    to->set_padding_high(dim.padding_high);
    to->set_window_dilation(dim.window_dilation);
    to->set_base_dilation(dim.base_dilation);
    to->set_window_reversal(dim.reversal);
  }
  return absl::OkStatus();
}

// ---- attributes of all opcodes ----

absl::Status InstructionWriter::WriteParameterReplication(Instruction i, AttrValue value,
                                                          xla::HloInstructionProto* out) {
  for (int64_t replicated : i.list_attr(value.attr)) {
    out->mutable_parameter_replication()->add_replicated_at_leaf_buffers(replicated != 0);
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteSharding(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  return WriteShardingTo(ListId(value.payload), out->mutable_sharding());
}

absl::Status InstructionWriter::WriteOrigin(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  WriteOriginalValue(module_.context(), ListId(value.payload), out->mutable_original_value());
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteFrontendAttributes(Instruction /*i*/, AttrValue value,
                                                        xla::HloInstructionProto* out) {
  hlokit::WriteFrontendAttributes(module_.context(), ListId(value.payload), out->mutable_frontend_attributes());
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteControlPredecessors(Instruction i, AttrValue value,
                                                         xla::HloInstructionProto* out) {
  for (int64_t id : i.list_attr(value.attr)) {
    out->add_control_predecessor_ids(ids_.of(InstructionId(static_cast<uint32_t>(id))));
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteStatistics(Instruction /*i*/, AttrValue value, xla::HloInstructionProto* out) {
  hlokit::WriteStatistics(module_.context(), ListId(value.payload), out->mutable_statistics_viz());
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteBackendConfig(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  out->set_backend_config(std::string(i.string_attr(value.attr)));
  return absl::OkStatus();
}

}  // namespace hlokit
