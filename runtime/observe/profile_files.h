// SPDX-License-Identifier: Apache-2.0
// Converts an XSpace to human-readable text and to JSON for Perfetto and chrome://tracing.
#ifndef HLOKIT_RUNTIME_OBSERVE_PROFILE_FILES_H_
#define HLOKIT_RUNTIME_OBSERVE_PROFILE_FILES_H_

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

// Parses an XSpace. Returns an error if the bytes are not a profile.
absl::Status ParseProfile(std::string_view xspace, tensorflow::profiler::XSpace* space);

// Prints planes, their lines, and the `top` events of each line with the longest total time. Returns an error if
// `xspace` is invalid.
absl::Status PrintProfile(std::string_view xspace, size_t top, TextWriter* out);

// Writes the events of all lines as one JSON object, in microseconds since the profile began. Planes become processes,
// lines threads; a flow joins a call and its execution. Beyond `max_events` the latest events are omitted.
absl::Status WriteProfileTrace(std::string_view xspace, size_t max_events, TextWriter* out);

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_OBSERVE_PROFILE_FILES_H_
