// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/unknown_fields.h"

#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {

void UnknownFields::Check(const google::protobuf::Message& message) {
  if (warned_) return;
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  for (int k = 0; k < fields.field_count(); ++k) {
    const google::protobuf::UnknownField& field = fields.field(k);
    // An empty message, or a zero, says nothing.
    if (field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED && field.length_delimited().empty())
      continue;
    if (field.type() == google::protobuf::UnknownField::TYPE_VARINT && field.varint() == 0) continue;
    warned_ = true;
    const std::string place = place_();
    sink_->Warning(DiagnosticKind::kUnknownAttribute, {},
                   StrCat(place, place.empty() ? "" : ": ", "field ", field.number(), " of ",
                          std::string(message.GetDescriptor()->name()), " is unknown, and has no effect"),
                   "it is of a newer XLA; further unknown fields of this file are not reported");
    return;
  }
}

void UnknownFields::CheckWithin(const google::protobuf::Message& message) {
  if (warned_) return;
  Check(message);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    CheckWithin(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, 0)
                                     : reflection.GetMessage(message, field));
  }
}

void UnknownFields::CheckInstruction(const xla::HloInstructionProto& proto) {
  if (warned_) return;
  Check(proto);
  if (proto.has_sharding()) CheckWithin(proto.sharding());
  if (proto.has_window()) CheckWithin(proto.window());
  if (proto.has_convolution_dimension_numbers()) CheckWithin(proto.convolution_dimension_numbers());
  if (proto.has_dot_dimension_numbers()) CheckWithin(proto.dot_dimension_numbers());
  if (proto.has_ragged_dot_dimension_numbers()) CheckWithin(proto.ragged_dot_dimension_numbers());
  if (proto.has_gather_dimension_numbers()) CheckWithin(proto.gather_dimension_numbers());
  if (proto.has_scatter_dimension_numbers()) CheckWithin(proto.scatter_dimension_numbers());
  if (proto.has_precision_config()) CheckWithin(proto.precision_config());
  if (proto.has_result_accuracy()) CheckWithin(proto.result_accuracy());
  if (proto.has_original_value()) CheckWithin(proto.original_value());
  if (proto.has_collective_device_list()) CheckWithin(proto.collective_device_list());
  if (proto.has_iota_collective_device_list()) CheckWithin(proto.iota_collective_device_list());
  if (proto.has_mesh_axes_replica_group_list()) CheckWithin(proto.mesh_axes_replica_group_list());
  if (proto.has_frontend_attributes()) Check(proto.frontend_attributes());
}

}  // namespace hlokit
