// SPDX-License-Identifier: Apache-2.0
#include "ir/core/expected_diagnostics.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hlokit {
namespace {

// The offset of `at` in the source, for diagnostics.
SourceRange RangeOf(const SourceBuffer& source, std::string_view at) {
  const size_t offset = source.text().find(at);
  EXPECT_NE(offset, std::string_view::npos) << at;
  return {static_cast<uint32_t>(offset), static_cast<uint32_t>(at.size())};
}

std::string Compare(const DiagnosticSink& sink, const SourceBuffer& source) {
  return CompareWithExpected(sink, source, 0, source.text().size());
}

TEST(ExpectedDiagnosticsTest, NothingExpectedNothingReported) {
  EXPECT_EQ(Compare(DiagnosticSink(), SourceBuffer("f", "a\nb // a comment\n")), "");
}

TEST(ExpectedDiagnosticsTest, UnexpectedErrorIsReportedWithItsLine) {
  const SourceBuffer source("f", "a\nb\n");
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "b"), "no such operand");
  EXPECT_EQ(Compare(sink, source), "f:2: unexpected error: no such operand [undefined-operand]\n");
}

TEST(ExpectedDiagnosticsTest, UnmetExpectationIsReportedAtItsComment) {
  const SourceBuffer source("f", "a\nb // expected-error@-1 {{lost}}\n");
  EXPECT_EQ(Compare(DiagnosticSink(), source), "f:2: expected error \"lost\" at line 1 was not produced\n");
}

TEST(ExpectedDiagnosticsTest, TextMatchesPartOfTheMessageOrTheKind) {
  const SourceBuffer source("f", "a // expected-error {{such op}}\nb // expected-error {{[undefined-operand]}}\n");
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "a"), "no such operand");
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "b"), "no such operand");
  EXPECT_EQ(Compare(sink, source), "");
}

TEST(ExpectedDiagnosticsTest, TextMustMatch) {
  const SourceBuffer source("f", "a // expected-error {{other}}\n");
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "a"), "no such operand");
  EXPECT_EQ(Compare(sink, source),
            "f:1: unexpected error: no such operand [undefined-operand]\n"
            "f:1: expected error \"other\" at line 1 was not produced\n");
}

TEST(ExpectedDiagnosticsTest, LinesAreRelativeToTheComment) {
  const SourceBuffer source("f",
                            "one\n"
                            "two   // expected-error@above {{m1}}\n"
                            "three // expected-error@below {{m4}}\n"
                            "four  // expected-error@+2 {{m6}}\n"
                            "five  // expected-error@-2 {{m3}}\n"
                            "six\n");
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "one"), "m1");
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "four"), "m4");
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "six"), "m6");
  sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "three"), "m3");
  EXPECT_EQ(Compare(sink, source), "");
}

TEST(ExpectedDiagnosticsTest, SeverityMustMatch) {
  const SourceBuffer source("f", "a // expected-warning {{m}}\nb // expected-error {{m}}\n");
  DiagnosticSink sink;
  sink.Warning(DiagnosticKind::kUndefinedOperand, RangeOf(source, "a"), "m");
  sink.Warning(DiagnosticKind::kUndefinedOperand, RangeOf(source, "b"), "m");
  EXPECT_EQ(Compare(sink, source),
            "f:2: unexpected warning: m [undefined-operand]\n"
            "f:2: expected error \"m\" at line 2 was not produced\n");
}

TEST(ExpectedDiagnosticsTest, EachExpectationIsMetOnce) {
  const SourceBuffer source("f", "a // expected-error {{m}} expected-error {{m}}\n");
  DiagnosticSink sink;
  for (int k = 0; k < 3; ++k) sink.Error(DiagnosticKind::kUndefinedOperand, RangeOf(source, "a"), "m");
  EXPECT_EQ(Compare(sink, source), "f:1: unexpected error: m [undefined-operand]\n");
}

TEST(ExpectedDiagnosticsTest, OnlyCommentsExpect) {
  const SourceBuffer source("f", "expected-error {{m}}\n// expected-error {m}\n// expected-note {{m}}\n");
  EXPECT_EQ(Compare(DiagnosticSink(), source), "");
}

TEST(ExpectedDiagnosticsTest, ExpectationsOutsideOfThePartDoNotCount) {
  const SourceBuffer source("f",
                            "// expected-error {{first}}\n// expected-error {{second}}\n// expected-error {{third}}\n");
  const size_t begin = source.text().find("// expected-error {{second}}");
  const size_t end = source.text().find("// expected-error {{third}}");
  EXPECT_EQ(CompareWithExpected(DiagnosticSink(), source, begin, end),
            "f:2: expected error \"second\" at line 2 was not produced\n");
}

TEST(ExpectedDiagnosticsTest, DiagnosticsWithoutLocationAreOfLineZero) {
  const SourceBuffer source("f", "// expected-error@-1 {{m}}\n");
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kUndefinedOperand, {}, "m");
  EXPECT_EQ(Compare(sink, source), "");
}

}  // namespace
}  // namespace hlokit
