// SPDX-License-Identifier: Apache-2.0
// The bytes that all values of an input may have, and what is left of them.
#ifndef HLOKIT_PARSER_TEXT_BYTE_LIMIT_H_
#define HLOKIT_PARSER_TEXT_BYTE_LIMIT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hlokit {

class ByteLimit {
 public:
  // `flag`: that sets the limit in tools; "": none does.
  explicit ByteLimit(int64_t most = int64_t{1} << 32, std::string_view flag = "--max-literal-bytes")
      : most_(most), left_(most), flag_(flag) {}

  int64_t left() const { return left_; }
  // Takes bytes from what is left. Returns false, and takes none, if there are not as many.
  bool Take(uint64_t bytes) {
    if (left_ < 0 || bytes > static_cast<uint64_t>(left_)) return false;
    left_ -= static_cast<int64_t>(bytes);
    return true;
  }

  // Returns "the values have more bytes than the limit of 8 (--max-literal-bytes)".
  std::string Message() const;

 private:
  int64_t most_;
  int64_t left_;
  std::string_view flag_;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_TEXT_BYTE_LIMIT_H_
