// SPDX-License-Identifier: Apache-2.0
#include "passes/instrumentation/printing.h"

#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/metadata.h"
#include "ir/text/printer.h"
#include "passes/annotations/text.h"

namespace hlokit {

namespace {

std::string PrintToString(const Module& module, const PrintOptions& form) {
  std::string text;
  TextWriter out(&text);
  PrintModule(out, module, form);
  out.Flush();
  return text;
}

// Replaces stack frames, whose numbers depend on all instructions, by their source lines.
void ResolveStackFrames(Module& module) {
  const StackFrames frames = std::move(module.header().stack_frames);
  module.header().stack_frames = StackFrames();
  const auto at = [](const auto& table, int64_t id) {
    return id >= 1 && id <= static_cast<int64_t>(table.size()) ? &table[static_cast<size_t>(id - 1)] : nullptr;
  };
  MetadataPool& pool = module.context().metadata;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      Metadata m = i.metadata();
      if (m.stack_frame_id == 0) continue;
      const StackFrame* frame = at(frames.stack_frames, m.stack_frame_id);
      const FileLocation* location = frame == nullptr ? nullptr : at(frames.file_locations, frame->file_location_id);
      const StringId* file = location == nullptr ? nullptr : at(frames.file_names, location->file_name_id);
      if (file != nullptr && !m.source_file.valid()) {
        m.source_file = *file;
        m.source_line = location->line;
      }
      m.stack_frame_id = 0;
      module.SetMetadata(i.id(), pool.Intern(m));
    }
  }
}

std::string PrintForDiff(const Module& module, const PrintOptions& form) {
  Module copy = module.Clone();
  WriteMetadataSources(copy);
  ResolveStackFrames(copy);
  return PrintToString(copy, form);
}

}  // namespace

std::string PrintMidPipeline(const Module& module, const PrintOptions& form) {
  Module copy = module.Clone();
  WriteMetadataSources(copy);
  return PrintToString(copy, form);
}

absl::Status PrintIr::RunBeforePass(const PassRun& run, const Module& module) {
  if (options_.before && options_.before(run.info.name)) {
    write_(StrCat("// -----// IR Dump Before ", run.info.name, " (run ", run.number, ") //----- //\n",
                  PrintMidPipeline(module, options_.form)));
  }
  if (options_.changes == Changes::kDiff && last_.empty()) last_ = PrintForDiff(module, options_.form);
  return absl::OkStatus();
}

absl::Status PrintIr::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  const bool wanted = options_.after && options_.after(run.info.name);
  if (!wanted && !(changed && options_.changes == Changes::kDiff)) return absl::OkStatus();
  if (options_.changes == Changes::kOff || (changed && options_.changes == Changes::kFull)) {
    write_(StrCat("// -----// IR Dump After ", run.info.name, " (run ", run.number, ") //----- //\n",
                  PrintMidPipeline(module, options_.form)));
  } else if (changed) {
    std::string text = PrintForDiff(module, options_.form);
    if (wanted) {
      write_(StrCat("// -----// IR Changed By ", run.info.name, " (run ", run.number, ") //----- //\n",
                    LineDiff(last_, text)));
    }
    last_ = std::move(text);
  }
  return absl::OkStatus();
}

}  // namespace hlokit
