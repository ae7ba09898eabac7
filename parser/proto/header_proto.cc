// SPDX-License-Identifier: Apache-2.0
#include "parser/proto/header_proto.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/original_value.h"
#include "ir/text/printer.h"
#include "parser/hlo/quoted_module.h"
#include "parser/proto/annotation_proto.h"
#include "parser/proto/module_reader.h"
#include "parser/proto/module_writer.h"
#include "parser/proto/serialize.h"

namespace hlokit {
namespace {

constexpr int64_t kDebugRecordFields = 4;  // mode, callback, partitioned, op

ListId ReadIndex(const google::protobuf::RepeatedField<int64_t>& index, Context* context) {
  return context->lists.Intern({index.data(), static_cast<size_t>(index.size())});
}

bool IndexBefore(const Context& context, ListId a, ListId b) {
  const auto x = context.list(a), y = context.list(b);
  return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
}

absl::Status ReadAliases(const xla::HloModuleProto& proto, Context* context, ModuleHeader* header) {
  for (const xla::HloInputOutputAliasProto::AliasEntryProto& entry : proto.input_output_alias().entries()) {
    header->input_output_alias.push_back({ReadIndex(entry.output_shape_index(), context), entry.parameter_number(),
                                          ReadIndex(entry.parameter_shape_index(), context),
                                          entry.kind() == xla::MUST_ALIAS});
  }
  std::vector<InputOutputAlias>& aliases = header->input_output_alias;
  std::stable_sort(aliases.begin(), aliases.end(), [context](const InputOutputAlias& a, const InputOutputAlias& b) {
    return IndexBefore(*context, a.output_index, b.output_index);
  });
  const auto same = [](const InputOutputAlias& a, const InputOutputAlias& b) {
    return a.output_index == b.output_index;
  };
  if (std::adjacent_find(aliases.begin(), aliases.end(), same) != aliases.end()) {
    return absl::InvalidArgumentError("input_output_alias: duplicate alias of an output");
  }
  for (const xla::HloBufferDonorProto::BufferDonorEntryProto& entry : proto.buffer_donor().entries()) {
    header->buffer_donor.push_back({entry.parameter_number(), ReadIndex(entry.parameter_shape_index(), context)});
  }
  std::stable_sort(header->buffer_donor.begin(), header->buffer_donor.end(),
                   [context](const BufferDonor& a, const BufferDonor& b) {
                     if (a.parameter != b.parameter) return a.parameter < b.parameter;
                     return IndexBefore(*context, a.parameter_index, b.parameter_index);
                   });
  return absl::OkStatus();
}

// The layout that the shapes of the entry have by themselves.
EntryLayout LayoutOfEntry(const Module& module) {
  EntryLayout layout;
  const Computation entry = module.entry();
  for (int64_t k = 0; k < entry.parameter_count(); ++k) layout.parameters.push_back(entry.parameter(k).shape());
  layout.result = entry.root().shape();
  return layout;
}

// A configuration's layout goes before the module's, as in XLA.
absl::Status ReadLayouts(const xla::HloModuleProto& proto, const xla::HloModuleConfigProto* config, Module* module) {
  const bool configured = config != nullptr && config->has_entry_computation_layout();
  if (!configured && !proto.has_host_program_shape()) {
    module->header().entry_layout = LayoutOfEntry(*module);
    return absl::OkStatus();
  }
  const xla::ProgramShapeProto& program = configured ? config->entry_computation_layout() : proto.host_program_shape();
  EntryLayout layout;
  for (const xla::ShapeProto& parameter : program.parameters()) {
    const absl::StatusOr<Shape> shape = ReadShape(parameter, &module->context());
    if (!shape.ok()) return shape.status();
    layout.parameters.push_back(*shape);
  }
  const absl::StatusOr<Shape> result = ReadShape(program.result(), &module->context());
  if (!result.ok()) return result.status();
  layout.result = *result;
  module->header().entry_layout = std::move(layout);
  return absl::OkStatus();
}

// A recovery module is stored as its text, and its own table is not looked into.
absl::Status ReadRecoveryTable(const xla::HloModuleProto& proto, const ParseOptions& options, Module* module) {
  Context& context = module->context();
  std::vector<OriginRecoveryEntry>& table = module->header().origin_recovery_table;
  if (options.quoted_module) return absl::OkStatus();
  for (const xla::OriginalValueRecoveryTableProto::Entry& entry : proto.original_value_recovery_table().entries()) {
    OriginRecoveryEntry to;
    to.removed = ReadOriginalArray(entry.old_original_array(), &context);
    to.replacement = ReadOriginalArray(entry.new_original_array(), &context);
    if (entry.has_recovery_module()) {
      ParseOptions nested_options = options;
      nested_options.quoted_module = true;
      DiagnosticSink sink;
      const std::unique_ptr<Module> nested = ReadModuleProto(entry.recovery_module(), nullptr, nested_options, &sink);
      if (nested == nullptr) {
        return absl::InvalidArgumentError(
            StrCat("invalid recovery module: ", sink.diagnostics().empty() ? "" : sink.diagnostics()[0].message));
      }
      to.module_text = context.strings.Intern(ToString(*nested));
    }
    table.push_back(to);
  }
  SortOriginRecoveryTable(context, &table);
  return absl::OkStatus();
}

void ReadDebugAttributes(const xla::HloModuleProto& proto, Module* module) {
  Context& context = module->context();
  for (const xla::DebugAttributeTableEntryProto& entry : proto.debug_attributes()) {
    std::vector<int64_t> records;
    for (const xla::DebugAttributesProto& record : entry.debug_attributes()) {
      // Modes that HLO text has no word for are not set.
      const bool known = record.log_mode() >= 0 && record.log_mode() <= static_cast<int>(DebugLogMode::kFusionDebugger);
      records.insert(records.end(), {known ? static_cast<int64_t>(record.log_mode()) : 0, record.callback_id(),
                                     record.partitioned() ? 1 : 0, record.op_id()});
    }
    module->header().debug_attributes.push_back(
        {ReadOriginalArray(entry.original_array(), &context), context.lists.Intern(records)});
  }
  SortDebugAttributes(&context, &module->header().debug_attributes);
}

// XLA's default, which its text leaves out.
bool IsDefault(const google::protobuf::RepeatedField<bool>& field) { return field.size() == 1 && !field.Get(0); }

ListId ReadBools(const google::protobuf::RepeatedField<bool>& field, Context* context) {
  if (field.empty() || IsDefault(field)) return ListId();
  return context->lists.Intern(std::vector<int64_t>(field.begin(), field.end()));
}

absl::Status WriteEntryLayout(const Module& module, ShapeWriter* shapes, xla::ProgramShapeProto* out) {
  const EntryLayout layout = module.header().entry_layout ? *module.header().entry_layout : LayoutOfEntry(module);
  for (size_t k = 0; k < layout.parameters.size(); ++k) {
    absl::Status status = shapes->Write(layout.parameters[k], out->add_parameters());
    if (!status.ok()) return status;
    out->add_parameter_names(StrCat("p", k));
  }
  return shapes->Write(layout.result, out->mutable_result());
}

absl::Status WriteRecoveryTable(const Module& module, xla::OriginalValueRecoveryTableProto* out) {
  const Context& context = module.context();
  for (const OriginRecoveryEntry& entry : module.header().origin_recovery_table) {
    xla::OriginalValueRecoveryTableProto::Entry* to = out->add_entries();
    WriteOriginalArray(context, entry.removed, to->mutable_old_original_array());
    WriteOriginalArray(context, entry.replacement, to->mutable_new_original_array());
    if (!entry.module_text.valid()) continue;
    absl::StatusOr<std::unique_ptr<Module>> nested = ParseQuotedModule(context.str(entry.module_text));
    if (!nested.ok()) return nested.status();
    (*nested)->header().origin_recovery_table.clear();  // of a module that is itself quoted
    if (absl::Status status = WriteModuleProto(**nested, {}, to->mutable_recovery_module()); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadHeaderProto(const xla::HloModuleProto& proto, const xla::HloModuleConfigProto* config,
                             const ParseOptions& options, Module* module) {
  Context& context = module->context();
  ModuleHeader& header = module->header();
  if (absl::Status status = ReadAliases(proto, &context, &header); !status.ok()) return status;
  if (absl::Status status = ReadLayouts(proto, config, module); !status.ok()) return status;
  if (proto.frontend_attributes().map_size() != 0) {
    header.frontend_attributes = ReadFrontendAttributes(proto.frontend_attributes(), &context);
  }
  if (absl::Status status = ReadRecoveryTable(proto, options, module); !status.ok()) return status;
  ReadDebugAttributes(proto, module);
  if (config == nullptr) return absl::OkStatus();
  header.replica_count = std::max<int64_t>(config->replica_count(), 1);
  header.num_partitions = std::max<int64_t>(config->num_partitions(), 1);
  header.alias_passthrough_params = config->alias_passthrough_params();
  header.allow_spmd_sharding_propagation_to_parameters =
      ReadBools(config->allow_spmd_sharding_propagation_to_parameters(), &context);
  header.allow_spmd_sharding_propagation_to_output =
      ReadBools(config->allow_spmd_sharding_propagation_to_output(), &context);
  return absl::OkStatus();
}

absl::Status WriteHeaderProto(const Module& module, ShapeWriter* shapes, xla::HloModuleProto* out) {
  const Context& context = module.context();
  const ModuleHeader& header = module.header();
  if (absl::Status status = WriteEntryLayout(module, shapes, out->mutable_host_program_shape()); !status.ok()) {
    return status;
  }
  xla::HloInputOutputAliasProto* aliases = out->mutable_input_output_alias();
  for (const InputOutputAlias& alias : header.input_output_alias) {
    xla::HloInputOutputAliasProto::AliasEntryProto* entry = aliases->add_entries();
    for (int64_t k : context.list(alias.output_index)) entry->add_output_shape_index(k);
    entry->set_parameter_number(alias.parameter);
    for (int64_t k : context.list(alias.parameter_index)) entry->add_parameter_shape_index(k);
    entry->set_kind(alias.must_alias ? xla::MUST_ALIAS : xla::MAY_ALIAS);
  }
  xla::HloBufferDonorProto* donors = out->mutable_buffer_donor();
  for (const BufferDonor& donor : header.buffer_donor) {
    xla::HloBufferDonorProto::BufferDonorEntryProto* entry = donors->add_entries();
    entry->set_parameter_number(donor.parameter);
    for (int64_t k : context.list(donor.parameter_index)) entry->add_parameter_shape_index(k);
  }
  out->mutable_frontend_attributes();
  if (header.frontend_attributes) {
    WriteFrontendAttributes(context, header.frontend_attributes, out->mutable_frontend_attributes());
  }
  if (!header.stack_frames.empty()) {
    WriteStackFrames(context, header.stack_frames, out->mutable_stack_frame_index());
  }
  if (!header.origin_recovery_table.empty()) {
    absl::Status status = WriteRecoveryTable(module, out->mutable_original_value_recovery_table());
    if (!status.ok()) return status;
  }
  for (const DebugAttribute& attribute : header.debug_attributes) {
    xla::DebugAttributeTableEntryProto* entry = out->add_debug_attributes();
    WriteOriginalArray(context, attribute.array, entry->mutable_original_array());
    const absl::Span<const int64_t> records = context.list(attribute.records);
    for (size_t at = 0; at + kDebugRecordFields <= records.size(); at += kDebugRecordFields) {
      xla::DebugAttributesProto* to = entry->add_debug_attributes();
      to->set_log_mode(static_cast<xla::DebugAttributesProto::DebugLogModeProto>(records[at]));
      to->set_callback_id(records[at + 1]);
      to->set_partitioned(records[at + 2] != 0);
      to->set_op_id(records[at + 3]);
    }
  }
  return absl::OkStatus();
}

bool NeedsConfig(const ModuleHeader& header) {
  return header.replica_count != 1 || header.num_partitions != 1 || header.alias_passthrough_params ||
         header.allow_spmd_sharding_propagation_to_parameters.valid() ||
         header.allow_spmd_sharding_propagation_to_output.valid();
}

absl::Status WriteConfigProto(const Module& module, xla::HloModuleConfigProto* out) {
  const ModuleHeader& header = module.header();
  // A count of 0 is 1 here, but not in XLA: a file's is kept, a new message has none.
  const bool fresh = out->ByteSizeLong() == 0;
  if (fresh || std::max<int64_t>(out->replica_count(), 1) != header.replica_count) {
    out->set_replica_count(header.replica_count);
  }
  if (fresh || std::max<int64_t>(out->num_partitions(), 1) != header.num_partitions) {
    out->set_num_partitions(header.num_partitions);
  }
  out->set_alias_passthrough_params(header.alias_passthrough_params);
  const auto bools = [&module, fresh](ListId id, google::protobuf::RepeatedField<bool>* field) {
    if (!id.valid() && (field->empty() || IsDefault(*field))) {
      if (fresh) field->Add(false);
      return;
    }
    field->Clear();
    for (int64_t value : module.context().list(id)) field->Add(value != 0);
  };
  bools(header.allow_spmd_sharding_propagation_to_parameters,
        out->mutable_allow_spmd_sharding_propagation_to_parameters());
  bools(header.allow_spmd_sharding_propagation_to_output, out->mutable_allow_spmd_sharding_propagation_to_output());
  // XLA requires it of every configuration that it reads. A file's stays as it is while its shapes do.
  xla::ProgramShapeProto layout;
  ShapeWriter shapes;
  if (absl::Status status = WriteEntryLayout(module, &shapes, &layout); !status.ok()) return status;
  const auto same_shapes = [](xla::ProgramShapeProto a, xla::ProgramShapeProto b) {
    a.clear_parameter_names();
    b.clear_parameter_names();
    return SerializedMessage(a) == SerializedMessage(b);
  };
  if (!out->has_entry_computation_layout() || !same_shapes(out->entry_computation_layout(), layout)) {
    *out->mutable_entry_computation_layout() = std::move(layout);
  }
  return absl::OkStatus();
}

}  // namespace hlokit
