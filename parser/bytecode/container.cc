// SPDX-License-Identifier: Apache-2.0
#include "parser/bytecode/container.h"

#include <array>
#include <optional>

#include "ir/core/str_cat.h"

namespace hlokit::bytecode {
namespace {

constexpr std::string_view kMagic = "ML\xefR";

enum Section : int {
  kStrings = 0,
  kDialects = 1,
  kAttributesAndTypes = 2,
  kAttributeAndTypeSizes = 3,
  kIr = kIrSection,
  kResources = 5,
  kResourceSizes = 6,
  kDialectVersion = 7,
  kPropertyBytes = 8,
  kSectionCount = 9,
};
constexpr std::string_view kSectionNames[] = {"strings",   "dialects",       "attributes and types", "sizes",     "IR",
                                              "resources", "resource sizes", "dialect version",      "properties"};

class ContainerReader {
 public:
  explicit ContainerReader(std::string_view file) : in_({file, 0}) {}

  absl::StatusOr<Container> Run();

 private:
  absl::Status ReadStrings(ByteSpan data);
  absl::Status ReadDialects(ByteSpan data);
  absl::Status ReadEntries(ByteSpan data, ByteSpan sizes);
  absl::Status ReadProperties(ByteSpan data);
  absl::Status CheckResources(ByteSpan sizes);
  // Reads an index of a string.
  std::string_view String(ByteCursor* in) { return StringAt(in, in->VarInt()); }
  std::string_view StringAt(ByteCursor* in, uint64_t index) {
    if (index < file_.strings.size()) return file_.strings[static_cast<size_t>(index)];
    in->Fail(StrCat("there is no string ", index));
    return {};
  }
  std::string_view Dialect(ByteCursor* in) {
    const uint64_t index = in->VarInt();
    if (index < dialects_.size()) return dialects_[static_cast<size_t>(index)];
    in->Fail(StrCat("there is no dialect ", index));
    return {};
  }

  ByteCursor in_;
  Container file_;
  std::vector<std::string_view> dialects_;
};

absl::StatusOr<Container> ContainerReader::Run() {
  in_.Bytes(kMagic.size());
  file_.version = in_.VarInt();
  file_.producer = in_.ZeroTerminated();
  if (!in_.ok()) return in_.status();
  if (file_.version > kNewestFormat) {
    return ErrorAt(kMagic.size(), StrCat("version ", file_.version, " of the bytecode format is newer than ",
                                         kNewestFormat, ", the newest that is read; the file is by ", file_.producer));
  }
  std::array<std::optional<ByteSpan>, kSectionCount> sections;
  while (!in_.AtEnd()) {
    const size_t start = in_.offset();
    int kind = 0;
    const ByteSpan data = ReadSection(&in_, &kind);
    if (!in_.ok()) return in_.status();
    std::optional<ByteSpan>& section = sections[static_cast<size_t>(kind)];
    if (section) return ErrorAt(start, StrCat("a second section of ", kSectionNames[kind]));
    section = data;
  }
  for (int kind : {kStrings, kDialects, kAttributesAndTypes, kAttributeAndTypeSizes, kIr, kPropertyBytes}) {
    if (sections[static_cast<size_t>(kind)] || (kind == kPropertyBytes && file_.version < kProperties)) continue;
    return ErrorAt(in_.offset(), StrCat("there is no section of ", kSectionNames[kind]));
  }
  if (absl::Status status = ReadStrings(*sections[kStrings]); !status.ok()) return status;
  if (absl::Status status = ReadDialects(*sections[kDialects]); !status.ok()) return status;
  const ByteSpan entries = *sections[kAttributesAndTypes];
  if (absl::Status status = ReadEntries(entries, *sections[kAttributeAndTypeSizes]); !status.ok()) return status;
  if (sections[kPropertyBytes]) {
    if (absl::Status status = ReadProperties(*sections[kPropertyBytes]); !status.ok()) return status;
  }
  if (sections[kResourceSizes]) {
    if (absl::Status status = CheckResources(*sections[kResourceSizes]); !status.ok()) return status;
  }
  file_.ir = *sections[kIr];
  return std::move(file_);
}

absl::Status ContainerReader::ReadStrings(ByteSpan data) {
  ByteCursor in(data);
  file_.strings.resize(in.Count());
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < file_.strings.size(); ++i) sizes.push_back(in.VarInt());
  // From the last string to the first; each size counts the zero at the end.
  for (std::string_view& string : file_.strings) {
    const uint64_t size = sizes.back();
    sizes.pop_back();
    if (size == 0) in.Fail("a string without the zero at its end");
    const ByteSpan bytes = in.Bytes(size);
    if (!in.ok()) break;
    string = bytes.bytes.substr(0, bytes.bytes.size() - 1);
  }
  if (!in.AtEnd()) in.Fail("data after the last string");
  return in.status();
}

absl::Status ContainerReader::ReadDialects(ByteSpan data) {
  ByteCursor in(data);
  const size_t count = in.Count();
  for (size_t i = 0; i < count && in.ok(); ++i) {
    bool has_version = false;
    const uint64_t name = file_.version < kDialectVersions ? in.VarInt() : in.VarIntWithFlag(&has_version);
    dialects_.push_back(StringAt(&in, name));
    if (!has_version) continue;
    int kind = 0;
    const size_t start = in.offset();
    ReadSection(&in, &kind);
    if (in.ok() && kind != kDialectVersion) in.FailAt(start, "expected the section of a dialect's version");
  }
  if (file_.version >= kElidedLocations) in.VarInt();  // the number of all names
  while (in.ok() && !in.AtEnd()) {
    const std::string_view dialect = Dialect(&in);
    const size_t names = in.Count();
    for (size_t i = 0; i < names && in.ok(); ++i) {
      bool registered = true;
      const uint64_t name = file_.version < kProperties ? in.VarInt() : in.VarIntWithFlag(&registered);
      file_.operations.push_back({dialect, StringAt(&in, name)});
    }
  }
  return in.status();
}

absl::Status ContainerReader::ReadEntries(ByteSpan data, ByteSpan sizes) {
  ByteCursor in(sizes);
  ByteCursor entries(data);
  const size_t attributes = in.Count();
  const size_t types = in.Count();
  for (auto [list, count] : {std::pair(&file_.attributes, attributes), std::pair(&file_.types, types)}) {
    while (in.ok() && list->size() < count) {
      const size_t start = in.offset();
      const std::string_view dialect = Dialect(&in);
      const size_t group = in.Count();
      if (group > count - list->size()) in.FailAt(start, "more attributes or types than announced");
      for (size_t i = 0; i < group && in.ok(); ++i) {
        bool custom = false;
        const ByteSpan entry = entries.Bytes(in.VarIntWithFlag(&custom));
        if (!entries.ok()) in.FailAt(in.offset(), "the encoding of an attribute or type exceeds its section");
        list->push_back({dialect, custom, entry});
      }
    }
  }
  if (in.ok() && !in.AtEnd()) in.Fail("data after the last attribute or type");
  return in.status();
}

absl::Status ContainerReader::ReadProperties(ByteSpan data) {
  ByteCursor in(data);
  const size_t count = data.bytes.empty() ? 0 : in.Count();
  for (size_t i = 0; i < count && in.ok(); ++i) file_.properties.push_back(in.Bytes(in.VarInt()));
  if (in.ok() && !in.AtEnd()) in.Fail("data after the last properties");
  return in.status();
}

// Artifacts hold their constants in attributes; a resource would be one that was left out.
absl::Status ContainerReader::CheckResources(ByteSpan sizes) {
  ByteCursor in(sizes);
  const size_t external = in.VarInt();
  if (in.ok() && (external != 0 || !in.AtEnd())) in.Fail("resources, which are not read from bytecode");
  return in.status();
}

}  // namespace

ByteSpan ReadSection(ByteCursor* in, int* kind) {
  const size_t start = in->offset();
  const uint8_t head = in->Byte();
  const uint64_t size = in->VarInt();
  *kind = head & 0x7f;
  if ((head & 0x80) != 0) in->Align(in->VarInt());
  if (in->ok() && *kind >= kSectionCount) in->FailAt(start, StrCat("a section of the unknown kind ", *kind));
  return in->Bytes(size);
}

bool IsBytecode(std::string_view bytes) {
  constexpr size_t kUnambiguous = 3;  // no text begins so
  return bytes.size() >= kUnambiguous && bytes.substr(0, kMagic.size()) == kMagic.substr(0, bytes.size());
}

absl::StatusOr<Container> ReadContainer(std::string_view file) { return ContainerReader(file).Run(); }

}  // namespace hlokit::bytecode
