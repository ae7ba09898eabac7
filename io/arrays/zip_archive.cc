// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kDirectoryEnd = 0x06054b50;
constexpr uint32_t kZip64End = 0x06064b50, kZip64Locator = 0x07064b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kLocatorBytes = 20, kZip64EndBytes = 56;
constexpr uint64_t kMaxDirectory = uint64_t{64} << 20;
constexpr uint32_t k32 = 0xffffffff;  // in a field of 32 bits: the number is in the fields of 64 bits
constexpr uint16_t k16 = 0xffff;
constexpr uint16_t kZip64Extra = 1, kStored = 0, kDeflated = 8;
constexpr uint16_t kNameIsUtf8 = 1 << 11;  // a flag
constexpr uint64_t kMaxRatio = 1032;       // of deflate

absl::Status NotZip(std::string_view what) { return absl::InvalidArgumentError(StrCat("not a .npz file: ", what)); }

uint64_t LoadBits(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)]);
  return value;
}
uint16_t Load16(std::string_view bytes, size_t at) { return static_cast<uint16_t>(LoadBits(bytes, at, 2)); }
uint32_t Load32(std::string_view bytes, size_t at) { return static_cast<uint32_t>(LoadBits(bytes, at, 4)); }
uint64_t Load64(std::string_view bytes, size_t at) { return LoadBits(bytes, at, 8); }

void Append(std::string* to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = Utf8Length(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// Returns the flags of a member of this name, which says that it is in UTF-8 if that is not evident.
uint16_t FlagsOf(std::string_view name) {
  const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  return ascii ? 0 : kNameIsUtf8;
}

// The CRC-32 of the bytes that gave `crc` followed by these.
uint32_t Crc32(uint32_t crc, std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Inflates bytes of the source, at most `deflated_bytes` from `begin` on, to exactly the size of `contents`. Returns
// false if they are no deflate stream of that size.
absl::StatusOr<bool> Inflate(const ByteSource& source, uint64_t begin, uint64_t deflated_bytes, std::string* contents) {
  constexpr uint64_t kChunk = 1 << 16;
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return absl::ResourceExhaustedError("no memory to inflate");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, &inflateEnd);
  std::string chunk(std::min(deflated_bytes, kChunk), '\0'), end(1, '\0');
  uint64_t done = 0;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      const uint64_t count = std::min<uint64_t>(deflated_bytes, chunk.size());
      if (count == 0) return false;
      if (absl::Status s = source.Read(begin, chunk.data(), count); !s.ok()) return s;
      begin += count;
      deflated_bytes -= count;
      stream.next_in = reinterpret_cast<Bytef*>(chunk.data());
      stream.avail_in = static_cast<uInt>(count);
    }
    // After the last byte a byte more, into which nothing must come.
    const uint64_t room = std::min<uint64_t>(contents->size() - done, 1 << 30);
    stream.next_out = reinterpret_cast<Bytef*>(room > 0 ? contents->data() + done : end.data());
    stream.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
    const uInt offered = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) return false;
    done += offered - stream.avail_out;
    if (done > contents->size()) return false;
  }
  return done == contents->size();
}

struct DirectoryPlace {
  uint64_t begin = 0, bytes = 0, entries = 0;
};

// Finds the directory by the record at the end of the archive, which a comment may follow.
absl::StatusOr<DirectoryPlace> FindDirectory(const ByteSource& source) {
  const uint64_t size = source.size();
  if (size < kEndBytes) return NotZip("it is shorter than a directory");
  std::string tail(std::min<uint64_t>(size, kEndBytes + k16 + kLocatorBytes), '\0');
  const uint64_t tail_begin = size - tail.size();
  if (absl::Status s = source.Read(tail_begin, tail.data(), tail.size()); !s.ok()) return s;
  std::optional<size_t> end;
  for (size_t at = tail.size() - kEndBytes + 1; at-- > 0 && !end;) {
    if (Load32(tail, at) == kDirectoryEnd && at + kEndBytes + Load16(tail, at + 20) == tail.size()) end = at;
  }
  if (!end) return NotZip("it has no directory");
  if (Load16(tail, *end + 4) != 0 && Load16(tail, *end + 4) != k16) return NotZip("it is a part of an archive");
  DirectoryPlace place = {Load32(tail, *end + 16), Load32(tail, *end + 12), Load16(tail, *end + 10)};
  uint64_t limit = tail_begin + *end;  // of the directory
  if (*end >= kLocatorBytes && Load32(tail, *end - kLocatorBytes) == kZip64Locator) {
    const uint64_t record = Load64(tail, *end - kLocatorBytes + 8);
    if (record > limit || limit - record < kZip64EndBytes) return NotZip("its directory is beyond the file");
    std::string text(kZip64EndBytes, '\0');
    if (absl::Status s = source.Read(record, text.data(), text.size()); !s.ok()) return s;
    if (Load32(text, 0) != kZip64End) return NotZip("its directory is beyond the file");
    place = {Load64(text, 48), Load64(text, 40), Load64(text, 32)};
    limit = record;
  }
  if (place.begin > limit || place.bytes > limit - place.begin) return NotZip("its directory is beyond the file");
  if (place.bytes > kMaxDirectory) return NotZip("its directory is too large");
  return place;
}

// Replaces sizes and position of an entry by those of its ZIP64 extra field, if it has one.
bool ReadZip64(std::string_view extra, ZipMember* member) {
  while (extra.size() >= 4) {
    const uint16_t id = Load16(extra, 0), bytes = Load16(extra, 2);
    if (bytes > extra.size() - 4) return false;
    std::string_view field = extra.substr(4, bytes);
    extra.remove_prefix(4 + size_t{bytes});
    if (id != kZip64Extra) continue;
    for (uint64_t* number : {&member->bytes, &member->stored_bytes, &member->header}) {
      if (*number != k32) continue;
      if (field.size() < 8) return false;
      *number = Load64(field, 0);
      field.remove_prefix(8);
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<ZipArchive> ZipArchive::Open(std::shared_ptr<const ByteSource> source) {
  absl::StatusOr<DirectoryPlace> place = FindDirectory(*source);
  if (!place.ok()) return place.status();
  std::string directory(place->bytes, '\0');
  if (absl::Status s = source->Read(place->begin, directory.data(), directory.size()); !s.ok()) return s;
  ZipArchive archive(std::move(source));
  absl::flat_hash_set<std::string> names;
  std::string_view rest = directory;
  while (!rest.empty()) {
    if (rest.size() < kEntryBytes || Load32(rest, 0) != kDirectoryEntry) return NotZip("its directory is damaged");
    const size_t name_bytes = Load16(rest, 28), extra_bytes = Load16(rest, 30), comment_bytes = Load16(rest, 32);
    if (rest.size() - kEntryBytes < name_bytes + extra_bytes + comment_bytes) return NotZip("its directory is damaged");
    ZipMember member;
    member.name = std::string(rest.substr(kEntryBytes, name_bytes));
    member.crc = Load32(rest, 16);
    member.stored_bytes = Load32(rest, 20);
    member.bytes = Load32(rest, 24);
    member.header = Load32(rest, 42);
    if (!ReadZip64(rest.substr(kEntryBytes + name_bytes, extra_bytes), &member)) {
      return NotZip("its directory is damaged");
    }
    const uint16_t flags = Load16(rest, 8), method = Load16(rest, 10);
    rest.remove_prefix(kEntryBytes + name_bytes + extra_bytes + comment_bytes);
    if (!IsUtf8(member.name)) return NotZip("the name of a member is not in UTF-8");
    if ((flags & 1) != 0) return NotZip(StrCat(member.name, " is encrypted"));
    if (method != kStored && method != kDeflated) {
      return NotZip(StrCat(member.name, " is compressed by method ", method, ", which is not supported"));
    }
    member.deflated = method == kDeflated;
    if (member.stored_bytes > archive.source_->size() ||
        (member.deflated ? member.bytes / kMaxRatio > member.stored_bytes : member.bytes != member.stored_bytes)) {
      return NotZip(StrCat(member.name, " has impossible sizes"));
    }
    if (!names.insert(member.name).second) return NotZip(StrCat("it has two members named ", member.name));
    archive.members_.push_back(std::move(member));
  }
  if (archive.members_.size() != place->entries) return NotZip("its directory is damaged");
  return archive;
}

absl::StatusOr<ZipContents> ZipArchive::Contents(size_t number, uint64_t max_inflated_bytes) const {
  const ZipMember& member = members_[number];
  const uint64_t size = source_->size();
  const auto bad = [&] { return NotZip(StrCat(member.name, " is not where the directory says")); };
  if (member.header > size || size - member.header < kLocalBytes) return bad();
  std::string local(kLocalBytes, '\0');
  if (absl::Status s = source_->Read(member.header, local.data(), local.size()); !s.ok()) return s;
  if (Load32(local, 0) != kLocalHeader) return bad();
  const uint64_t begin = member.header + kLocalBytes + Load16(local, 26) + Load16(local, 28);
  if (begin > size || member.stored_bytes > size - begin) return bad();
  const absl::Status damaged = absl::DataLossError(StrCat(member.name, " is damaged"));
  if (!member.deflated) {
    // Of larger members only what is needed is read, and nothing is checked.
    constexpr uint64_t kMaxCheckedBytes = uint64_t{64} << 20;
    if (member.bytes > kMaxCheckedBytes) return ZipContents{source_, begin, member.bytes};
    if (member.bytes != member.stored_bytes) return damaged;
    std::string contents(member.bytes, '\0');
    if (absl::Status s = source_->Read(begin, contents.data(), contents.size()); !s.ok()) return s;
    if (Crc32(0, contents) != member.crc) return damaged;
    return ZipContents{ByteSource::OfMemory(std::move(contents)), 0, member.bytes};
  }
  if (member.bytes > max_inflated_bytes) {
    return absl::ResourceExhaustedError(StrCat(
        member.name, " has ", member.bytes, " bytes when it is inflated; the limit is ", max_inflated_bytes, " bytes"));
  }

  std::string contents(member.bytes, '\0');
  const absl::StatusOr<bool> inflated = Inflate(*source_, begin, member.stored_bytes, &contents);
  if (!inflated.ok()) return inflated.status();
  if (!*inflated || Crc32(0, contents) != member.crc) return damaged;
  return ZipContents{ByteSource::OfMemory(std::move(contents)), 0, member.bytes};
}

void ZipWriter::Write(std::string_view bytes) {
  file_.Write(bytes);
  written_ += bytes.size();
}

void ZipWriter::Add(std::string_view name, std::string_view first, std::string_view second) {
  ZipMember member;
  member.name = std::string(name);
  member.crc = Crc32(Crc32(0, first), second);
  member.bytes = member.stored_bytes = uint64_t{first.size()} + second.size();
  member.header = written_;
  // Sizes are in a ZIP64 field if they need it.
  const bool large = member.bytes >= k32;
  std::string header;
  Append(&header, kLocalHeader, 4);
  Append(&header, large ? 45 : 20, 2);  // version needed
  Append(&header, FlagsOf(name), 2);
  Append(&header, kStored, 2);
  Append(&header, 0, 2);       // time
  Append(&header, 0x0021, 2);  // date: 1980-01-01
  Append(&header, member.crc, 4);
  Append(&header, large ? k32 : member.bytes, 4);
  Append(&header, large ? k32 : member.bytes, 4);
  Append(&header, name.size(), 2);
  Append(&header, large ? 20 : 0, 2);
  header += name;
  if (large) {
    Append(&header, kZip64Extra, 2);
    Append(&header, 16, 2);
    Append(&header, member.bytes, 8);
    Append(&header, member.bytes, 8);
  }
  Write(header);
  Write(first);
  Write(second);
  members_.push_back(std::move(member));
}

void ZipWriter::Finish() {
  const uint64_t begin = written_;
  for (const ZipMember& member : members_) {
    std::string extra;
    for (uint64_t number : {member.bytes, member.bytes, member.header}) {
      if (number >= k32) Append(&extra, number, 8);
    }
    std::string entry;
    Append(&entry, kDirectoryEntry, 4);
    Append(&entry, 45, 2);                       // version made by
    Append(&entry, extra.empty() ? 20 : 45, 2);  // version needed
    Append(&entry, FlagsOf(member.name), 2);
    Append(&entry, kStored, 2);
    Append(&entry, 0, 2);
    Append(&entry, 0x0021, 2);
    Append(&entry, member.crc, 4);
    Append(&entry, std::min<uint64_t>(member.bytes, k32), 4);
    Append(&entry, std::min<uint64_t>(member.bytes, k32), 4);
    Append(&entry, member.name.size(), 2);
    Append(&entry, extra.empty() ? 0 : extra.size() + 4, 2);
    Append(&entry, 0, 2);  // comment
    Append(&entry, 0, 2);  // disk
    Append(&entry, 0, 2);  // attributes
    Append(&entry, 0, 4);
    Append(&entry, std::min<uint64_t>(member.header, k32), 4);
    entry += member.name;
    if (!extra.empty()) {
      Append(&entry, kZip64Extra, 2);
      Append(&entry, extra.size(), 2);
      entry += extra;
    }
    Write(entry);
  }
  const uint64_t bytes = written_ - begin, count = members_.size();
  std::string end;
  if (begin >= k32 || bytes >= k32 || count >= k16) {
    const uint64_t record = written_;
    Append(&end, kZip64End, 4);
    Append(&end, kZip64EndBytes - 12, 8);
    Append(&end, 45, 2);
    Append(&end, 45, 2);
    Append(&end, 0, 4);
    Append(&end, 0, 4);
    Append(&end, count, 8);
    Append(&end, count, 8);
    Append(&end, bytes, 8);
    Append(&end, begin, 8);
    Append(&end, kZip64Locator, 4);
    Append(&end, 0, 4);
    Append(&end, record, 8);
    Append(&end, 1, 4);
  }
  Append(&end, kDirectoryEnd, 4);
  Append(&end, 0, 4);
  Append(&end, std::min<uint64_t>(count, k16), 2);
  Append(&end, std::min<uint64_t>(count, k16), 2);
  Append(&end, std::min<uint64_t>(bytes, k32), 4);
  Append(&end, std::min<uint64_t>(begin, k32), 4);
  Append(&end, 0, 2);
  Write(end);
}

}  // namespace hlokit::interp
