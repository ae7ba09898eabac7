// SPDX-License-Identifier: Apache-2.0
// Files about the programs of a client, in directories that its options name.
#ifndef HLOKIT_PJRT_CLIENT_PROGRAM_FILE_H_
#define HLOKIT_PJRT_CLIENT_PROGRAM_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "ir/graph/module.h"

namespace hlokit::pjrt {

// Returns "0001.NAME", the name without characters that directories separate.
std::string ProgramFileStem(int64_t number, const Module& module);
// Writes the file whole, or not at all.
absl::Status WriteProgramFile(const std::string& path, std::string_view text);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_PROGRAM_FILE_H_
