// SPDX-License-Identifier: Apache-2.0
// The contents of a module's header line, and the stack-frame tables after it.
#ifndef HLOKIT_IR_GRAPH_MODULE_HEADER_H_
#define HLOKIT_IR_GRAPH_MODULE_HEADER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/core/ids.h"
#include "ir/types/shape.h"

namespace hlokit {

// `{output_index}: (parameter, {parameter_index}, may-alias|must-alias)`
struct InputOutputAlias {
  ListId output_index;
  int64_t parameter = 0;
  ListId parameter_index;
  bool must_alias = false;
};

// `(parameter, {parameter_index})`
struct BufferDonor {
  int64_t parameter = 0;
  ListId parameter_index;
};

struct EntryLayout {
  std::vector<Shape> parameters;
  Shape result;
};

struct FileLocation {
  int32_t file_name_id = 0;
  int32_t function_name_id = 0;
  int32_t line = 0;
  int32_t end_line = 0;
  int32_t column = 0;
  int32_t end_column = 0;
};

struct StackFrame {
  int32_t file_location_id = 0;  // from 1
  int32_t parent_frame_id = 0;   // from 1; as in the text
};

struct StackFrames {
  std::vector<StringId> file_names;
  std::vector<StringId> function_names;
  std::vector<FileLocation> file_locations;
  std::vector<StackFrame> stack_frames;
  bool empty() const {
    return file_names.empty() && function_names.empty() && file_locations.empty() && stack_frames.empty();
  }
};

// One entry of `origin_recovery_table={ {"old" {idx}} : {"new" {idx}}, "module text" ... }`; see original_value.h.
struct OriginRecoveryEntry {
  ListId removed;        // encoded array, see original_value.h
  ListId replacement;    // encoded array
  StringId module_text;  // as printed, neither indented nor escaped; invalid: the arrays are equal
};

enum class DebugLogMode : int64_t { kUnset, kDefault, kFusionDebugger };

// One entry of `debug_attributes={ {"name" {idx}}:({log_mode=default,callback_id=1}), ... }`.
struct DebugAttribute {
  ListId array;    // encoded array, see original_value.h
  ListId records;  // for each: DebugLogMode, callback id, partitioned (0/1), op id
};

struct ModuleHeader {
  StringId name;
  bool is_scheduled = false;
  int64_t replica_count = 1;
  int64_t num_partitions = 1;
  bool alias_passthrough_params = false;
  std::vector<InputOutputAlias> input_output_alias;      // sorted by output index
  std::vector<BufferDonor> buffer_donor;                 // sorted
  std::optional<EntryLayout> entry_layout;               // always set in a parsed module
  ListId allow_spmd_sharding_propagation_to_parameters;  // 0/1 each; invalid: absent
  ListId allow_spmd_sharding_propagation_to_output;
  ListId frontend_attributes;  // as Attr::kFrontendAttributes; invalid: absent
  std::vector<OriginRecoveryEntry> origin_recovery_table;
  std::vector<DebugAttribute> debug_attributes;
  StackFrames stack_frames;
  // Unrecognized header attributes, name and text alternating (allow_unknown).
  std::vector<StringId> unknown_attributes;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_MODULE_HEADER_H_
