// SPDX-License-Identifier: Apache-2.0
// The pieces that MLIR bytecode consists of: the inverse of ByteCursor.
#ifndef HLOKIT_PARSER_BYTECODE_BYTE_WRITER_H_
#define HLOKIT_PARSER_BYTECODE_BYTE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hlokit::bytecode {

class ByteWriter {
 public:
  void Byte(uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void VarInt(uint64_t value) {
    int following = 0;
    while (following < 8 && value >> (7 * (following + 1)) != 0) ++following;
    if (following == 8) {
      Byte(0);
    } else {
      value = (value << 1 | 1) << following;
    }
    for (int i = 0; i < (following == 8 ? 8 : following + 1); ++i) Byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void SignedVarInt(int64_t value) { VarInt((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63)); }
  void VarIntWithFlag(uint64_t value, bool flag) { VarInt(value << 1 | static_cast<uint64_t>(flag)); }
  void Bytes(std::string_view bytes) { bytes_.append(bytes); }
  void Section(uint8_t kind, std::string_view data) {
    Byte(kind);
    VarInt(data.size());
    Bytes(data);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_BYTE_WRITER_H_
