// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/sharding_parser.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/sharding/sharding.h"

namespace hlokit {
namespace {

class ShardingParserTest : public ::testing::Test {
 protected:
  // Returns the printed form, or the first diagnostic.
  std::string Parse(const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));  // strings point into it
    DiagnosticSink sink;
    TextCursor in(*texts_.back(), &sink);
    ListId id;
    if (!ParseSharding(in, &context_, &id)) {
      EXPECT_TRUE(sink.has_errors());
      return sink.has_errors() ? "error: " + sink.diagnostics()[0].message : "";
    }
    EXPECT_TRUE(in.AtEnd()) << text;
    EXPECT_EQ(EncodeSharding(&context_, DecodeSharding(context_, id)), id);
    std::string printed;
    TextWriter out(&printed);
    PrintSharding(out, context_, id);
    out.Flush();
    return printed;
  }
  void ExpectStays(const std::string& text) { EXPECT_EQ(Parse(text), text); }
  void ExpectError(const std::string& text, DiagnosticKind kind, const std::string& part) {
    texts_.push_back(std::make_unique<std::string>(text));
    DiagnosticSink sink;
    TextCursor in(*texts_.back(), &sink);
    ListId id;
    EXPECT_FALSE(ParseSharding(in, &context_, &id)) << text;
    ASSERT_EQ(sink.error_count(), 1) << text;
    EXPECT_EQ(sink.diagnostics()[0].kind, kind) << text;
    EXPECT_NE(sink.diagnostics()[0].message.find(part), std::string::npos) << sink.diagnostics()[0].message;
  }

  std::vector<std::unique_ptr<std::string>> texts_;
  Context context_;
};

TEST_F(ShardingParserTest, Unnamed) {
  ExpectStays("{replicated}");
  ExpectStays("{manual}");
  ExpectStays("{unknown}");
  ExpectStays("{unreduced=max}");
  ExpectStays(
      R"({devices=[2,2]<=[4] last_tile_dims={unreduced} metadata={op_type="sdy::reduction_op" op_name="MAX"}})");
  ExpectStays(
      R"({devices=[2,2]<=[4] last_tile_dims={unreduced} metadata={{op_name="a"}, {op_type="sdy::reduction_op" op_name="MIN"}}})");
  ExpectStays("{maximal device=42}");
  ExpectStays("{devices=[2,1]0,1}");
  ExpectStays("{devices=[2,2]<=[4] last_tile_dim_replicate}");
  ExpectStays("{devices=[8,2,1]<=[2,8]T(1,0)}");
  ExpectStays("{devices=[2,2,2,2]<=[2,2,4]T(2,1,0) last_tile_dims={manual, replicated}}");
  ExpectStays("{manual shard_as 1}");
  ExpectStays("{devices=[2,2,2,2]<=[16] last_tile_dims={manual, replicated} shard_like 1}");
  ExpectStays("{devices=[1000000,1000000]<=[1000000000000]}");
}

TEST_F(ShardingParserTest, BroughtIntoNormalForm) {
  const std::pair<std::string, std::string> cases[] = {
      {"{ replicated  metadata={op_name=\"a\"} }", "{replicated metadata={op_name=\"a\"}}"},
      {"{devices=[2]<=[2,1]T(1,0)}", "{devices=[2]<=[2]}"},
      {"{devices=[4,1,1,4,2,1,1]<=[8,2,2]T(1,2,0)}", "{devices=[4,1,1,4,2,1,1]<=[8,4]T(1,0)}"},
      {"{devices=[1,1,2,4]<=[2,4]T(1,0) last_tile_dim_replicate}",
       "{devices=[1,1,2,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"},
      {"{devices=[2,2,2,2]<=[2,2,2,2]T(0,1,3,2) last_tile_dim_replicate}",
       "{devices=[2,2,2,2]<=[4,2,2]T(0,2,1) last_tile_dim_replicate}"},
      {"{devices=[1,2,2]1,0,3,2 last_tile_dims={replicated}}", "{devices=[1,2,2]0,1,2,3 last_tile_dim_replicate}"},
      {"{devices=[2,2]<=[4] last_tile_dims={replicated,manual}}",
       "{devices=[2,2]<=[2,2]T(1,0) last_tile_dims={manual, replicated}}"},
      {"{devices=[1,4]0,1,2,3 last_tile_dim_replicate}", "{replicated}"},
      {"{devices=[1,1]<=[1] last_tile_dim_replicate}", "{replicated}"},
      {"{unreduced}", R"({unreduced metadata={op_type="sdy::reduction_op" op_name="SUM"}})"},
      {R"({unreduced metadata={op_type="sdy::reduction_op" op_name="MIN"}})", "{unreduced=min}"},
      {"{unreduced=sum}", R"({unreduced metadata={op_type="sdy::reduction_op" op_name="SUM"}})"},
  };
  for (const auto& [text, normal] : cases) {
    EXPECT_EQ(Parse(text), normal);
    ExpectStays(normal);
  }
}

TEST_F(ShardingParserTest, Tuples) {
  ExpectStays("{}");
  ExpectStays("{{replicated}}");
  EXPECT_EQ(Parse("{{maximal device=0},{maximal device=0},\n {manual}}"),
            "{{maximal device=0}, {maximal device=0}, {manual}}");
  ExpectStays(
      "{{replicated}, {replicated}, {replicated}, {manual}, {replicated}, /*index=5*/{devices=[2]<=[2]}, "
      "{replicated}}");
  ExpectStays("{{replicated metadata={op_name=\"a\"}}, {replicated}}");
}

TEST_F(ShardingParserTest, Metadata) {
  ExpectStays(R"({maximal device=0 metadata={op_type="x" op_name="y"}})");
  ExpectStays(R"({manual metadata={{op_name="a"}, {op_name="b"}}})");
  EXPECT_EQ(Parse(R"({manual metadata={{op_name="a"}}})"), R"({manual metadata={op_name="a"}})");
  EXPECT_EQ(Parse("{manual metadata={}}"), "{manual}");
}

TEST_F(ShardingParserTest, Named) {
  ExpectStays("{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{'a'}, {'c', 'b'}]}");
  ExpectStays("{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{'b':(2)2}, {'d':(4)2, 'c', ?}]}");
  ExpectStays("{mesh['a'=2,'b'=4,'c'=4,'d'=2], device_ids=([4,16]T(1,0)), [{'a'}]}");
  ExpectStays("{mesh['x'=2,'y'=2], device_ids=(0,2,1,3), [{'x'}]}");
  ExpectStays("{mesh['a'=2,'b'=4], [{'a'}], replicated={'b'}}");
  ExpectStays("{mesh['a.b'=2,'<axis> def'=4,'z/w'=2], [{'a.b'}, {'<axis> def':(2)2, 'z/w'}]}");
  ExpectStays("{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{}, {'b'}], unreduced={'d':(4)2}}");
  ExpectStays("{mesh['x'=2], [{}, {}], unreduced=max{'x'}}");
  ExpectStays("{single_device[device_id=5]}");
  EXPECT_EQ(Parse("{maximal_mesh[device_id=5]}"), "{single_device[device_id=5]}");  // as older versions printed it
  ExpectStays("{mesh['x'=1], [{'x'}, {}]}");
  ExpectStays(
      "{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{'a'}], replicated={'c'}, unreduced={'d':(4)2}, manual={'b':(2)2}, "
      "metadata={{op_name=\"foo\"}, {op_name=\"bar\"}}}");
  ExpectStays("{{mesh['a'=2,'b'=2], [{'a'}, {}]}, {devices=[2,2]<=[4] last_tile_dim_replicate}}");
  // Spaces, bare names, numbers for names, lists that are iotas.
  EXPECT_EQ(Parse("{mesh['x'=2, 'y'=2] [{'x'},{?}]}"), "{mesh['x'=2,'y'=2], [{'x'}, {?}]}");
  EXPECT_EQ(Parse("{mesh[x=2,y=4], [{y:(1)2}, {0}]}"), "{mesh['x'=2,'y'=4], [{'y':(1)2}, {'x'}]}");
  EXPECT_EQ(Parse("{mesh['x'=4], device_ids=(0,1,2,3), [{'x'}]}"), "{mesh['x'=4], [{'x'}]}");
}

TEST_F(ShardingParserTest, NamedWithoutDimensions) {
  // The mesh stays, as in XLA.
  EXPECT_EQ(Parse("{mesh['x'=2,'y'=2] replicated}"), "{mesh['x'=2,'y'=2], replicated}");
  EXPECT_EQ(Parse("{mesh['x'=2,'y'=2], []}"), "{mesh['x'=2,'y'=2], replicated}");
  ExpectStays("{mesh[], replicated}");
  ExpectStays("{mesh[], [{?}, {}]}");
  ExpectStays("{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), replicated, metadata={{op_name=\"a\"}}}");
  ExpectStays("{mesh['x'=2,'y'=2], manual}");
  ExpectStays("{mesh['x'=2,'y'=2], unreduced}");
  EXPECT_EQ(Parse("{mesh['a'=2, 'b'=2], [], unreduced=max{'a', 'b'}}"), "{mesh['a'=2,'b'=2], unreduced=max}");
  EXPECT_EQ(Parse("{mesh['a'=2,'b'=2], unreduced=max{'a', 'b'}}"), "{mesh['a'=2,'b'=2], unreduced=max}");
  ExpectStays("{{mesh['x'=2,'y'=2], manual}, {manual}, {mesh[], replicated}}");
  EXPECT_EQ(Parse("{mesh['a'=2,'b'=2], unreduced=max{'b'}}"), "{mesh['a'=2,'b'=2], [], unreduced=max{'b'}}");
  ExpectStays("{mesh['a'=2,'b'=4], [], replicated={'b'}}");
}

TEST_F(ShardingParserTest, Errors) {
  constexpr DiagnosticKind kBad = DiagnosticKind::kBadSharding;
  ExpectError("{devices=[2,2]0,1,2,3,4}", kBad, "4 tiles, but 5 devices");
  ExpectError("{devices=[2,2]<=[16]}", kBad, "4 tiles, but an iota of 16 devices");
  ExpectError("{devices=[2,2]<=[2,2]T(1,1)}", kBad, "permutation");
  ExpectError("{devices=[2,0]<=[2]}", kBad, "positive");
  ExpectError("{devices=[4294967296,4294967296]<=[1]}", kBad, "2^63");
  ExpectError("{devices=[1,1]0}", kBad, "more than one device");
  ExpectError("{replicated device=1}", kBad, "to have no devices");
  ExpectError("{maximal}", kBad, "to have one device");
  ExpectError("{maximal devices=[2]0,1}", kBad, "to have one device");
  ExpectError("{last_tile_dim_replicate}", kBad, "devices=");
  ExpectError("{replicatd}", kBad, "expected a sharding field, found `replicatd`");
  ExpectError("{devices=[2,2]<=[4] last_tile_dims={tuple}}", kBad, "last_tile_dims");
  ExpectError("{devices=[2,2]<=[4] last_tile_dims={manual} last_tile_dim_replicate}", kBad, "mutually exclusive");
  ExpectError("{devices=[2]<=[2] last_tile_dims={manual,manual}}", kBad, "more last_tile_dims");
  ExpectError("{manual manual}", DiagnosticKind::kDuplicateAttribute, "duplicate attribute `manual`");
  ExpectError("{unreduced=prod}", kBad, "sum, max or min");
  ExpectError("{devices=[6,1000000,2]<=[4,3000000]T(1,0) last_tile_dims={replicated,manual}}", kBad, "too many");
  ExpectError("{replicated", DiagnosticKind::kUnexpectedToken, "end of the text");
  ExpectError("replicated}", DiagnosticKind::kUnexpectedToken, "expected `{`");
  ExpectError("{{replicated}, {{replicated}}}", DiagnosticKind::kUnexpectedToken, "found `{`");
  ExpectError("{mesh['x'=2,'y'=2], [{'z'}]}", kBad, "unknown mesh axis `z`");
  ExpectError("{mesh['x'=2,'y'=2], [{2}]}", kBad, "axis number 2 is out of range");
  ExpectError("{mesh['x'=2,'x'=2], [{'x'}]}", kBad, "duplicate axis `x` in mesh");
  ExpectError("{mesh['x'=2,'y'=2], [{'x'}, {'x'}]}", kBad, "cannot be used together");
  ExpectError("{mesh['x'=9223372036854775807,'y'=2], [{'x'}]}", kBad, "product below 2^63");
  ExpectError("{mesh['x'=4], [{'x':(1)0}]}", kBad, "at least 2");
  ExpectError("{mesh['x'=2,'y'=2], device_ids=(0,1,2), [{'x'}]}", kBad, "lists 3");
  ExpectError("{mesh['x'=2,'y'=2], device_ids=([8]), [{'x'}]}", kBad, "permutation");
  ExpectError("{mesh['x'=2], [{'x'}], tiled={'x'}}", DiagnosticKind::kUnknownAttribute, "`tiled`");
  ExpectError("{mesh['x'=2], [{?, 'x'}]}", DiagnosticKind::kUnexpectedToken, "expected `}`");
  ExpectError("{mesh['x'=2]}", DiagnosticKind::kUnexpectedToken, "dimensions");
  ExpectError("{mesh['x'=2], metadata={}}", DiagnosticKind::kUnexpectedToken, "dimensions");
}

}  // namespace
}  // namespace hlokit
