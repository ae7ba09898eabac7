// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/scope.h"

#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit::lazy {
namespace {

struct ThreadScopes {
  std::vector<int> pushes = {0};  // at each level since the enclosing push
  std::vector<size_t> lengths;    // of `text` before each push
  std::string text;
  std::vector<SourceFrame> frames;
  std::optional<SyncReason> cause;
};
thread_local ThreadScopes scopes;

// Returns the name in "double hlokit::(anonymous namespace)::F(int) [with T = int]", without unnamed namespaces.
std::string FunctionName(std::string_view signature) {
  std::string text(signature);
  for (const std::string_view unnamed : {"{anonymous}::", "(anonymous namespace)::"}) {
    for (size_t at = text.find(unnamed); at != std::string::npos; at = text.find(unnamed))
      text.erase(at, unnamed.size());
  }
  text.resize(std::min(text.size(), text.find('(')));
  text.erase(0, text.rfind(' ') + 1);
  if (text.ends_with("::operator")) text.resize(text.size() - std::string_view("::operator").size());  // a functor
  return text;
}

// Returns the path without steps that compilers with relative paths write before it.
std::string_view WithoutSteps(std::string_view path) {
  for (const std::string_view step : {"./", "../"}) {
    while (path.starts_with(step)) path.remove_prefix(step.size());
  }
  return path;
}

}  // namespace

ScopedName::ScopedName(std::string_view name) {
  scopes.lengths.push_back(scopes.text.size());
  StrAppend(&scopes.text, scopes.text.empty() ? "" : "/", name, ".", ++scopes.pushes.back());
  scopes.pushes.push_back(0);
}

ScopedName::~ScopedName() {
  if (scopes.lengths.empty()) return;  // a step closed it
  scopes.text.resize(scopes.lengths.back());
  scopes.lengths.pop_back();
  scopes.pushes.pop_back();
}

ScopedFrame::ScopedFrame(std::string_view function, std::string_view file, int line) {
  scopes.frames.push_back({std::string(function), std::string(file), line});
}
ScopedFrame::~ScopedFrame() { scopes.frames.pop_back(); }

constinit thread_local CallSite call_site;

SourceFrame FrameOf(const std::source_location& location) {
  return {FunctionName(location.function_name()), std::string(WithoutSteps(location.file_name())),
          static_cast<int>(location.line())};
}

const std::string& CurrentScope() { return scopes.text; }
const SourceFrame* CurrentFrame() { return scopes.frames.empty() ? nullptr : &scopes.frames.back(); }
std::vector<SourceFrame> CurrentFrames() {
  if (scopes.frames.empty() && call_site.location.line() != 0) return {FrameOf(call_site.location)};
  return {scopes.frames.rbegin(), scopes.frames.rend()};
}

absl::Status ResetScopes() {
  const std::string open = scopes.text;
  scopes.lengths.clear();
  scopes.pushes.assign(1, 0);
  scopes.text.clear();
  if (open.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("Expecting scope to be empty but it is ", open));
}

std::string_view Describe(SyncReason cause) {
  switch (cause) {
    case SyncReason::kStep:
      return "user torch_xla.sync";
    case SyncReason::kLoaderStep:
      return "torch_xla.sync in parallel loader at step end";
    case SyncReason::kStepTrace:
      return "torch_xla.sync when exiting a profiler StepTrace region";
    case SyncReason::kValue:
    case SyncReason::kItem:
      return "most likely user code trying to access tensor value before torch_xla.sync";
    case SyncReason::kRegionPending:
      return "torch_xla.compile clear the pending graph prior calling the target function";
    case SyncReason::kRegion:
      return "torch_xla.compile";
    case SyncReason::kCaptureInputs:
      return "torch_xla.sync when dynamo processing input graphs";
    case SyncReason::kCapture:
      return "dynamo is compiling a FX graph to HLO";
    case SyncReason::kReplay:
      return "dynamo is executing a compiled program";
    case SyncReason::kTool:
      return "the tool, to print, compare or save values";
  }
  return "";
}

std::string_view ToString(SyncReason cause) {
  switch (cause) {
    case SyncReason::kStep:
      return "step";
    case SyncReason::kLoaderStep:
      return "loader step";
    case SyncReason::kStepTrace:
      return "step trace";
    case SyncReason::kValue:
      return "value";
    case SyncReason::kItem:
      return "item";
    case SyncReason::kRegionPending:
      return "pending before a region";
    case SyncReason::kRegion:
      return "region";
    case SyncReason::kCaptureInputs:
      return "pending before a captured call";
    case SyncReason::kCapture:
      return "capture";
    case SyncReason::kReplay:
      return "replay";
    case SyncReason::kTool:
      return "tool";
  }
  return "";
}

ScopedSyncReason::ScopedSyncReason(SyncReason cause) : previous_(std::exchange(scopes.cause, cause)) {}
ScopedSyncReason::~ScopedSyncReason() { scopes.cause = previous_; }
SyncReason CurrentSyncReason(SyncReason cause) { return scopes.cause.value_or(cause); }

}  // namespace hlokit::lazy
