// SPDX-License-Identifier: Apache-2.0
#include "ir/text/metadata_text.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hlokit {
namespace {

// 0: no escape; a letter: backslash and that letter; 1: three octal digits.
struct EscapeTable {
  char how[256] = {};
  constexpr EscapeTable() {
    for (int c = 0; c < 256; ++c) how[c] = c < 0x20 || c >= 0x7f ? 1 : 0;
    how[static_cast<int>('\n')] = 'n';
    how[static_cast<int>('\r')] = 'r';
    how[static_cast<int>('\t')] = 't';
    for (char c : {'"', '\'', '\\'}) how[static_cast<int>(c)] = c;
  }
};
constexpr EscapeTable kEscapes;

// Returns the position of the first character at or after `i` that needs an escape. Names are long and plain, so eight
// characters are tested at a time: a byte is marked by its high bit if it is below 0x20, above 0x7e, or one of the
// three characters. (Borrows can mark an extra byte after a marked one, which only costs a closer test.)
size_t SkipPlain(std::string_view s, size_t i) {
  constexpr uint64_t kOnes = 0x0101010101010101u, kHigh = kOnes << 7;
  const auto below = [](uint64_t word, uint64_t bound) { return word - kOnes * bound; };
  const auto equal = [below](uint64_t word, char c) {
    return below(word ^ (kOnes * static_cast<unsigned char>(c)), 1);
  };
  for (; i + 8 <= s.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, s.data() + i, 8);
    const uint64_t marks =
        below(word, 0x20) | equal(word, '"') | equal(word, '\'') | equal(word, '\\') | equal(word, '\x7f') | word;
    if ((marks & kHigh) != 0) break;
  }
  while (i < s.size() && kEscapes.how[static_cast<unsigned char>(s[i])] == 0) ++i;
  return i;
}

}  // namespace

void PrintQuoted(TextWriter& out, std::string_view s) {
  out << '"';
  size_t plain = 0;  // start of the run that needs no escape
  for (size_t i = SkipPlain(s, 0); i < s.size(); i = SkipPlain(s, i + 1)) {
    const auto c = static_cast<unsigned char>(s[i]);
    const char how = kEscapes.how[c];
    out.Append(s.substr(plain, i - plain));
    plain = i + 1;
    out << '\\';
    if (how != 1) {
      out << how;
    } else {
      out << static_cast<char>('0' + (c >> 6)) << static_cast<char>('0' + ((c >> 3) & 7))
          << static_cast<char>('0' + (c & 7));
    }
  }
  out.Append(s.substr(plain));
  out << '"';
}

void PrintMetadataFields(TextWriter& out, const Context& context, const Metadata& m) {
  std::string_view separator = "";
  const auto quoted = [&](std::string_view name, StringId value) {
    if (!value.valid()) return;
    out << separator << name;
    PrintQuoted(out, context.str(value));
    separator = " ";
  };
  const auto number = [&](std::string_view name, int64_t value) {
    if (value == 0) return;
    out << separator << name << value;
    separator = " ";
  };
  quoted("op_type=", m.op_type);
  quoted("op_name=", m.op_name);
  quoted("source_file=", m.source_file);
  number("source_line=", m.source_line);
  number("source_end_line=", m.source_end_line);
  number("source_column=", m.source_column);
  number("source_end_column=", m.source_end_column);
  if (m.profile_types.valid()) {
    out << separator << "profile_type={";
    std::string_view comma = "";
    for (int64_t type : context.list(m.profile_types)) {
      out << comma << type;
      comma = ",";
    }
    out << '}';
    separator = " ";
  }
  quoted("deduplicated_name=", m.deduplicated_name);
  quoted("scheduling_name=", m.scheduling_name);
  number("stack_frame_id=", m.stack_frame_id);
  quoted("metadata_payload=", m.payload);
  if (m.preserve_layout) out << separator << "preserve_layout=true";
}

void PrintMetadata(TextWriter& out, const Context& context, MetadataId id, bool only_op_name) {
  Metadata metadata = context.metadata[id];
  if (only_op_name) {
    Metadata name;
    name.op_name = metadata.op_name;
    metadata = name;
  }
  out << '{';
  PrintMetadataFields(out, context, metadata);
  out << '}';
}

}  // namespace hlokit
