// SPDX-License-Identifier: Apache-2.0
// Where TensorBoard looks for profiles: LOGDIR/plugins/profile/RUN/HOST.xplane.pb, and beside it HOST.trace.json.gz,
// the same events for its older trace viewer and for Perfetto.
#ifndef HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILE_DIRECTORY_H_
#define HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILE_DIRECTORY_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlokit::runtime {

std::filesystem::path ProfileRunDirectory(const std::filesystem::path& logdir, std::string_view run);

// The JSON of a profile (profile_files.h), compressed, of the first `max_events` events. Equal profiles give equal
// bytes.
absl::StatusOr<std::string> CompressedTrace(std::string_view xspace, size_t max_events);

// Writes both files of a host, each whole or not at all. An error if `xspace` is none, or a file cannot be written.
absl::Status WriteProfileDirectory(const std::filesystem::path& folder, const std::string& host,
                                   std::string_view xspace);

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_OBSERVE_PROFILE_DIRECTORY_H_
