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

// Reads a varint of at most ten bytes from `p`, which it moves behind it.
inline bool ReadVarint(const char** p, const char* end, uint64_t* value) {
  const char* at = *p;
  if (at != end && static_cast<unsigned char>(*at) < 0x80) {  // most have one byte
    *value = static_cast<unsigned char>(*at);
    *p = at + 1;
    return true;
  }
  *value = 0;
  for (int shift = 0; at != end && shift < 70; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) != 0) continue;
    *p = at;
    return true;
  }
  return false;
}

// From the start of `in`, which it shortens.
inline bool ReadVarint(std::string_view* in, uint64_t* value) {
  const char* p = in->data();
  if (!ReadVarint(&p, in->data() + in->size(), value)) return false;
  in->remove_prefix(static_cast<size_t>(p - in->data()));
  return true;
}

class WireReader {
 public:
  explicit WireReader(std::string_view message) : p_(message.data()), end_(message.data() + message.size()) {}

  // Returns false at the end, and at what is no field: ok() tells which.
  bool Next(WireField* field) {
    if (p_ == end_) return false;
    const char* const start = p_;
    uint64_t tag;
    ok_ = ReadVarint(&p_, end_, &tag) && tag >> 3 != 0 && tag >> 3 < (1u << 29);
    if (!ok_) return false;
    field->number = static_cast<int>(tag >> 3);
    field->kind = static_cast<WireField::Kind>(tag & 7);
    uint64_t size = 0;
    switch (tag & 7) {
      case WireField::kVarint:
        ok_ = ReadVarint(&p_, end_, &field->varint);
        break;
      case WireField::kFixed64:
        size = 8;
        break;
      case WireField::kBytes:
        ok_ = ReadVarint(&p_, end_, &size);
        break;
      case WireField::kFixed32:
        size = 4;
        break;
      default:  // groups, which XLA's messages do not have
        ok_ = false;
    }
    ok_ = ok_ && size <= static_cast<uint64_t>(end_ - p_);
    if (!ok_) return false;
    field->bytes = {p_, static_cast<size_t>(size)};
    p_ += size;
    field->whole = {start, static_cast<size_t>(p_ - start)};
    return true;
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return {p_, static_cast<size_t>(end_ - p_)}; }

 private:
  const char* p_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace hlokit

#endif  // HLOKIT_PARSER_PROTO_WIRE_FORMAT_H_
