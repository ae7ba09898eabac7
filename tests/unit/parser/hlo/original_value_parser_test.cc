// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/original_value_parser.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/text/original_value.h"

namespace hlokit {
namespace {

class OriginalValueParserTest : public ::testing::Test {
 protected:
  std::string Outcome(bool ok, TextCursor& in, const std::string& printed) {
    if (!ok) return sink_.has_errors() ? "error: " + sink_.diagnostics()[0].message : "no diagnostic";
    EXPECT_TRUE(in.AtEnd());
    return printed;
  }
  std::string Value(const std::string& text) {
    sink_ = DiagnosticSink();
    TextCursor in(text, &sink_);
    ListId id;
    const bool ok = ParseOriginalValue(in, &context_, &id);
    std::string printed;
    if (ok) {
      EXPECT_EQ(EncodeOriginalValue(&context_, DecodeOriginalValue(context_, id)), id);
      TextWriter out(&printed);
      PrintOriginalValue(out, context_, id);
    }
    return Outcome(ok, in, printed);
  }
  std::string Table(const std::string& text, const KeepModuleText& keep = nullptr) {
    sink_ = DiagnosticSink();
    TextCursor in(text, &sink_);
    std::vector<OriginRecoveryEntry> table;
    const bool ok = ParseOriginRecoveryTable(in, &context_, keep, &table);
    std::string printed;
    if (ok) {
      TextWriter out(&printed);
      PrintOriginRecoveryTable(out, context_, table);
    }
    return Outcome(ok, in, printed);
  }
  std::string Debug(const std::string& text) {
    sink_ = DiagnosticSink();
    TextCursor in(text, &sink_);
    std::vector<DebugAttribute> attributes;
    const bool ok = ParseDebugAttributes(in, &context_, &attributes);
    std::string printed;
    if (ok) {
      TextWriter out(&printed);
      PrintDebugAttributes(out, context_, attributes);
    }
    return Outcome(ok, in, printed);
  }

  Context context_;
  DiagnosticSink sink_;
};

TEST_F(OriginalValueParserTest, Values) {
  for (const char* text : {R"({{"a"}})", R"({{"p0_orig" {1,0}}})", R"({({"a"}, {"b"})})", R"({(({}, {"v2"}), {"v3"})})",
                           R"({({"a"})})", "{()}", "{((), ({\"a\"}, ()))}", "{[synthetic_call]}", "{{}}"}) {
    EXPECT_EQ(Value(text), text);
  }
  EXPECT_EQ(Value("{ ( {\"a\"},{ \"b\" { 1 } } ) }"), R"({({"a"}, {"b" {1}})})");
  EXPECT_EQ(Value("{{\"\" {3}}}"), "{{}}");
}

TEST_F(OriginalValueParserTest, DeepNests) {
  const size_t depth = 200000;
  const std::string text = "{" + std::string(depth, '(') + "{\"a\"}" + std::string(depth, ')') + "}";
  EXPECT_EQ(Value(text), text);
  EXPECT_NE(Value("{" + std::string(depth, '(')).find("error"), std::string::npos);
}

TEST_F(OriginalValueParserTest, ValueErrors) {
  for (const char* text : {"{}", "{(}", "{)}", "{({\"a\"},)}", "{({\"a\"} {\"b\"})}", "{{\"a\"}, {\"b\"}}",
                           "{{\"a\" {x}}}", "{[synthetic]}", "{{a}}", "{{\"a\"}", "{({\"a\"}", ""}) {
    EXPECT_EQ(Value(text).substr(0, 6), "error:") << text;
  }
}

TEST_F(OriginalValueParserTest, RecoveryTable) {
  const std::string text = R"({
    {"b"}: {"b0" {1}}, "module \"one\""
    {"a"} : {"a0"} {"b"} : {"ignored"}
  })";
  EXPECT_EQ(Table(text), R"({
  {"a"} : {"a0"}
  {"b"} : {"b0" {1}},
  "
    module \"one\"

  "
}
)");
  std::string seen;
  EXPECT_NE(Table(text,
                  [&seen](std::string* module, SourceRange) {
                    seen = *module;
                    *module = "replaced\n\n";
                    return true;
                  })
                .find("    replaced\n\n\n  \"\n"),
            std::string::npos);
  EXPECT_EQ(seen, "module \"one\"");
  EXPECT_EQ(Table("{ {\"a\"} {\"b\"} }").substr(0, 6), "error:");
  EXPECT_EQ(Table("{ {} : {\"b\"} }"), "error: missing name of an original array");
}

TEST_F(OriginalValueParserTest, DebugAttributes) {
  EXPECT_EQ(Debug(R"({ {"c2"}:({log_mode=default,callback_id=1,op_id=0,partitioned=false}),
                       {"r" {1}}:({callback_id=1,op_id=1,partitioned=true},{log_mode=fusion_debugger}) })"),
            R"({
  {"c2"}:({log_mode=default,callback_id=1}),
  {"r" {1}}:({callback_id=1,partitioned=true,op_id=1},{log_mode=fusion_debugger})
})");
  EXPECT_EQ(Debug("{ {\"constant\"}:({log_mode=invalid_mode}) }"),
            "error: expected log mode default or fusion_debugger");
  EXPECT_EQ(Debug("{ {\"constant\"}:({logmode=default}) }"), "error: unknown debug attribute `logmode`");
  EXPECT_EQ(Debug("{ {\"constant\"}:{log_mode=default} }").substr(0, 6), "error:");
}

}  // namespace
}  // namespace hlokit
