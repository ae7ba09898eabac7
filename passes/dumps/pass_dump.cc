// SPDX-License-Identifier: Apache-2.0
#include "passes/dumps/pass_dump.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "io/files/atomic_file_writer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module.h"
#include "passes/instrumentation/printing.h"

namespace hlokit::dump {
namespace {

// Replaces what cannot be part of the name of a file.
std::string FileNameOf(std::string_view name) {
  constexpr size_t kMaxBytes = 100;
  std::string text(name.substr(0, kMaxBytes));
  for (char& c : text) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    if (!ok) c = '_';
  }
  return text;
}

}  // namespace

PassDump::PassDump(std::string directory, int64_t number, const Module& module) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  begin_ = StrCat(directory, "/module_", absl::StrFormat("%04d", number), ".", FileNameOf(module.name()), ".");
}

absl::Status PassDump::Write(std::string_view stage, const std::string& text) const {
  absl::StatusOr<std::unique_ptr<AtomicFileWriter>> file = AtomicFileWriter::Open(StrCat(begin_, stage, ".txt"));
  if (!file.ok()) return file.status();
  (*file)->Write(text);
  return (*file)->Commit();
}

absl::Status PassDump::WritePending(std::string_view next) {
  if (pending_stage_.empty()) return absl::OkStatus();
  const std::string stage = StrCat(std::exchange(pending_stage_, ""), FileNameOf(next));
  return Write(stage, std::exchange(pending_text_, ""));
}

absl::Status PassDump::Begin(const Module& module) {
  return Write("before_optimizations", PrintMidPipeline(module, PrintOptions::Lossless()));
}

absl::Status PassDump::End(const Module& module) {
  if (absl::Status s = WritePending("pipeline-end"); !s.ok()) return s;
  return Write("after_optimizations", PrintMidPipeline(module, PrintOptions::Lossless()));
}

absl::Status PassDump::RunBeforePass(const PassRun& run, const Module&) { return WritePending(run.info.name); }

absl::Status PassDump::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  if (!changed) return absl::OkStatus();
  std::string pipeline(run.place.empty() ? "passes" : run.place);
  std::replace(pipeline.begin(), pipeline.end(), '/', '.');
  pending_stage_ = StrCat(absl::StrFormat("%04d", run.number), ".", FileNameOf(pipeline), ".after_",
                          FileNameOf(run.info.name), ".before_");
  pending_text_ = PrintMidPipeline(module, PrintOptions::Lossless());
  return absl::OkStatus();
}

}  // namespace hlokit::dump
