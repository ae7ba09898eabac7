// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/scope.h"

#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit::lazy {
namespace {

struct ThreadScopes {
  std::vector<int> pushes = {0};  // at each level since the enclosing push
  std::vector<size_t> lengths;    // of `text` before each push
  std::string text;
  std::vector<Frame> frames;
  std::optional<Cause> cause;
};
thread_local ThreadScopes scopes;

// "double hlokit::F(int) [with T = int]" without all but the name.
std::string_view FunctionName(std::string_view signature) {
  signature = signature.substr(0, signature.find('('));
  const size_t blank = signature.rfind(' ');
  return blank == std::string_view::npos ? signature : signature.substr(blank + 1);
}

}  // namespace

ScopedTrace::ScopedTrace(std::string_view name) {
  scopes.lengths.push_back(scopes.text.size());
  StrAppend(&scopes.text, scopes.text.empty() ? "" : "/", name, ".", ++scopes.pushes.back());
  scopes.pushes.push_back(0);
}

ScopedTrace::~ScopedTrace() {
  if (scopes.lengths.empty()) return;  // a step forgot it
  scopes.text.resize(scopes.lengths.back());
  scopes.lengths.pop_back();
  scopes.pushes.pop_back();
}

ScopedFrame::ScopedFrame(std::string_view function, std::string_view file, int line) {
  scopes.frames.push_back({std::string(function), std::string(file), line});
}
ScopedFrame::~ScopedFrame() { scopes.frames.pop_back(); }

CallSite::CallSite(const std::source_location& location) {
  if (!scopes.frames.empty()) return;
  frame_.emplace(FunctionName(location.function_name()), location.file_name(), static_cast<int>(location.line()));
}

const std::string& CurrentScope() { return scopes.text; }
const Frame* CurrentFrame() { return scopes.frames.empty() ? nullptr : &scopes.frames.back(); }
std::vector<Frame> CurrentFrames() { return {scopes.frames.rbegin(), scopes.frames.rend()}; }

absl::Status ResetScopes() {
  const std::string open = scopes.text;
  scopes.lengths.clear();
  scopes.pushes.assign(1, 0);
  scopes.text.clear();
  if (open.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("Expecting scope to be empty but it is ", open));
}

std::string_view SentenceOf(Cause cause) {
  switch (cause) {
    case Cause::kStep:
      return "user torch_xla.sync";
    case Cause::kLoaderStep:
      return "torch_xla.sync in parallel loader at step end";
    case Cause::kStepTrace:
      return "torch_xla.sync when exiting a profiler StepTrace region";
    case Cause::kValue:
    case Cause::kItem:
      return "most likely user code trying to access tensor value before torch_xla.sync";
    case Cause::kRegionPending:
      return "torch_xla.compile clear the pending graph prior calling the target function";
    case Cause::kRegion:
      return "torch_xla.compile";
    case Cause::kCaptureInputs:
      return "torch_xla.sync when dynamo processing input graphs";
    case Cause::kCapture:
      return "dynamo is compiling a FX graph to HLO";
    case Cause::kReplay:
      return "dynamo is executing a compiled program";
  }
  return "";
}

std::string_view WordOf(Cause cause) {
  switch (cause) {
    case Cause::kStep:
      return "step";
    case Cause::kLoaderStep:
      return "loader step";
    case Cause::kStepTrace:
      return "step trace";
    case Cause::kValue:
      return "value";
    case Cause::kItem:
      return "item";
    case Cause::kRegionPending:
      return "pending before a region";
    case Cause::kRegion:
      return "region";
    case Cause::kCaptureInputs:
      return "pending before a captured call";
    case Cause::kCapture:
      return "capture";
    case Cause::kReplay:
      return "replay";
  }
  return "";
}

ScopedCause::ScopedCause(Cause cause) : previous_(std::exchange(scopes.cause, cause)) {}
ScopedCause::~ScopedCause() { scopes.cause = previous_; }
Cause CurrentCause(Cause cause) { return scopes.cause.value_or(cause); }

}  // namespace hlokit::lazy
