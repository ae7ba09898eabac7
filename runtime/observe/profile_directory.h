// SPDX-License-Identifier: Apache-2.0
// Profile directory in TensorBoard's layout: LOGDIR/plugins/profile/RUN/HOST.xplane.pb, and HOST.trace.json.gz with the
// same events for its older trace viewer and for Perfetto.
#ifndef HLOKIT_RUNTIME_OBSERVE_PROFILE_DIRECTORY_H_
#define HLOKIT_RUNTIME_OBSERVE_PROFILE_DIRECTORY_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit::runtime {

std::filesystem::path ProfileRunDirectory(const std::filesystem::path& logdir, std::string_view run);

// Returns the compressed JSON (profile_files.h) of the first `max_events` events. Equal profiles give equal bytes.
absl::StatusOr<std::string> CompressedTrace(std::string_view xspace, size_t max_events);

// Writes both files of a host atomically. Returns an error if `xspace` is invalid, or a file cannot be written.
absl::Status WriteProfileDirectory(const std::filesystem::path& directory, const std::string& host,
                                   std::string_view xspace);

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_OBSERVE_PROFILE_DIRECTORY_H_
