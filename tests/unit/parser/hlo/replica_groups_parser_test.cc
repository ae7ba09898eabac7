// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/replica_groups_parser.h"

#include <string>

#include "gtest/gtest.h"
#include "ir/sharding/replica_groups.h"

namespace hlokit {
namespace {

std::string Parse(const std::string& text) {
  Context context;
  DiagnosticSink sink;
  TextCursor in(text, &sink);
  ListId id;
  if (!ParseReplicaGroups(in, &context, &id)) {
    return sink.has_errors() ? "error: " + sink.diagnostics()[0].message : "no diagnostic";
  }
  EXPECT_TRUE(in.AtEnd()) << text;
  EXPECT_EQ(EncodeReplicaGroups(&context, DecodeReplicaGroups(context, id)), id);
  std::string printed;
  TextWriter out(&printed);
  PrintReplicaGroups(out, context, id);
  out.Flush();
  return printed;
}

TEST(ReplicaGroupsParser, Forms) {
  for (const char* text : {"{}", "{{0}}", "{{0,1},{2,3}}", "{{}}", "[2,4]<=[8]", "[8,2]<=[2,8]T(1,0)",
                           "[1000000000000,1]<=[1000000000000]", "mesh['axis_0'=2,'axis_1'=2] {'axis_1'}",
                           "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y','x'}",
                           "mesh['x'=8], device_ids=(7,6,5,4,3,2,1,0) {'x':(2)2}", "mesh['x'=2] {}"}) {
    EXPECT_EQ(Parse(text), text);
  }
  EXPECT_EQ(Parse(" { {0, 1} , {2,3} }"), "{{0,1},{2,3}}");
  EXPECT_EQ(Parse("[1, 64]<=[8,8]T(0,1)\n"), "[1,64]<=[64]");
  EXPECT_EQ(Parse("mesh[x=2,y=2]{x, y}"), "mesh['x'=2,'y'=2] {'x','y'}");
}

TEST(ReplicaGroupsParser, Errors) {
  EXPECT_EQ(Parse("[2,2]<=[16]"), "error: the replica groups have 4 devices, but the iota has 16");
  EXPECT_NE(Parse("[2,2,2]<=[8]").find("error: expected the number of replica groups and their size"),
            std::string::npos);
  EXPECT_NE(Parse("[0,2]<=[0]").find("error"), std::string::npos);
  EXPECT_NE(Parse("[4294967296,4294967296]<=[4]").find("2^63"), std::string::npos);
  EXPECT_NE(Parse("[2,2]0,1,2,3").find("`<=`"), std::string::npos);
  EXPECT_EQ(Parse("mesh['axis_0'=2,'axis_1'=2] {'bogus'}"), "error: unknown mesh axis `bogus`");
  EXPECT_NE(Parse("mesh['axis_0'=2,'axis_1'=2], device_ids=(0,1,2) {'axis_0'}").find("lists 3"), std::string::npos);
  EXPECT_NE(Parse("mesh['axis_0'=2, device_ids=(0,1,2)] {'axis_0'}").find("error"), std::string::npos);
  EXPECT_NE(Parse("mesh[] {}").find("a mesh with axes"), std::string::npos);
  EXPECT_NE(Parse("{{0,1},2}").find("`{` before a replica group"), std::string::npos);
  EXPECT_NE(Parse("{{0,a}}").find("expected an integer"), std::string::npos);
}

}  // namespace
}  // namespace hlokit
