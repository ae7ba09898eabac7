// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/instruction_writer.h"

#include <string>
#include <vector>

#include "ir/graph/complete_attributes.h"
#include "ir/ops/opcode_table.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/literal_proto.h"
#include "parser/proto/sharding_proto.h"

namespace hlokit {
namespace {

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
  return hlokit::WriteSharding(
      module_.context(), sharding, [this](MetadataId id, xla::OpMetadata* to) { WriteMetadata(id, to); }, out);
}

absl::Status InstructionWriter::WriteConstant(LiteralId literal, Shape shape, xla::LiteralProto* out) {
  return hlokit::WriteLiteral(module_.context(), literal, shape, &shapes_, out);
}

static void WriteGroupCounts(xla::HloInstructionProto* out) {
  out->set_feature_group_count(1);
  out->set_batch_group_count(1);
}

static void WriteComparison(Instruction i, xla::HloInstructionProto* out) {
  if (i.operand_count() == 0 || !i.operand(0).shape().IsArray()) return;
  const ComparisonType type = DefaultComparison(i.operand(0).shape().element_type());
  out->set_comparison_type(std::string(EnumTexts(EnumType::kComparisonType)[static_cast<size_t>(type)]));
  out->set_comparison_order(type == ComparisonType::kFloat ? "PARTIAL" : "TOTAL");
}

// Writes the fields that XLA writes although the module has no attribute for them.
void InstructionWriter::WriteDefaults(Instruction i, xla::HloInstructionProto* out) {
  out->mutable_metadata();
  out->mutable_frontend_attributes();
  out->mutable_statistics_viz();
  using Write = void (*)(Instruction, xla::HloInstructionProto*);
  static constexpr OpcodeRow<Write> kRows[] = {
      {Opcode::kConvolution,
       [](Instruction /*i*/, xla::HloInstructionProto* out) {
         WriteGroupCounts(out);
         out->mutable_sparsity_config();
         out->mutable_window();
       }},
      {Opcode::kCustomCall,
       [](Instruction /*i*/, xla::HloInstructionProto* out) {
         WriteGroupCounts(out);
         out->set_custom_call_api_version(xla::API_VERSION_ORIGINAL);
       }},
      {Opcode::kReduceWindow, [](Instruction /*i*/, xla::HloInstructionProto* out) { out->mutable_window(); }},
      {Opcode::kSelectAndScatter, [](Instruction /*i*/, xla::HloInstructionProto* out) { out->mutable_window(); }},
      {Opcode::kTriangularSolve,
       [](Instruction /*i*/, xla::HloInstructionProto* out) { out->mutable_triangular_solve_options(); }},
      {Opcode::kCholesky, [](Instruction /*i*/, xla::HloInstructionProto* out) { out->mutable_cholesky_options(); }},
      {Opcode::kCompare, &WriteComparison},
  };
  static constexpr auto kWrites = MakeOpcodeHandlers<Write>(kRows);
  const Opcode opcode = i.opcode();
  if (const Write write = kWrites[static_cast<size_t>(opcode)]; write != nullptr) write(i, out);
  const bool multiplies = HasTrait(opcode, kContracts);
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

}  // namespace hlokit
