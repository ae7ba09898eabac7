// SPDX-License-Identifier: Apache-2.0
#include "ir/text/header_text.h"

#include <string_view>
#include <vector>

#include "ir/text/attribute_text.h"
#include "ir/text/original_value.h"
#include "ir/text/shape_text.h"

namespace hlokit {
namespace {

void PrintShapeIndex(TextWriter& out, absl::Span<const int64_t> index) {
  out << '{';
  for (size_t k = 0; k < index.size(); ++k) {
    if (k != 0) out << ',';
    out << index[k];
  }
  out << '}';
}

void PrintAliases(TextWriter& out, const Module& module) {
  const ModuleHeader& h = module.header();
  const Context& context = module.context();
  if (!h.input_output_alias.empty()) {
    out << ", input_output_alias={ ";
    for (size_t k = 0; k < h.input_output_alias.size(); ++k) {
      const InputOutputAlias& alias = h.input_output_alias[k];
      if (k != 0) out << ", ";
      PrintShapeIndex(out, context.list(alias.output_index));
      out << ": (" << alias.parameter << ", ";
      PrintShapeIndex(out, context.list(alias.parameter_index));
      out << (alias.must_alias ? ", must-alias)" : ", may-alias)");
    }
    out << " }";
  }
  if (!h.buffer_donor.empty()) {
    out << ", buffer_donor={ ";
    for (size_t k = 0; k < h.buffer_donor.size(); ++k) {
      if (k != 0) out << ", ";
      out << '(' << h.buffer_donor[k].parameter << ", ";
      PrintShapeIndex(out, context.list(h.buffer_donor[k].parameter_index));
      out << ')';
    }
    out << " }";
  }
}

void PrintEntryLayout(TextWriter& out, const EntryLayout& layout) {
  out << ", entry_computation_layout={(";
  for (size_t k = 0; k < layout.parameters.size(); ++k) {
    if (k != 0) out << ", ";
    if (k != 0 && k % 5 == 0) out << "/*index=" << static_cast<int64_t>(k) << "*/";
    PrintShape(out, layout.parameters[k]);
  }
  out << ")->";
  PrintShape(out, layout.result);
  out << '}';
}

// Prints a list of booleans, unless it is one false.
void PrintBools(TextWriter& out, std::string_view name, const Context& context, ListId id) {
  if (!id.valid()) return;
  const absl::Span<const int64_t> list = context.list(id);
  if (list.empty() || (list.size() == 1 && list[0] == 0)) return;
  out << ", " << name << "={";
  for (size_t k = 0; k < list.size(); ++k) out << (k == 0 ? "" : ",") << (list[k] ? "true" : "false");
  out << '}';
}

}  // namespace

void PrintModuleHeader(TextWriter& out, const Module& module, const PrintOptions& options) {
  const ModuleHeader& h = module.header();
  const Context& context = module.context();
  out << "HloModule ";
  if (options.print_ids) out << context.str(h.name);
  if (h.is_scheduled) out << ", is_scheduled=true";
  PrintAliases(out, module);
  if (h.alias_passthrough_params) out << ", alias_passthrough_params=true";
  if (h.entry_layout) PrintEntryLayout(out, *h.entry_layout);
  PrintBools(out, "allow_spmd_sharding_propagation_to_parameters", context,
             h.allow_spmd_sharding_propagation_to_parameters);
  PrintBools(out, "allow_spmd_sharding_propagation_to_output", context, h.allow_spmd_sharding_propagation_to_output);
  if (h.replica_count != 1) out << ", replica_count=" << h.replica_count;
  if (h.num_partitions != 1) out << ", num_partitions=" << h.num_partitions;
  if (h.frontend_attributes.valid() && !context.list(h.frontend_attributes).empty()) {
    out << ", frontend_attributes=";
    AttributePrinter(out, module, options).PrintValue({Attr::kFrontendAttributes, h.frontend_attributes.value});
  }
  for (size_t k = 0; k + 1 < h.unknown_attributes.size(); k += 2) {
    out << ", " << context.str(h.unknown_attributes[k]) << '=' << context.str(h.unknown_attributes[k + 1]);
  }
  if (!h.origin_recovery_table.empty()) {
    out << ", origin_recovery_table=";
    PrintOriginRecoveryTable(out, context, h.origin_recovery_table);
  }
  if (!h.debug_attributes.empty()) {
    out << ",\ndebug_attributes=";
    PrintDebugAttributes(out, context, h.debug_attributes);
  }
}

void PrintStackFrames(TextWriter& out, const Module& module, const PrintOptions& options) {
  const StackFrames& s = module.header().stack_frames;
  if (s.file_names.empty() || !options.print_metadata || !options.print_stack_frames) return;
  const auto names = [&](std::string_view title, const std::vector<StringId>& list) {
    out << title;
    for (size_t k = 0; k < list.size(); ++k) {
      out << static_cast<int64_t>(k + 1) << ' ';
      PrintQuoted(out, module.context().str(list[k]));
      out << '\n';
    }
  };
  names("\n\nFileNames\n", s.file_names);
  names("\nFunctionNames\n", s.function_names);
  out << "\nFileLocations\n";
  for (size_t k = 0; k < s.file_locations.size(); ++k) {
    const FileLocation& l = s.file_locations[k];
    out << static_cast<int64_t>(k + 1) << " {file_name_id=" << l.file_name_id
        << " function_name_id=" << l.function_name_id << " line=" << l.line << " end_line=" << l.end_line
        << " column=" << l.column << " end_column=" << l.end_column << "}\n";
  }
  out << "\nStackFrames\n";
  for (size_t k = 0; k < s.stack_frames.size(); ++k) {
    out << static_cast<int64_t>(k + 1) << " {file_location_id=" << s.stack_frames[k].file_location_id
        << " parent_frame_id=" << s.stack_frames[k].parent_frame_id << "}\n";
  }
}

}  // namespace hlokit
