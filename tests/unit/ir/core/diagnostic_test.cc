// SPDX-License-Identifier: Apache-2.0
// How diagnostics show the line that they are about.
#include "ir/core/diagnostic.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ir/core/printable_text.h"

namespace hlokit {
namespace {

// Returns the line and the carets below it, for an error at the first `at` of the text.
std::string ExcerptAt(const std::string& text, std::string_view at) {
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kUnexpectedToken, {static_cast<uint32_t>(text.find(at)), static_cast<uint32_t>(at.size())},
             "wrong");
  const std::string shown = RenderText(sink, SourceBuffer("file", text));
  return shown.substr(shown.find('\n') + 1);
}

TEST(DiagnosticTest, CaretsAreUnderTheRange) {
  EXPECT_EQ(ExcerptAt("first\na = add(b)\nlast", "add"), "  a = add(b)\n      ^~~\n");
  EXPECT_EQ(ExcerptAt("\ta =\tadd(b)", "add"), "  \ta =\tadd(b)\n  \t   \t^~~\n");
  EXPECT_EQ(ExcerptAt("a = add(b)\r\nlast", "add"), "  a = add(b)\n      ^~~\n");
}

TEST(DiagnosticTest, BytesThatAreNoTextAreEscaped) {
  EXPECT_EQ(ExcerptAt("a\x1b[31m\x80 = add(b)", "add"), "  a\\x1b[31m\\x80 = add(b)\n                  ^~~\n");
  EXPECT_EQ(ExcerptAt("a = \x07\x7f(b)", "\x07\x7f"), "  a = \\x07\\x7f(b)\n      ^~~~~~~~\n");
  EXPECT_EQ(ExcerptAt(std::string("a\0 = b", 6), "b"), "  a\\x00 = b\n          ^\n");
  EXPECT_EQ(ExcerptAt("\xc2\x9b = b", "b"),
            "  \\xc2\\x9b = b\n             ^\n");  // a control character of U+0080 to U+009F
}

TEST(DiagnosticTest, ACharacterOfSeveralBytesIsItselfAndHasOneColumn) {
  EXPECT_EQ(ExcerptAt("größe = add(b)", "add"), "  größe = add(b)\n          ^~~\n");
  EXPECT_EQ(ExcerptAt("x = größe(b)", "größe"), "  x = größe(b)\n      ^~~~~\n");
}

TEST(DiagnosticTest, LongLinesAreCutBetweenCharacters) {
  std::string line;
  for (int i = 0; i < 100; ++i) line += "€";
  std::string before;  // 81 bytes: the character in which 80 bytes begin is whole
  for (int i = 0; i < 27; ++i) before += "€";
  std::string after;
  for (int i = 0; i < 24; ++i) after += "€";
  EXPECT_EQ(ExcerptAt(line + "wrong" + line, "wrong"),
            "  ..." + before + "wrong" + after + "...\n" + std::string(5 + 27, ' ') + "^~~~~\n");
  const std::string noise(400, '\x01');
  EXPECT_EQ(ExcerptAt(noise + "wrong", "wrong").find('\x01'), std::string::npos);
  EXPECT_LT(ExcerptAt(noise + "wrong", "wrong").size(), 250u);
}

TEST(DiagnosticTest, MessagesAndHintsQuoteTheInputEscaped) {
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kUnexpectedToken, {}, "found `\x1b]0;title\x07`", "write \xff");
  EXPECT_EQ(RenderText(sink, SourceBuffer("file", "")),
            "file: error: found `\\x1b]0;title\\x07`\n  hint: write \\xff\n");
}

TEST(PrintableTextTest, OnlyWholeShortestSequencesAreUtf8) {
  EXPECT_EQ(Printable("a\tb\nc é 中 😀"), "a\tb\nc é 中 😀");
  for (const std::string_view invalid :
       {"\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_EQ(Utf8Length(invalid), 0u);
    EXPECT_EQ(Printable(invalid).substr(0, 2), "\\x");
  }
}

}  // namespace
}  // namespace hlokit
