// SPDX-License-Identifier: Apache-2.0
// The fields of a serialized message, one after another, whatever the message is.
#ifndef HLOKIT_PARSER_PROTO_WIRE_FORMAT_H_
#define HLOKIT_PARSER_PROTO_WIRE_FORMAT_H_

#include <cstdint>
#include <string_view>

namespace hlokit {

struct WireField {
  enum Kind : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  int number = 0;
  Kind kind = kVarint;
  uint64_t varint = 0;     // kVarint
  std::string_view bytes;  // kBytes: strings, messages, packed lists
  std::string_view whole;  // with its tag
};

// Reads a varint of at most ten bytes from the start of `in`, which it shortens.
inline bool ReadVarint(std::string_view* in, uint64_t* value) {
  *value = 0;
  for (size_t k = 0; k < in->size() && k < 10; ++k) {
    const auto byte = static_cast<unsigned char>((*in)[k]);
    *value |= uint64_t{byte & 0x7fu} << (7 * k);
    if ((byte & 0x80) != 0) continue;
    in->remove_prefix(k + 1);
    return true;
  }
  return false;
}

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // Returns false at the end, and at what is no field: ok() tells which.
  bool Next(WireField* field) {
    if (rest_.empty()) return false;
    const std::string_view start = rest_;
    uint64_t tag;
    ok_ = ReadVarint(&rest_, &tag) && tag >> 3 != 0 && tag >> 3 < (1u << 29);
    if (!ok_) return false;
    field->number = static_cast<int>(tag >> 3);
    field->kind = static_cast<WireField::Kind>(tag & 7);
    uint64_t size = 0;
    switch (tag & 7) {
      case WireField::kVarint:
        ok_ = ReadVarint(&rest_, &field->varint);
        break;
      case WireField::kFixed64:
        size = 8;
        break;
      case WireField::kBytes:
        ok_ = ReadVarint(&rest_, &size);
        break;
      case WireField::kFixed32:
        size = 4;
        break;
      default:  // groups, which XLA's messages do not have
        ok_ = false;
    }
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return false;
    field->bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    field->whole = start.substr(0, start.size() - rest_.size());
    return true;
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_WIRE_FORMAT_H_
