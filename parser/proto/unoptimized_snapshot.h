// SPDX-License-Identifier: Apache-2.0
// The file form of an HloUnoptimizedSnapshot: the length of the message as a varint, the message with the sizes of the
// arguments, and the arguments one after another in their raw form, so that they may have more than 2 GiB in total.
#ifndef HLOKIT_PARSER_PROTO_UNOPTIMIZED_SNAPSHOT_H_
#define HLOKIT_PARSER_PROTO_UNOPTIMIZED_SNAPSHOT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parser/proto/hlo.pb.h"

namespace hlokit {

// Reads a file into a message with the arguments in it.
absl::Status ReadUnoptimizedSnapshot(std::string_view file, xla::HloUnoptimizedSnapshot* snapshot);
// Returns the file of a message with the arguments in it.
absl::StatusOr<std::string> WriteUnoptimizedSnapshot(const xla::HloUnoptimizedSnapshot& snapshot);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_UNOPTIMIZED_SNAPSHOT_H_
