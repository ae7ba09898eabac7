// SPDX-License-Identifier: Apache-2.0
#include "ir/text/metadata_text.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace hlokit {
namespace {

std::string Quoted(std::string_view s) {
  std::string text;
  TextWriter out(&text);
  PrintQuoted(out, s);
  out.Flush();
  return text;
}

TEST(PrintQuoted, EscapesAsC) {
  EXPECT_EQ(Quoted(""), R"("")");
  EXPECT_EQ(Quoted("plain text that is longer than eight"), R"("plain text that is longer than eight")");
  EXPECT_EQ(Quoted("a\"b\\c'd\ne\rf\tg"), R"("a\"b\\c\'d\ne\rf\tg")");
  EXPECT_EQ(Quoted(std::string_view("\0\x01\x7f\xc3\xa9", 5)), R"("\000\001\177\303\251")");
}

// Every character at every position of a long and a short string.
TEST(PrintQuoted, AgreesWithAbseil) {
  for (int c = 0; c < 256; ++c) {
    for (const size_t size : {size_t{3}, size_t{8}, size_t{21}}) {
      for (size_t at = 0; at < size; ++at) {
        std::string s(size, 'x');
        s[at] = static_cast<char>(c);
        ASSERT_EQ(Quoted(s), "\"" + absl::CEscape(s) + "\"") << c << " at " << at;
      }
    }
  }
}

TEST(PrintMetadata, AllFieldsInOrder) {
  Context context;
  Metadata m;
  m.op_type = context.strings.Intern("a");
  m.op_name = context.strings.Intern("b\"");
  m.source_file = context.strings.Intern("c");
  m.source_line = 1;
  m.source_end_line = 2;
  m.source_column = 3;
  m.source_end_column = 4;
  m.profile_types = context.lists.Intern({1, 2});
  m.deduplicated_name = context.strings.Intern("d");
  m.scheduling_name = context.strings.Intern("e");
  m.stack_frame_id = 5;
  m.payload = context.strings.Intern("f");
  const MetadataId id = context.metadata.Intern(m);
  std::string text;
  TextWriter out(&text);
  PrintMetadata(out, context, id, /*only_op_name=*/false);
  out << '\n';
  PrintMetadata(out, context, id, /*only_op_name=*/true);
  out << '\n';
  m = {};
  m.source_line = 7;
  PrintMetadata(out, context, context.metadata.Intern(m), /*only_op_name=*/true);
  out.Flush();
  EXPECT_EQ(text,
            R"({op_type="a" op_name="b\"" source_file="c" source_line=1 source_end_line=2 source_column=3 )"
            R"(source_end_column=4 profile_type={1,2} deduplicated_name="d" scheduling_name="e" stack_frame_id=5 )"
            "metadata_payload=\"f\"}\n{op_name=\"b\\\"\"}\n{}");
}

}  // namespace
}  // namespace hlokit
