// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/export/hlo_instruction_proto.h"

#include <bit>
#include <string>
#include <vector>

#include "interp/tpu/export/shape_proto.h"
#include "interp/tpu/export/sharding_proto.h"
#include "interp/tpu/report/ascii.h"
#include "ir/graph/attribute_views.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/statistics_viz.h"
#include "ir/types/literal.h"

namespace hlokit::tpu {

namespace {

template <typename Field>
void AddAll(absl::Span<const int64_t> values, Field* field) {
  for (int64_t v : values) field->Add(v);
}

void WriteMetadata(const Context& context, const Metadata& m, xla::OpMetadata* out) {
  const auto text = [&](StringId id) { return id ? Ascii(context.str(id)) : std::string(); };
  out->set_op_type(text(m.op_type));
  out->set_op_name(text(m.op_name));
  out->set_source_file(text(m.source_file));
  out->set_source_line(static_cast<int32_t>(m.source_line));
  out->set_source_end_line(static_cast<int32_t>(m.source_end_line));
  out->set_source_column(static_cast<int32_t>(m.source_column));
  out->set_source_end_column(static_cast<int32_t>(m.source_end_column));
  out->set_stack_frame_id(static_cast<int32_t>(m.stack_frame_id));
  out->set_deduplicated_name(text(m.deduplicated_name));
  out->set_scheduling_name(text(m.scheduling_name));
}

void WriteConstant(Instruction i, xla::HloInstructionProto* out) {
  const LiteralRecord& record = i.literal();
  if (record.elided || (record.shape.IsArray() && record.shape.element_count() > kMaxLiteralElements)) return;
  if (record.shape.IsTuple()) {
    int64_t elements = 0;
    if (record.shape.leaf_count() > kMaxLiteralElements) return;
    for (Shape leaf : Leaves(record.shape)) elements += leaf.IsArray() ? leaf.element_count() : 1;
    if (elements > kMaxLiteralElements) return;
  }
  const Literal value = i.module().context().literals.ToLiteral(i.literal_id());
  xla::LiteralProto literal;
  if (WriteLiteral(value, i.shape(), &literal)) *out->mutable_literal() = std::move(literal);
}

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

void WriteAccuracy(const Context& context, ListId id, xla::ResultAccuracy* out) {
  const hlokit::ResultAccuracy accuracy = DecodeResultAccuracy(context, id);
  if (accuracy.mode != ResultAccuracyMode::kTolerance) {
    out->set_mode(accuracy.mode == ResultAccuracyMode::kHighest ? 1 : 0);
    return;
  }
  out->mutable_tolerance()->set_atol(accuracy.atol);
  out->mutable_tolerance()->set_rtol(accuracy.rtol);
  out->mutable_tolerance()->set_ulps(accuracy.ulps);
}

void WriteStatistics(const Context& context, ListId id, xla::StatisticsViz* out) {
  const StatisticsViz statistics = DecodeStatisticsViz(context, id);
  out->set_stat_index_to_visualize(statistics.visualizing_index);
  for (const auto& [name, value] : statistics.values) {
    xla::StatisticsViz::Statistic* to = out->add_statistics();
    to->set_stat_name(Ascii(context.str(name)));
    to->set_stat_val(value);
  }
}

class AttributeWriter {
 public:
  AttributeWriter(Instruction instruction, xla::HloInstructionProto* out)
      : i_(instruction), context_(instruction.module().context()), out_(*out) {}

  void Write(AttrValue value) {
    const Attr attr = value.attr;
    switch (attr) {
      case Attr::kApiVersion:
        out_.set_custom_call_api_version(Number(value));
        return;
      case Attr::kAsyncExecutionThread:
        out_.set_async_execution_thread(Text(attr));
        return;
      case Attr::kBatchGroupCount:
        out_.set_batch_group_count(i_.int_attr(attr));
        return;
      case Attr::kChannelId:
        out_.set_channel_id(i_.int_attr(attr));
        return;
      case Attr::kCompareType:
        out_.set_comparison_type(EnumText(value));
        return;
      case Attr::kConstrainLayout:
        out_.set_constrain_layout(true);
        return;
      case Attr::kCrossProgramPrefetchIndex:
        out_.set_cross_program_prefetch_index(static_cast<int>(i_.int_attr(attr)));
        return;
      case Attr::kCustomCallHasSideEffect:
        out_.set_custom_call_has_side_effect(value.payload != 0);
        return;
      case Attr::kCustomCallTarget:
        out_.set_custom_call_target(Text(attr));
        return;
      case Attr::kDelta:
        out_.set_delta(i_.int_attr(attr));
        return;
      case Attr::kDimensions:
        AddAll(i_.list_attr(attr), out_.mutable_dimensions());
        return;
      case Attr::kDimLabels:
        WriteConvolutionDims(i_, out_.mutable_convolution_dimension_numbers());
        return;
      case Attr::kDirection:
        out_.set_comparison_direction(EnumText(value));
        return;
      case Attr::kDistribution:
        // RNG_UNIFORM is 1.
        out_.set_distribution(Number(value));
        return;
      case Attr::kDomain: {
        const absl::Span<const int64_t> domain = context_.list(ListId(value.payload));
        if (domain.size() != 3) return;
        WriteSharding(context_, ListId(static_cast<uint32_t>(domain[1])), out_.mutable_domain_entry_sharding());
        WriteSharding(context_, ListId(static_cast<uint32_t>(domain[2])), out_.mutable_domain_exit_sharding());
        return;
      }
      case Attr::kDotAlgorithm:
        out_.mutable_precision_config()->set_algorithm(Number(value));
        return;
      case Attr::kDynamicSliceSizes:
        AddAll(i_.list_attr(attr), out_.mutable_dynamic_slice_sizes());
        return;
      case Attr::kEpsilon:
        out_.set_epsilon(i_.float_attr(attr));
        return;
      case Attr::kExponentBits:
        out_.set_exponent_bits(static_cast<int>(i_.int_attr(attr)));
        return;
      case Attr::kFeatureGroupCount:
        out_.set_feature_group_count(i_.int_attr(attr));
        return;
      case Attr::kFeatureIndex:
        out_.set_feature_index(i_.int_attr(attr));
        return;
      case Attr::kFftLength:
        AddAll(i_.list_attr(attr), out_.mutable_fft_length());
        return;
      case Attr::kFftType:
        out_.set_fft_type(Number(value));
        return;
      case Attr::kFusionKind:
        out_.set_fusion_kind(EnumText(value));
        return;
      case Attr::kIndex:
        out_.set_tuple_index(i_.int_attr(attr));
        return;
      case Attr::kIndicesAreSorted:
        out_.set_indices_are_sorted(value.payload != 0);
        return;
      case Attr::kInferredDimension:
      case Attr::kIotaDimension:
        out_.add_dimensions(i_.int_attr(attr));
        return;
      case Attr::kInfeedConfig:
        out_.set_infeed_config(std::string(i_.string_attr(attr)));
        return;
      case Attr::kIsComposite:
        out_.set_is_composite(value.payload != 0);
        return;
      case Attr::kIsHostTransfer:
        out_.set_is_host_transfer(value.payload != 0);
        return;
      case Attr::kIsStable:
        out_.set_is_stable(value.payload != 0);
        return;
      case Attr::kK:
        out_.set_k(i_.int_attr(attr));
        return;
      case Attr::kLargest:
        out_.set_largest(value.payload != 0);
        return;
      case Attr::kLeftSide:
        out_.mutable_triangular_solve_options()->set_left_side(value.payload != 0);
        return;
      case Attr::kLhsContractingDims:
        WriteDotDims(i_, &out_);
        return;
      case Attr::kLower:
        if (i_.opcode() == Opcode::kCholesky) {
          out_.mutable_cholesky_options()->set_lower(value.payload != 0);
        } else {
          out_.mutable_triangular_solve_options()->set_lower(value.payload != 0);
        }
        return;
      case Attr::kMantissaBits:
        out_.set_mantissa_bits(static_cast<int>(i_.int_attr(attr)));
        return;
      case Attr::kOperandLayoutConstraints:
        out_.set_constrain_layout(true);
        for (int64_t id : i_.list_attr(attr)) {
          WriteShape(context_.shape(ShapeId(static_cast<uint32_t>(id))), out_.add_operand_shapes_with_layout());
        }
        return;
      case Attr::kOperandPrecision:
        for (int64_t p : i_.list_attr(attr)) {
          out_.mutable_precision_config()->add_operand_precision(
              EnumProtoNumber(EnumType::kPrecision, static_cast<uint32_t>(p)));
        }
        return;
      case Attr::kOutfeedConfig:
        out_.set_outfeed_config(std::string(i_.string_attr(attr)));
        return;
      case Attr::kOutfeedShape:
        WriteShape(context_.shape(ShapeId(value.payload)), out_.mutable_outfeed_shape());
        return;
      case Attr::kOutputToOperandAliasing:
        WriteAliasing(i_.list_attr(attr), &out_);
        return;
      case Attr::kPadding: {
        const PaddingView padding = PaddingView::Of(i_);
        for (int64_t d = 0; d < padding.rank(); ++d) {
          xla::PaddingConfig::Dimension* to = out_.mutable_padding_config()->add_dimensions();
          to->set_edge_padding_low(padding.low(d));
          to->set_edge_padding_high(padding.high(d));
          to->set_interior_padding(padding.interior(d));
        }
        return;
      }
      case Attr::kPaddingType:
        out_.set_padding_type(Number(value));
        return;
      case Attr::kReplicaGroups:
        WriteReplicaGroups(context_, ListId(value.payload), &out_);
        return;
      case Attr::kResultAccuracy:
        WriteAccuracy(context_, ListId(value.payload), out_.mutable_result_accuracy());
        return;
      case Attr::kRngAlgorithm:
        out_.set_rng_algorithm(Number(value));
        return;
      case Attr::kScatterDimsToOperandDims:
        WriteScatter(i_, out_.mutable_scatter_dimension_numbers());
        return;
      case Attr::kSchedule:
        out_.set_custom_call_schedule(Number(value));
        return;
      case Attr::kSlice: {
        const SliceView slice = SliceView::Of(i_);
        for (int64_t d = 0; d < slice.rank(); ++d) {
          xla::HloInstructionProto::SliceDimensions* to = out_.add_slice_dimensions();
          to->set_start(slice.start(d));
          to->set_limit(slice.limit(d));
          to->set_stride(slice.stride(d));
        }
        return;
      }
      case Attr::kSourceTargetPairs: {
        // Each pair is preceded by its size.
        const absl::Span<const int64_t> list = i_.list_attr(attr);
        for (size_t at = 0; at + 2 < list.size(); at += static_cast<size_t>(list[at]) + 1) {
          if (list[at] != 2) return;
          xla::SourceTarget* to = out_.add_source_target_pairs();
          to->set_source(list[at + 1]);
          to->set_target(list[at + 2]);
        }
        return;
      }
      case Attr::kStartIndexMap:
        WriteGather(i_, &out_);
        return;
      case Attr::kTransposeA:
        out_.mutable_triangular_solve_options()->set_transpose_a(Number(value));
        return;
      case Attr::kUniqueIndices:
        out_.set_unique_indices(value.payload != 0);
        return;
      case Attr::kUnitDiagonal:
        out_.mutable_triangular_solve_options()->set_unit_diagonal(value.payload != 0);
        return;
      case Attr::kUseGlobalDeviceIds:
        out_.set_use_global_device_ids(value.payload != 0);
        return;
      case Attr::kWindow:
        WriteWindow(i_, out_.mutable_window());
        return;
      case Attr::kParameterReplication:
        for (int64_t replicated : i_.list_attr(attr)) {
          out_.mutable_parameter_replication()->add_replicated_at_leaf_buffers(replicated != 0);
        }
        return;
      case Attr::kSharding:
        WriteSharding(context_, ListId(value.payload), out_.mutable_sharding());
        return;
      case Attr::kFrontendAttributes:
        WriteFrontendAttributes(context_, ListId(value.payload), out_.mutable_frontend_attributes());
        return;
      case Attr::kControlPredecessors:
        for (int64_t id : i_.list_attr(attr)) {
          out_.add_control_predecessor_ids(IdOf(InstructionId(static_cast<uint32_t>(id))));
        }
        return;
      case Attr::kStatistics:
        WriteStatistics(context_, ListId(value.payload), out_.mutable_statistics_viz());
        return;
      case Attr::kBackendConfig:
        out_.set_backend_config(std::string(i_.string_attr(attr)));
        return;
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
      case Attr::kConvolutionKind:
      case Attr::kHasDynamicRoot:
      case Attr::kIsAssociative:
      case Attr::kIsReverse:
      case Attr::kLiteral:
      case Attr::kMode:
      case Attr::kNumCarries:
      case Attr::kOrigin:
      case Attr::kPermuteSliceSizes:
      case Attr::kSparsityConfig:
      case Attr::kUnknownOpcode:
      case Attr::kUnknownAttributes:
        return;
    }
  }

 private:
  std::string Text(Attr attr) const { return Ascii(i_.string_attr(attr)); }
  static int Number(AttrValue value) { return EnumProtoNumber(InfoOf(value.attr).enum_type, value.payload); }
  static std::string EnumText(AttrValue value) {
    const absl::Span<const std::string_view> texts = EnumTexts(InfoOf(value.attr).enum_type);
    return value.payload < texts.size() ? std::string(texts[value.payload]) : std::string();
  }

  const Instruction i_;
  const Context& context_;
  xla::HloInstructionProto& out_;
};

}  // namespace

void WriteInstruction(Instruction i, xla::HloInstructionProto* out) {
  out->set_name(Ascii(i.name()));
  out->set_opcode(Ascii(i.opcode_text()));
  WriteShape(i.shape(), out->mutable_shape());
  out->set_id(IdOf(i.id()));
  for (Instruction operand : i.operands()) out->add_operand_ids(IdOf(operand.id()));
  if (i.opcode() == Opcode::kWhile) {
    // Readers expect the body first.
    for (Attr attr : {Attr::kBody, Attr::kCondition}) {
      if (const Computation c = i.computation_attr(attr); c.valid()) out->add_called_computation_ids(IdOf(c.id()));
    }
  } else {
    i.ForEachCallee([&](Computation callee) { out->add_called_computation_ids(IdOf(callee.id())); });
  }
  if (i.metadata_id()) WriteMetadata(i.module().context(), i.metadata(), out->mutable_metadata());
  if (i.opcode() == Opcode::kParameter) out->set_parameter_number(i.parameter_number());
  if (i.opcode() == Opcode::kConstant) WriteConstant(i, out);
  if (i.opcode() == Opcode::kConvolution) {
    out->set_feature_group_count(1);
    out->set_batch_group_count(1);
  }
  AttributeWriter writer(i, out);
  for (const AttrValue& value : i.attrs()) writer.Write(value);
}

void WriteFrontendAttributes(const Context& context, ListId attributes, xla::FrontendAttributes* out) {
  for (const auto& [key, value] : DecodeFrontendAttributes(context, attributes)) {
    (*out->mutable_map())[Ascii(context.str(key))] = Ascii(context.str(value));
  }
}

}  // namespace hlokit::tpu
