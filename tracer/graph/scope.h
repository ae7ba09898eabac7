// SPDX-License-Identifier: Apache-2.0
// Recording context of a thread: scopes that name parts of a model, source lines of the program, and the reason of the
// next execution.
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
#include "runtime/observe/profiler.h"

namespace hlokit::lazy {

struct SourceFrame {
  std::string function;
  std::string file;
  int line = 0;

  friend bool operator==(const SourceFrame&, const SourceFrame&) = default;
};

// A scope ("A.1/B.2"), stored on nodes if the tracer's debug option is set.
class ScopedName {
 public:
  explicit ScopedName(std::string_view name);
  ~ScopedName();
  ScopedName(const ScopedName&) = delete;
  ScopedName& operator=(const ScopedName&) = delete;
};

// A scope that is also a span of profiles.
class ScopedTrace {
 public:
  explicit ScopedTrace(std::string_view name) : span_(name), scope_(name) {}

 private:
  runtime::AnnotationSpan span_;
  ScopedName scope_;
};

// A line of the traced program.
class ScopedFrame {
 public:
  ScopedFrame(std::string_view function, std::string_view file, int line);
  ~ScopedFrame();
  ScopedFrame(const ScopedFrame&) = delete;
  ScopedFrame& operator=(const ScopedFrame&) = delete;
};

// The C++ line that this thread's calls are attributed to.
struct CallSite {
  std::source_location location;  // line 0: none
  bool set = false;
};
extern constinit thread_local CallSite call_site;

// Attributes calls of this thread to the C++ line of a call, unless an enclosing call is attributed already: the
// outermost one is the program's, those inside are the library's. Costs two loads and two stores.
class ScopedSourceLocation {
 public:
  explicit ScopedSourceLocation(const std::source_location& location) : first_(!call_site.set) {
    if (first_) call_site = {location, true};
  }
  ~ScopedSourceLocation() {
    if (first_) call_site = {};
  }
  ScopedSourceLocation(const ScopedSourceLocation&) = delete;
  ScopedSourceLocation& operator=(const ScopedSourceLocation&) = delete;

 private:
  const bool first_;
};

// Replaces the attribution: by the line of a call whose derivative runs, or by none while the library calls a function
// of the program, whose calls are attributed to their own lines.
class ReplacedSourceLocation {
 public:
  ReplacedSourceLocation() : previous_(call_site) { call_site = {}; }
  explicit ReplacedSourceLocation(const std::source_location& location) : previous_(call_site) {
    call_site = {location, true};
  }
  ~ReplacedSourceLocation() { call_site = previous_; }
  ReplacedSourceLocation(const ReplacedSourceLocation&) = delete;
  ReplacedSourceLocation& operator=(const ReplacedSourceLocation&) = delete;

 private:
  const CallSite previous_;
};

// Returns the frame of a C++ line. Files of this library are relative to the project (-fmacro-prefix-map), those of
// others as the compiler names them.
SourceFrame FrameOf(const std::source_location& location);

// Returns "A.1/B.2", or "".
const std::string& CurrentScope();
// Returns the innermost frame of the traced program; null outside of any, as in programs in C++.
const SourceFrame* CurrentFrame();
// Returns all frames, innermost first; of a program in C++ the line that the current call is attributed to.
std::vector<SourceFrame> CurrentFrames();
// Closes open scopes at a step. Returns an error that names the first.
absl::Status ResetScopes();

// The reason of an execution.
enum class SyncReason : uint8_t {
  kStep,           // a step marker of the program
  kLoaderStep,     // a step marker of a device loader, at the end of a batch
  kStepTrace,      // the end of a StepTrace
  kValue,          // a tensor is printed or copied to the host
  kItem,           // a number is fetched without materializing the graph
  kRegionPending,  // a compiled region begins and runs pending nodes
  kRegion,         // a compiled region ends
  kCaptureInputs,  // a captured function is called and runs pending nodes
  kCapture,        // a captured function was traced
  kReplay,         // a captured function is replayed
  kTool,           // a tool prints, compares or saves values that the program did not read
};
// Returns the reason as in PyTorch/XLA's analysis: "user torch_xla.sync".
std::string_view Describe(SyncReason cause);
// Returns a word for reports: "step", "item".
std::string_view ToString(SyncReason cause);

// Sets the reason of steps and fetches in a C++ scope.
class ScopedSyncReason {
 public:
  explicit ScopedSyncReason(SyncReason cause);
  ~ScopedSyncReason();
  ScopedSyncReason(const ScopedSyncReason&) = delete;
  ScopedSyncReason& operator=(const ScopedSyncReason&) = delete;

 private:
  std::optional<SyncReason> previous_;
};
// Returns the reason of the innermost ScopedSyncReason, or `cause`.
SyncReason CurrentSyncReason(SyncReason cause);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_SCOPE_H_
