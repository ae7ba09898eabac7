// SPDX-License-Identifier: Apache-2.0
// Profiles in other forms: an XSpace as text for people and as JSON for Perfetto and chrome://tracing.
#ifndef HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILE_FILES_H_
#define HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILE_FILES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/core/text_writer.h"

namespace tensorflow::profiler {
class XSpace;
}

namespace hlokit::runtime {

// An error if the bytes are no profile.
absl::Status ParseProfile(std::string_view xspace, tensorflow::profiler::XSpace* space);

// Planes, their lines, and the `top` events of each line that take longest together. An error if `xspace` is none.
absl::Status PrintProfile(std::string_view xspace, size_t top, TextWriter* out);

// The events of all lines as one JSON object; times in microseconds since the profile began. A plane is a process, a
// line a thread, a call and its execution are joined by a flow. Beyond `max_events`, those that begin last are left
// out.
absl::Status WriteProfileTrace(std::string_view xspace, size_t max_events, TextWriter* out);

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILE_FILES_H_
