// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/metadata_parser.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ir/text/printer.h"

namespace hlokit {
namespace {

class MetadataParserTest : public ::testing::Test {
 protected:
  std::string Parse(const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));  // strings point into it
    sink_ = DiagnosticSink();
    TextCursor in(*texts_.back(), &sink_);
    id_ = MetadataId();
    if (!ParseMetadata(in, &context_, &id_)) {
      return sink_.has_errors() ? "error: " + sink_.diagnostics()[0].message : "no diagnostic";
    }
    EXPECT_TRUE(in.AtEnd()) << text;
    if (!id_.valid()) return "none";
    std::string printed;
    TextWriter out(&printed);
    PrintMetadata(out, context_, id_, /*only_op_name=*/false);
    out.Flush();
    return printed;
  }

  std::vector<std::unique_ptr<std::string>> texts_;
  Context context_;
  DiagnosticSink sink_;
  MetadataId id_;
};

TEST_F(MetadataParserTest, Usual) {
  for (const char* text :
       {"{op_name=\"jit(f)/add\"}", "{op_name=\"jit(f)/add\" stack_frame_id=34}", "{stack_frame_id=3}",
        "{op_name=\"x\" stack_frame_id=2147483647}", "{op_name=\"a\\\"b\\\\\\n\" stack_frame_id=1}",
        "{op_type=\"a\" op_name=\"b\" source_file=\"c\" source_line=1 source_end_line=2 source_column=3 "
        "source_end_column=4 profile_type={1,3} deduplicated_name=\"d\" scheduling_name=\"e\" stack_frame_id=5 "
        "metadata_payload=\"f\"}"}) {
    EXPECT_EQ(Parse(text), text);
  }
}

TEST_F(MetadataParserTest, TheFastAndTheSlowWayAgree) {
  Parse("{op_name=\"jit(f)/add\" stack_frame_id=34}");
  const MetadataId fast = id_;
  for (const char* text :
       {"{ op_name=\"jit(f)/add\" stack_frame_id=34}", "{op_name=\"jit(f)/add\", stack_frame_id=34 }",
        "{stack_frame_id=34 op_name=\"jit(f)\\057add\"}", "{op_name=\"jit(f)/add\"\n stack_frame_id=034}",
        "{op_name=\"jit(f)/add\" stack_frame_id=34 op_type=\"\"}"}) {
    Parse(text);
    EXPECT_EQ(id_, fast) << text;
  }
}

TEST_F(MetadataParserTest, SaysNothing) {
  EXPECT_EQ(Parse("{}"), "none");
  EXPECT_EQ(Parse("{op_name=\"\"}"), "none");
  EXPECT_EQ(Parse("{stack_frame_id=0, source_line=0}"), "none");
}

TEST_F(MetadataParserTest, Errors) {
  EXPECT_EQ(Parse("{op_nam=\"a\"}"), "error: unknown metadata field `op_nam`");
  EXPECT_EQ(sink_.diagnostics()[0].kind, DiagnosticKind::kUnknownAttribute);
  EXPECT_EQ(sink_.diagnostics()[0].hint, "did you mean `op_name`?");
  EXPECT_EQ(Parse("{op_name=\"a\" op_name=\"b\"}"), "error: duplicate attribute `op_name`");
  EXPECT_EQ(Parse("{stack_frame_id=3000000000}"), "error: 3000000000 does not fit in 32 bits");
  EXPECT_NE(Parse("{op_name=\"a\" stack_frame_id=18446744073709551616}").find("64 bits"), std::string::npos);
  EXPECT_EQ(Parse("{profile_type={7}}"), "error: expected a profile type from 0 to 3");
  EXPECT_EQ(Parse("{op_name=\"a}"), "error: unterminated string");
  EXPECT_NE(Parse("{op_name=\"a\"").find("end of the text"), std::string::npos);
  EXPECT_NE(Parse("{op_name=1}").find("quoted string"), std::string::npos);
}

}  // namespace
}  // namespace hlokit
