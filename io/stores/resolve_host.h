// SPDX-License-Identifier: Apache-2.0
// Names of hosts, resolved within a time.
#ifndef HLOKIT_IO_STORES_RESOLVE_HOST_H_
#define HLOKIT_IO_STORES_RESOLVE_HOST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hlokit {

// Returns the numeric addresses of a host, at least one, those of IPv4 first; of a numeric address, itself. Waits for
// name servers at most `timeout_ms` milliseconds; with 0 as long as the system does. Unavailable: there is no answer,
// or none in time.
absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host, int64_t timeout_ms);

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_RESOLVE_HOST_H_
