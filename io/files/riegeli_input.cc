// SPDX-License-Identifier: Apache-2.0
#include "io/files/riegeli_input.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

absl::Status Damaged() { return absl::DataLossError("Riegeli data that are damaged or cut off"); }

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t k = bytes.size(); k-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[k]);
  return value;
}

// Takes bytes from the beginning. Once something is missing, nothing is left.
class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}

  bool empty() const { return data_.empty(); }
  bool ok() const { return ok_; }
  std::string_view rest() const { return data_; }

  std::string_view Take(uint64_t size) {
    if (size > data_.size()) {
      ok_ = false;
      data_ = {};
      return {};
    }
    const std::string_view taken = data_.substr(0, size);
    data_.remove_prefix(size);
    return taken;
  }
  uint64_t Number(size_t size) { return LittleEndian(Take(size)); }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t byte = Number(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }

 private:
  std::string_view data_;
  bool ok_ = true;
};

// A field of a message; of XLA's messages none is a group.
struct Field {
  enum Kind : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  uint64_t number = 0, kind = 0;
  std::string_view bytes;  // kBytes
  std::string_view whole;  // with its tag
};

// Takes the next field. Returns false at the end, and if it is damaged: in.ok() tells which.
bool TakeField(Bytes* in, Field* field) {
  if (in->empty()) return false;
  const char* const begin = in->rest().data();
  const uint64_t tag = in->Varint();
  field->number = tag >> 3;
  field->kind = tag & 7;
  field->bytes = {};
  if (field->kind == Field::kVarint) in->Varint();
  if (field->kind == Field::kFixed64) in->Take(sizeof(uint64_t));
  if (field->kind == Field::kFixed32) in->Take(sizeof(uint32_t));
  if (field->kind == Field::kBytes) field->bytes = in->Take(in->Varint());
  field->whole = {begin, in->ok() ? static_cast<size_t>(in->rest().data() - begin) : 0};
  return in->ok();
}

// A raw Snappy stream: its length, then literals and copies of what comes before. False if it is damaged.
bool InflateSnappy(std::string_view data, uint64_t max_bytes, std::string* out) {
  enum Tag : uint8_t { kLiteral, kCopy1, kCopy2, kCopy4 };
  constexpr uint64_t kShortLiterals = 60;  // from this length the tag is followed by the length
  Bytes in(data);
  const uint64_t size = in.Varint();
  if (size > max_bytes) return false;
  out->reserve(std::min<uint64_t>(size, data.size() * 64));
  while (in.ok() && !in.empty()) {
    const uint64_t tag = in.Number(1);
    uint64_t length = (tag >> 2) + 1, offset = 0;
    switch (static_cast<Tag>(tag & 3)) {
      case kLiteral:
        if (length > kShortLiterals) length = in.Number(length - kShortLiterals) + 1;
        if (out->size() + length > size) return false;
        out->append(in.Take(length));
        continue;
      case kCopy1:
        length = 4 + ((tag >> 2) & 7);
        offset = (tag >> 5) << 8 | in.Number(1);
        break;
      case kCopy2:
        offset = in.Number(2);
        break;
      case kCopy4:
        offset = in.Number(4);
        break;
    }
    if (offset == 0 || offset > out->size() || out->size() + length > size) return false;
    for (uint64_t k = 0; k < length; ++k) out->push_back((*out)[out->size() - offset]);
  }
  return in.ok() && out->size() == size;
}

// Chunks are interrupted by the header of a block at each multiple of its size.
std::string WithoutBlockHeaders(std::string_view data) {
  constexpr size_t kBlock = 65536, kHeader = 24;
  std::string out;
  for (size_t at = 0; at < data.size(); at += kBlock) {
    const std::string_view block = data.substr(at, kBlock);
    out.append(block.substr(std::min(kHeader, block.size())));
  }
  return out;
}

// At most `max_bytes`.
absl::StatusOr<std::string> Inflate(char compression, std::string_view data, uint64_t max_bytes) {
  if (compression == '\0') return data.size() <= max_bytes ? absl::StatusOr<std::string>(std::string(data)) : Damaged();
  if (compression != 's') {
    const std::string_view name = compression == 'b' ? "Brotli" : compression == 'z' ? "Zstandard" : "an unknown one";
    return absl::UnimplementedError(StrCat("Riegeli data with the compression ", name, "; XLA writes Snappy"));
  }
  Bytes in(data);
  const uint64_t size = in.Varint();
  if (size > max_bytes) return Damaged();
  std::string out;
  if (!in.ok() || !InflateSnappy(in.rest(), max_bytes, &out) || out.size() != size) return Damaged();
  return out;
}

// Appends the records of a chunk of simple records, `decoded` bytes in all.
absl::Status ReadRecords(std::string_view chunk, uint64_t count, uint64_t decoded, std::vector<std::string>* records) {
  constexpr uint64_t kMaxSizeBytes = 10;  // of a varint
  Bytes in(chunk);
  const char compression = static_cast<char>(in.Number(1));
  const std::string_view packed_sizes = in.Take(in.Varint());
  if (!in.ok()) return Damaged();
  const absl::StatusOr<std::string> sizes = Inflate(compression, packed_sizes, kMaxSizeBytes * count);
  if (!sizes.ok()) return sizes.status();
  const absl::StatusOr<std::string> values = Inflate(compression, in.rest(), decoded);
  if (!values.ok()) return values.status();
  Bytes size(*sizes), value(*values);
  if (count > sizes->size() || values->size() != decoded) return Damaged();
  for (uint64_t k = 0; k < count; ++k) records->emplace_back(value.Take(size.Varint()));
  return size.ok() && value.ok() ? absl::OkStatus() : Damaged();
}

absl::StatusOr<std::vector<std::string>> AllRecords(std::string_view data, uint64_t max_bytes) {
  const std::string chunks = WithoutBlockHeaders(data);
  std::vector<std::string> records;
  uint64_t bytes = 0;
  Bytes in(chunks);
  while (!in.empty()) {
    constexpr size_t kHash = 8, kSize = 8, kCount = 7;
    in.Take(kHash);
    const uint64_t size = in.Number(kSize);
    in.Take(kHash);
    const char type = static_cast<char>(in.Number(1));
    const uint64_t count = in.Number(kCount);
    const uint64_t decoded = in.Number(kSize);
    const std::string_view chunk = in.Take(size);
    if (!in.ok()) return Damaged();
    if (type == 's' || type == 'm' || type == 'p') continue;  // signature, metadata, padding
    if (type != 'r') return absl::UnimplementedError("Riegeli data with chunks other than simple ones");
    // Records are strings, which take memory even if they are empty.
    const uint64_t limit = max_bytes - bytes;
    if (decoded > limit || count > (limit - decoded) / sizeof(std::string)) {
      return absl::ResourceExhaustedError(StrCat("more than ", max_bytes, " bytes"));
    }
    bytes += decoded + count * sizeof(std::string);
    if (const absl::Status status = ReadRecords(chunk, count, decoded, &records); !status.ok()) return status;
  }
  return records;
}

// The first record: the name of the message, and how each of the others becomes part of it.
absl::Status CheckManifest(std::string_view manifest, size_t parts) {
  constexpr uint64_t kParts = 2, kMerge = 2;
  Bytes in(manifest);
  Field field;
  size_t merged = 0;
  while (TakeField(&in, &field)) {
    if (field.number != kParts || field.kind != Field::kBytes) continue;
    Bytes part(field.bytes);
    Field kind;
    if (!TakeField(&part, &kind) || kind.number != kMerge || kind.kind != Field::kBytes || !kind.bytes.empty()) {
      return absl::UnimplementedError("a Riegeli file whose records are not parts to merge, as XLA writes them");
    }
    ++merged;
  }
  return in.ok() && merged == parts ? absl::OkStatus() : Damaged();
}

void AppendBytesField(uint64_t number, std::string_view bytes, std::string* out) {
  const auto varint = [out](uint64_t value) {
    for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
    out->push_back(static_cast<char>(value));
  };
  varint(number << 3 | Field::kBytes);
  varint(bytes.size());
  out->append(bytes);
}

}  // namespace

absl::StatusOr<std::string> ReadSplitProto(std::string_view data, uint64_t max_bytes) {
  absl::StatusOr<std::vector<std::string>> records = AllRecords(data, max_bytes);
  if (!records.ok()) return records.status();
  if (records->empty()) return Damaged();
  if (const absl::Status status = CheckManifest(records->front(), records->size() - 1); !status.ok()) return status;
  // The parts of one message are bytes in a row, but readers expect the module, field 1, in one piece.
  constexpr uint64_t kModule = 1;
  std::string module, others;
  for (size_t k = 1; k < records->size(); ++k) {
    Bytes in((*records)[k]);
    Field field;
    while (TakeField(&in, &field)) {
      if (field.number == kModule && field.kind == Field::kBytes) {
        module.append(field.bytes);
      } else {
        others.append(field.whole);
      }
    }
    if (!in.ok()) return Damaged();
    (*records)[k].clear();
  }
  std::string message;
  message.reserve(module.size() + others.size() + 16);
  AppendBytesField(kModule, module, &message);
  message.append(others);
  return message;
}

}  // namespace hlokit
