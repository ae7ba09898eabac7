// SPDX-License-Identifier: Apache-2.0
// Reads messages that XLA splits into the records of a Riegeli file (--xla_dump_hlo_as_riegeli).
#ifndef HLOKIT_IO_FILES_RIEGELI_INPUT_H_
#define HLOKIT_IO_FILES_RIEGELI_INPUT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit {

// The first bytes of a file: a hash and the fields of its first block and chunk, which are the same for all files.
inline constexpr std::string_view kRiegeliMagic = "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f";

// Returns the message: the first record says how the others make it, each a part that is merged. Chunks are simple
// ones, uncompressed or compressed with Snappy, as XLA writes them. ResourceExhausted: more than `max_bytes`. DataLoss:
// cut off, or sizes that contradict each other; hashes are not checked. Unimplemented: other chunks, compressions and
// records.
absl::StatusOr<std::string> ReadSplitProto(std::string_view data, uint64_t max_bytes);

}  // namespace hlokit

#endif  // HLOKIT_IO_FILES_RIEGELI_INPUT_H_
