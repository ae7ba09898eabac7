// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/source_line.h"

#include <cstdint>

#include "ir/core/str_cat.h"
#include "ir/graph/module.h"

namespace hlokit {

std::string SourceLineOf(Instruction instruction) {
  const Context& context = instruction.module().context();
  const Metadata m = instruction.metadata();
  if (m.source_file.valid() && !context.str(m.source_file).empty()) {
    return StrCat(context.str(m.source_file), ":", m.source_line);
  }
  const StackFrames& frames = instruction.module().header().stack_frames;
  const auto at = [](const auto& table, int64_t id) {
    return id >= 1 && id <= static_cast<int64_t>(table.size()) ? &table[static_cast<size_t>(id - 1)] : nullptr;
  };
  const StackFrame* frame = at(frames.stack_frames, m.stack_frame_id);
  const FileLocation* location = frame == nullptr ? nullptr : at(frames.file_locations, frame->file_location_id);
  const StringId* file = location == nullptr ? nullptr : at(frames.file_names, location->file_name_id);
  return file == nullptr ? "" : StrCat(context.str(*file), ":", location->line);
}

std::string_view OpNameOf(Instruction instruction) {
  const Metadata metadata = instruction.metadata();
  return metadata.op_name ? instruction.module().context().str(metadata.op_name) : std::string_view();
}

}  // namespace hlokit
