// SPDX-License-Identifier: Apache-2.0
// Inflates gzip data while they are read, within limits on what they become.
#ifndef HLOKIT_IO_FILES_GZIP_INPUT_H_
#define HLOKIT_IO_FILES_GZIP_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace hlokit {

inline constexpr std::string_view kGzipMagic = "\x1f\x8b";

// Data that inflate to more than this may be kMaxInflateRatio times as large as they are. Texts of modules are 5 to 50
// times as large; what is larger are zeros and blanks, of which a few megabytes would fill the memory.
inline constexpr uint64_t kUnlimitedInflateBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxInflateRatio = 100;

// Reads up to `size` bytes; 0: the end.
using ReadBytes = absl::FunctionRef<absl::StatusOr<size_t>(char* to, size_t size)>;

// Returns the data that `first`, which begins with kGzipMagic, and what `read` returns after it inflate to.
// ResourceExhausted: more than `max_bytes`, deflated or inflated. OutOfRange: more than the ratio allows. DataLoss: not
// gzip data, or cut off.
absl::StatusOr<std::string> InflateGzip(std::string_view first, ReadBytes read, uint64_t max_bytes);

}  // namespace hlokit

#endif  // HLOKIT_IO_FILES_GZIP_INPUT_H_
