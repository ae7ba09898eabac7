// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/instruction_writer.h"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "ir/graph/complete_attributes.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/literal_proto.h"
#include "parser/proto/sharding_proto.h"

namespace hlokit {
namespace {

template <typename Field>
void AddAll(absl::Span<const int64_t> values, Field* field) {
  field->Add(values.begin(), values.end());
}

int Number(AttrValue value) { return EnumProtoNumber(InfoOf(value.attr).enum_type, value.payload); }
std::string EnumText(EnumType type, uint32_t value) {
  const absl::Span<const std::string_view> texts = EnumTexts(type);
  return value < texts.size() ? std::string(texts[value]) : std::string();
}
std::string EnumText(AttrValue value) { return EnumText(InfoOf(value.attr).enum_type, value.payload); }

void WriteWindow(Instruction i, xla::Window* out) {
  const WindowView window = WindowView::Of(i);
  for (int64_t d = 0; d < window.rank(); ++d) {
    const WindowDim dim = window[d];
    xla::WindowDimension* to = out->add_dimensions();
    to->set_size(dim.size);
    to->set_stride(dim.stride);
    to->set_padding_low(dim.padding_low);
    to->set_padding_high(dim.padding_high);
    to->set_window_dilation(dim.window_dilation);
    to->set_base_dilation(dim.base_dilation);
    to->set_window_reversal(dim.reversal);
  }
}

void WriteConvolutionDims(Instruction i, xla::ConvolutionDimensionNumbers* out) {
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  out->set_input_batch_dimension(dims.input_batch);
  out->set_input_feature_dimension(dims.input_feature);
  AddAll(dims.input_spatial, out->mutable_input_spatial_dimensions());
  out->set_kernel_input_feature_dimension(dims.kernel_input_feature);
  out->set_kernel_output_feature_dimension(dims.kernel_output_feature);
  AddAll(dims.kernel_spatial, out->mutable_kernel_spatial_dimensions());
  out->set_output_batch_dimension(dims.output_batch);
  out->set_output_feature_dimension(dims.output_feature);
  AddAll(dims.output_spatial, out->mutable_output_spatial_dimensions());
}

void WriteDotDims(Instruction i, xla::HloInstructionProto* out) {
  const DotDims dims = DotDims::Of(i);
  xla::DotDimensionNumbers* to = nullptr;
  if (i.opcode() == Opcode::kRaggedDot) {
    xla::RaggedDotDimensionNumbers* ragged = out->mutable_ragged_dot_dimension_numbers();
    AddAll(i.list_attr(Attr::kLhsRaggedDims), ragged->mutable_lhs_ragged_dimensions());
    AddAll(i.list_attr(Attr::kRhsGroupDims), ragged->mutable_rhs_group_dimensions());
    to = ragged->mutable_dot_dimension_numbers();
  } else {
    to = out->mutable_dot_dimension_numbers();
  }
  AddAll(dims.lhs_contracting, to->mutable_lhs_contracting_dimensions());
  AddAll(dims.rhs_contracting, to->mutable_rhs_contracting_dimensions());
  AddAll(dims.lhs_batch, to->mutable_lhs_batch_dimensions());
  AddAll(dims.rhs_batch, to->mutable_rhs_batch_dimensions());
}

void WriteGather(Instruction i, xla::HloInstructionProto* out) {
  const GatherDims dims = GatherDims::Of(i);
  xla::GatherDimensionNumbers* to = out->mutable_gather_dimension_numbers();
  AddAll(dims.offset_dims, to->mutable_offset_dims());
  AddAll(dims.collapsed_slice_dims, to->mutable_collapsed_slice_dims());
  AddAll(dims.start_index_map, to->mutable_start_index_map());
  to->set_index_vector_dim(dims.index_vector_dim);
  AddAll(dims.operand_batching_dims, to->mutable_operand_batching_dims());
  AddAll(dims.start_indices_batching_dims, to->mutable_start_indices_batching_dims());
  AddAll(dims.slice_sizes, out->mutable_gather_slice_sizes());
}

void WriteScatter(Instruction i, xla::ScatterDimensionNumbers* out) {
  const ScatterDims dims = ScatterDims::Of(i);
  AddAll(dims.update_window_dims, out->mutable_update_window_dims());
  AddAll(dims.inserted_window_dims, out->mutable_inserted_window_dims());
  AddAll(dims.scatter_dims_to_operand_dims, out->mutable_scatter_dims_to_operand_dims());
  out->set_index_vector_dim(dims.index_vector_dim);
  AddAll(dims.input_batching_dims, out->mutable_input_batching_dims());
  AddAll(dims.scatter_indices_batching_dims, out->mutable_scatter_indices_batching_dims());
}

void WriteAliasing(absl::Span<const int64_t> encoded, xla::HloInstructionProto* out) {
  // For each entry: size and values of the output index, operand, size and values of its index.
  size_t at = 0;
  const auto next = [&] { return at < encoded.size() ? encoded[at++] : 0; };
  while (at < encoded.size()) {
    xla::OutputOperandAliasing* entry = out->add_output_operand_aliasing();
    for (int64_t n = next(); n > 0; --n) entry->add_output_shape_index(next());
    entry->set_operand_index(next());
    for (int64_t n = next(); n > 0; --n) entry->add_operand_shape_index(next());
  }
}

// `text`: as the parser of HLO text normalizes it.
void WriteSparsity(std::string_view text, xla::SparsityConfig* out) {
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
  side("lhs={", [out] { return out->mutable_lhs(); });
  side("rhs={", [out] { return out->mutable_rhs(); });
}

// Lists of a kInt64ListList, each preceded by its size, one after another.
void AddFlat(absl::Span<const int64_t> lists, google::protobuf::RepeatedField<int64_t>* out) {
  for (size_t at = 0; at < lists.size(); at += static_cast<size_t>(lists[at]) + 1) {
    for (int64_t k = 0; k < lists[at]; ++k) out->Add(lists[at + 1 + static_cast<size_t>(k)]);
  }
}

// Returns true if a constant has its value, with at most so many elements.
bool HasValue(Instruction constant, int64_t max_elements) {
  const LiteralPool& literals = constant.module().context().literals;
  int64_t elements = 0;
  std::vector<LiteralId> open = {constant.literal_id()};
  while (!open.empty()) {
    const LiteralRecord& record = literals[open.back()];
    open.pop_back();
    if (record.elided) return false;
    elements += record.shape.IsArray() ? record.shape.element_count() : 1;
    if (elements > max_elements) return false;
    for (int64_t k = 0; k < record.shape.tuple_size(); ++k) open.push_back(record.elements[k]);
  }
  return true;
}

}  // namespace

void InstructionWriter::WriteMetadata(MetadataId metadata, xla::OpMetadata* out) const {
  const Context& context = module_.context();
  hlokit::WriteMetadata(context, context.metadata[metadata], frame_ids_, out);
}

absl::Status InstructionWriter::WriteShardingTo(ListId sharding, xla::OpSharding* out) {
  return WriteSharding(
      module_.context(), sharding, [this](MetadataId id, xla::OpMetadata* to) { WriteMetadata(id, to); }, out);
}

absl::Status InstructionWriter::WriteConstant(LiteralId literal, Shape shape, xla::LiteralProto* out) {
  return WriteLiteral(module_.context(), literal, shape, &shapes_, out);
}

// Writes the fields that XLA writes although the module has no attribute for them.
void InstructionWriter::WriteDefaults(Instruction i, xla::HloInstructionProto* out) {
  out->mutable_metadata();
  out->mutable_frontend_attributes();
  out->mutable_statistics_viz();
  const Opcode opcode = i.opcode();
  if (opcode == Opcode::kConvolution || opcode == Opcode::kCustomCall) {
    out->set_feature_group_count(1);
    out->set_batch_group_count(1);
  }
  if (opcode == Opcode::kConvolution) out->mutable_sparsity_config();
  if (opcode == Opcode::kConvolution || opcode == Opcode::kReduceWindow || opcode == Opcode::kSelectAndScatter) {
    out->mutable_window();
  }
  if (opcode == Opcode::kCustomCall) out->set_custom_call_api_version(xla::API_VERSION_ORIGINAL);
  if (opcode == Opcode::kTriangularSolve) out->mutable_triangular_solve_options();
  if (opcode == Opcode::kCholesky) out->mutable_cholesky_options();
  if (opcode == Opcode::kCompare && i.operand_count() > 0 && i.operand(0).shape().IsArray()) {
    const ComparisonType type = DefaultComparison(i.operand(0).shape().element_type());
    out->set_comparison_type(EnumText(EnumType::kComparisonType, static_cast<uint32_t>(type)));
    out->set_comparison_order(type == ComparisonType::kFloat ? "PARTIAL" : "TOTAL");
  }
  const bool multiplies = opcode == Opcode::kDot || opcode == Opcode::kScaledDot || opcode == Opcode::kRaggedDot ||
                          opcode == Opcode::kConvolution;
  if (multiplies && !i.has(Attr::kOperandPrecision)) {
    for (int k = 0; k < 2; ++k) out->mutable_precision_config()->add_operand_precision(xla::PrecisionConfig::DEFAULT);
  }
}

absl::Status InstructionWriter::Write(Instruction i, xla::HloInstructionProto* out) {
  out->set_name(Utf8(i.name()));
  out->set_opcode(Utf8(i.opcode_text()));
  if (absl::Status status = shapes_.Write(i.shape(), out->mutable_shape()); !status.ok()) return status;
  out->set_id(ids_.of(i.id()));
  for (Instruction operand : i.operands()) out->add_operand_ids(ids_.of(operand.id()));
  if (i.opcode() == Opcode::kWhile) {
    for (Attr attr : {Attr::kBody, Attr::kCondition}) {  // the body first
      if (const Computation c = i.computation_attr(attr); c.valid()) out->add_called_computation_ids(ids_.of(c.id()));
    }
  } else {
    i.ForEachCallee([&](Computation callee) { out->add_called_computation_ids(ids_.of(callee.id())); });
  }
  WriteDefaults(i, out);
  if (i.metadata_id()) WriteMetadata(i.metadata_id(), out->mutable_metadata());
  if (i.opcode() == Opcode::kParameter) out->set_parameter_number(i.parameter_number());
  if (i.opcode() == Opcode::kConstant && HasValue(i, max_literal_elements_)) {
    absl::Status status = WriteConstant(i.literal_id(), i.shape(), out->mutable_literal());
    if (!status.ok()) return status;
  }
  for (const AttrValue& value : i.attrs()) {
    if (absl::Status status = WriteAttribute(i, value, out); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status InstructionWriter::WriteAttribute(Instruction i, AttrValue value, xla::HloInstructionProto* out) {
  const Context& context = module_.context();
  const Attr attr = value.attr;
  switch (attr) {
    case Attr::kApiVersion:
      out->set_custom_call_api_version(static_cast<xla::CustomCallApiVersion>(Number(value)));
      break;
    case Attr::kAsyncExecutionThread:
      out->set_async_execution_thread(Utf8(i.string_attr(attr)));
      break;
    case Attr::kBatchGroupCount:
      out->set_batch_group_count(i.int_attr(attr));
      break;
    case Attr::kChannelId:
      out->set_channel_id(i.int_attr(attr));
      break;
    case Attr::kCompareType:
      // In the older and the newer form.
      out->set_comparison_type(EnumText(value));
      out->set_comparison_order(static_cast<ComparisonType>(value.payload) == ComparisonType::kFloat ? "PARTIAL"
                                                                                                     : "TOTAL");
      break;
    case Attr::kConstrainLayout:
      out->set_constrain_layout(true);
      break;
    case Attr::kConvolutionKind:
      out->set_conv_kind(static_cast<xla::ConvolutionKind>(Number(value)));
      break;
    case Attr::kCrossProgramPrefetchIndex:
      out->set_cross_program_prefetch_index(static_cast<int>(i.int_attr(attr)));
      break;
    case Attr::kCustomCallHasSideEffect:
      out->set_custom_call_has_side_effect(value.payload != 0);
      break;
    case Attr::kCustomCallTarget:
      out->set_custom_call_target(Utf8(i.string_attr(attr)));
      break;
    case Attr::kDelta:
      out->set_delta(i.int_attr(attr));
      break;
    case Attr::kDimensions:
      AddAll(i.list_attr(attr), out->mutable_dimensions());
      break;
    case Attr::kDimLabels:
      WriteConvolutionDims(i, out->mutable_convolution_dimension_numbers());
      break;
    case Attr::kDirection:
      out->set_comparison_direction(EnumText(value));
      break;
    case Attr::kDistribution:
      // RNG_UNIFORM is 1.
      out->set_distribution(static_cast<xla::RandomDistribution>(Number(value)));
      break;
    case Attr::kDomain: {
      const absl::Span<const int64_t> domain = context.list(ListId(value.payload));
      if (domain.size() != 3) break;
      absl::Status status =
          WriteShardingTo(ListId(static_cast<uint32_t>(domain[1])), out->mutable_domain_entry_sharding());
      if (!status.ok()) return status;
      return WriteShardingTo(ListId(static_cast<uint32_t>(domain[2])), out->mutable_domain_exit_sharding());
    }
    case Attr::kDotAlgorithm:
      out->mutable_precision_config()->set_algorithm(static_cast<xla::PrecisionConfig::Algorithm>(Number(value)));
      break;
    case Attr::kDynamicSliceSizes:
      AddAll(i.list_attr(attr), out->mutable_dynamic_slice_sizes());
      break;
    case Attr::kEpsilon:
      out->set_epsilon(i.float_attr(attr));
      break;
    case Attr::kExponentBits:
      out->set_exponent_bits(static_cast<int>(i.int_attr(attr)));
      break;
    case Attr::kFeatureGroupCount:
      out->set_feature_group_count(i.int_attr(attr));
      break;
    case Attr::kFeatureIndex:
      out->set_feature_index(i.int_attr(attr));
      break;
    case Attr::kFftLength:
      AddAll(i.list_attr(attr), out->mutable_fft_length());
      break;
    case Attr::kFftType:
      out->set_fft_type(static_cast<xla::FftType>(Number(value)));
      break;
    case Attr::kFusionKind:
      out->set_fusion_kind(EnumText(value));
      break;
    case Attr::kHasDynamicRoot:
      out->set_has_dynamic_root(value.payload != 0);
      break;
    case Attr::kIndex:
      out->set_tuple_index(i.int_attr(attr));
      break;
    case Attr::kIndicesAreSorted:
      out->set_indices_are_sorted(value.payload != 0);
      break;
    case Attr::kInferredDimension:
    case Attr::kIotaDimension:
      out->add_dimensions(i.int_attr(attr));
      break;
    case Attr::kInfeedConfig:
      out->set_infeed_config(std::string(i.string_attr(attr)));
      break;
    case Attr::kIsAssociative:
      out->set_is_associative(value.payload != 0 ? xla::TRI_STATE_TRUE : xla::TRI_STATE_FALSE);
      break;
    case Attr::kIsComposite:
      out->set_is_composite(value.payload != 0);
      break;
    case Attr::kIsHostTransfer:
      out->set_is_host_transfer(value.payload != 0);
      break;
    case Attr::kIsReverse:
      out->set_is_reverse(value.payload != 0);
      break;
    case Attr::kIsStable:
      out->set_is_stable(value.payload != 0);
      break;
    case Attr::kK:
      out->set_k(i.int_attr(attr));
      break;
    case Attr::kLargest:
      out->set_largest(value.payload != 0);
      break;
    case Attr::kLeftSide:
      out->mutable_triangular_solve_options()->set_left_side(value.payload != 0);
      break;
    case Attr::kLhsContractingDims:
      WriteDotDims(i, out);
      break;
    case Attr::kLiteral: {
      const LiteralId literal(value.payload);
      return WriteConstant(literal, context.literals[literal].shape, out->mutable_literal());
    }
    case Attr::kLower:
      if (i.opcode() == Opcode::kCholesky) {
        out->mutable_cholesky_options()->set_lower(value.payload != 0);
      } else {
        out->mutable_triangular_solve_options()->set_lower(value.payload != 0);
      }
      break;
    case Attr::kMantissaBits:
      out->set_mantissa_bits(static_cast<int>(i.int_attr(attr)));
      break;
    case Attr::kNumCarries:
      out->set_num_carries(i.int_attr(attr));
      break;
    case Attr::kOperandLayoutConstraints:
      out->set_constrain_layout(true);
      for (int64_t id : i.list_attr(attr)) {
        absl::Status status =
            shapes_.Write(context.shape(ShapeId(static_cast<uint32_t>(id))), out->add_operand_shapes_with_layout());
        if (!status.ok()) return status;
      }
      break;
    case Attr::kOperandPrecision:
      for (int64_t p : i.list_attr(attr)) {
        out->mutable_precision_config()->add_operand_precision(static_cast<xla::PrecisionConfig::Precision>(
            EnumProtoNumber(EnumType::kPrecision, static_cast<uint32_t>(p))));
      }
      break;
    case Attr::kOrigin:
      WriteOriginalValue(context, ListId(value.payload), out->mutable_original_value());
      break;
    case Attr::kOutfeedConfig:
      out->set_outfeed_config(std::string(i.string_attr(attr)));
      break;
    case Attr::kOutfeedShape:
      return shapes_.Write(context.shape(ShapeId(value.payload)), out->mutable_outfeed_shape());
    case Attr::kOutputToOperandAliasing:
      WriteAliasing(i.list_attr(attr), out);
      break;
    case Attr::kPadding: {
      const PaddingView padding = PaddingView::Of(i);
      for (int64_t d = 0; d < padding.rank(); ++d) {
        xla::PaddingConfig::PaddingConfigDimension* to = out->mutable_padding_config()->add_dimensions();
        to->set_edge_padding_low(padding.low(d));
        to->set_edge_padding_high(padding.high(d));
        to->set_interior_padding(padding.interior(d));
      }
      break;
    }
    case Attr::kPaddingType:
      out->set_padding_type(static_cast<xla::PaddingType>(Number(value)));
      break;
    case Attr::kPermuteSliceSizes:
      AddFlat(i.list_attr(attr), out->mutable_dynamic_slice_sizes());
      break;
    case Attr::kReplicaGroups:
      WriteReplicaGroups(context, ListId(value.payload), out);
      break;
    case Attr::kResultAccuracy:
      WriteAccuracy(context, ListId(value.payload), out->mutable_result_accuracy());
      break;
    case Attr::kRngAlgorithm:
      out->set_rng_algorithm(static_cast<xla::RandomAlgorithm>(Number(value)));
      break;
    case Attr::kScatterDimsToOperandDims:
      WriteScatter(i, out->mutable_scatter_dimension_numbers());
      break;
    case Attr::kSchedule:
      out->set_custom_call_schedule(static_cast<xla::CustomCallSchedule>(Number(value)));
      break;
    case Attr::kSlice: {
      const SliceView slice = SliceView::Of(i);
      for (int64_t d = 0; d < slice.rank(); ++d) {
        xla::HloInstructionProto::SliceDimensions* to = out->add_slice_dimensions();
        to->set_start(slice.start(d));
        to->set_limit(slice.limit(d));
        to->set_stride(slice.stride(d));
      }
      break;
    }
    case Attr::kSourceTargetPairs: {
      // Each pair is preceded by its size.
      const absl::Span<const int64_t> list = i.list_attr(attr);
      for (size_t at = 0; at + 2 < list.size(); at += static_cast<size_t>(list[at]) + 1) {
        if (list[at] != 2) break;
        xla::SourceTarget* to = out->add_source_target_pairs();
        to->set_source(list[at + 1]);
        to->set_target(list[at + 2]);
      }
      break;
    }
    case Attr::kSparsityConfig:
      WriteSparsity(i.string_attr(attr), out->mutable_sparsity_config());
      break;
    case Attr::kStartIndexMap:
      WriteGather(i, out);
      break;
    case Attr::kTransposeA:
      out->mutable_triangular_solve_options()->set_transpose_a(
          static_cast<xla::TriangularSolveOptions::Transpose>(Number(value)));
      break;
    case Attr::kUniqueIndices:
      out->set_unique_indices(value.payload != 0);
      break;
    case Attr::kUnitDiagonal:
      out->mutable_triangular_solve_options()->set_unit_diagonal(value.payload != 0);
      break;
    case Attr::kUseGlobalDeviceIds:
      out->set_use_global_device_ids(value.payload != 0);
      break;
    case Attr::kWindow:
      WriteWindow(i, out->mutable_window());
      break;
    case Attr::kParameterReplication:
      for (int64_t replicated : i.list_attr(attr)) {
        out->mutable_parameter_replication()->add_replicated_at_leaf_buffers(replicated != 0);
      }
      break;
    case Attr::kSharding:
      return WriteShardingTo(ListId(value.payload), out->mutable_sharding());
    case Attr::kFrontendAttributes:
      WriteFrontendAttributes(context, ListId(value.payload), out->mutable_frontend_attributes());
      break;
    case Attr::kControlPredecessors:
      for (int64_t id : i.list_attr(attr)) {
        out->add_control_predecessor_ids(ids_.of(InstructionId(static_cast<uint32_t>(id))));
      }
      break;
    case Attr::kStatistics:
      WriteStatistics(context, ListId(value.payload), out->mutable_statistics_viz());
      break;
    case Attr::kBackendConfig:
      out->set_backend_config(std::string(i.string_attr(attr)));
      break;
    // Called computations are written by id below.
    case Attr::kBody:
    case Attr::kBranchComputations:
    case Attr::kCalledComputations:
    case Attr::kCalls:
    case Attr::kCondition:
    case Attr::kFalseComputation:
    case Attr::kScatter:
    case Attr::kSelect:
    case Attr::kToApply:
    case Attr::kTrueComputation:
    // Written with another attribute of their group.
    case Attr::kCollapsedSliceDims:
    case Attr::kIndexVectorDim:
    case Attr::kInputBatchingDims:
    case Attr::kInsertedWindowDims:
    case Attr::kLhsBatchDims:
    case Attr::kLhsRaggedDims:
    case Attr::kOffsetDims:
    case Attr::kOperandBatchingDims:
    case Attr::kRhsBatchDims:
    case Attr::kRhsContractingDims:
    case Attr::kRhsGroupDims:
    case Attr::kScatterIndicesBatchingDims:
    case Attr::kSliceSizes:
    case Attr::kStartIndicesBatchingDims:
    case Attr::kUpdateWindowDims:
    case Attr::kMetadata:
    // Attributes without a field.
    case Attr::kMode:
    case Attr::kUnknownOpcode:
    case Attr::kUnknownAttributes:
      break;
  }
  return absl::OkStatus();
}

}  // namespace hlokit
