// SPDX-License-Identifier: Apache-2.0
// What a thread is inside of while it records: scopes that name parts of a model, source lines of the program, and why
// the next execution takes place.
#ifndef HLOKIT_TRACER_GRAPH_SCOPE_H_
#define HLOKIT_TRACER_GRAPH_SCOPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace hlokit::lazy {

struct SourceFrame {
  std::string function;
  std::string file;
  int line = 0;
};

// Scopes ("A.1/B.2"), kept on nodes when the tracer has debug set.
class ScopedTrace {
 public:
  explicit ScopedTrace(std::string_view name);
  ~ScopedTrace();
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;
};

// A line of the traced program.
class ScopedFrame {
 public:
  ScopedFrame(std::string_view function, std::string_view file, int line);
  ~ScopedFrame();
  ScopedFrame(const ScopedFrame&) = delete;
  ScopedFrame& operator=(const ScopedFrame&) = delete;
};

// The C++ line that made a call, as a frame, unless the program has frames of its own.
class ScopedSourceLocation {
 public:
  explicit ScopedSourceLocation(const std::source_location& location);

 private:
  std::optional<ScopedFrame> frame_;
};

// "A.1/B.2", or empty.
const std::string& CurrentScope();
// The innermost; null outside of any frame.
const SourceFrame* CurrentFrame();
// All, innermost first.
std::vector<SourceFrame> CurrentFrames();
// Forgets scopes that are open, as a step does; an error names the first.
absl::Status ResetScopes();

// Why a graph runs.
enum class SyncReason : uint8_t {
  kStep,           // the program marks a step
  kLoaderStep,     // a device loader does, at the end of a batch
  kStepTrace,      // a StepTrace ends
  kValue,          // a tensor is printed or copied to the host
  kItem,           // a number is fetched, the graph being kept
  kRegionPending,  // a compiled region starts and runs what was pending
  kRegion,         // a compiled region ends
  kCaptureInputs,  // a captured function is called and runs what was pending
  kCapture,        // a captured function was traced
  kReplay,         // a captured function runs without being traced
};
// As PyTorch/XLA's analysis puts it: "user torch_xla.sync".
std::string_view Describe(SyncReason cause);
// A word for reports: "step", "item".
std::string_view ToString(SyncReason cause);

// The cause of steps that are marked while it lives.
class ScopedSyncReason {
 public:
  explicit ScopedSyncReason(SyncReason cause);
  ~ScopedSyncReason();
  ScopedSyncReason(const ScopedSyncReason&) = delete;
  ScopedSyncReason& operator=(const ScopedSyncReason&) = delete;

 private:
  std::optional<SyncReason> previous_;
};
// The cause that a ScopedSyncReason says, or `cause`.
SyncReason CurrentSyncReason(SyncReason cause);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_SCOPE_H_
