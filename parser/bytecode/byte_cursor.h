// SPDX-License-Identifier: Apache-2.0
// A cursor over bytes of an MLIR bytecode file: https://mlir.llvm.org/docs/BytecodeFormat. The first failure is kept:
// after it every read returns zero or nothing, so that callers check once, at the end of what they read.
#ifndef HLOKIT_PARSER_BYTECODE_BYTE_CURSOR_H_
#define HLOKIT_PARSER_BYTECODE_BYTE_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hlokit::bytecode {

// A part of a file.
struct ByteSpan {
  std::string_view bytes;
  size_t offset = 0;  // of its first byte in the file
};

// Returns an error that names the place in the file.
absl::Status ErrorAt(size_t offset, std::string_view message);

class ByteCursor {
 public:
  explicit ByteCursor(ByteSpan span) : bytes_(span.bytes), begin_(span.offset) {}

  uint8_t Byte();
  // One to nine bytes; the zeros at the end of the first tell how many follow.
  uint64_t VarInt();
  // A VarInt whose lowest bit is the sign.
  int64_t SignedVarInt();
  // A VarInt that counts things of at least one byte each, which follow: larger ones fail here.
  size_t Count();
  // An unsigned VarInt and a flag in its lowest bit.
  uint64_t VarIntWithFlag(bool* flag);
  ByteSpan Bytes(uint64_t size);
  // The bytes up to a zero, which is consumed.
  std::string_view ZeroTerminated();
  // Consumes padding up to the next multiple of a power of two, from the beginning of the file.
  void Align(uint64_t alignment);

  bool AtEnd() const { return at_ == bytes_.size(); }
  size_t remaining() const { return bytes_.size() - at_; }
  size_t offset() const { return begin_ + at_; }
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  void Fail(std::string_view message) { FailAt(offset(), message); }
  void FailAt(size_t offset, std::string_view message);
  // Takes over an error from elsewhere.
  void FailWith(absl::Status status);

 private:
  std::string_view bytes_;
  size_t begin_;
  size_t at_ = 0;
  absl::Status status_;
};

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_BYTE_CURSOR_H_
