// SPDX-License-Identifier: Apache-2.0
// Frontend attributes, statistics, result accuracy.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ir/text/frontend_attributes.h"
#include "ir/text/result_accuracy.h"
#include "ir/text/statistics_viz.h"
#include "parser/hlo/frontend_attributes_parser.h"
#include "parser/hlo/result_accuracy_parser.h"
#include "parser/hlo/statistics_viz_parser.h"

namespace hlokit {
namespace {

class SmallValueTest : public ::testing::Test {
 protected:
  using ParseFunction = bool (*)(TextCursor&, Context*, ListId*);
  using PrintFunction = void (*)(TextWriter&, const Context&, ListId);

  std::string RoundTrip(ParseFunction parse, PrintFunction print, const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));  // strings point into it
    DiagnosticSink sink;
    TextCursor in(*texts_.back(), &sink);
    if (!parse(in, &context_, &id_)) {
      return sink.has_errors() ? "error: " + sink.diagnostics()[0].message : "no diagnostic";
    }
    EXPECT_TRUE(in.AtEnd()) << text;
    std::string printed;
    TextWriter out(&printed);
    print(out, context_, id_);
    out.Flush();
    return printed;
  }
  std::string Frontend(const std::string& text) {
    return RoundTrip(&ParseFrontendAttributes, &PrintFrontendAttributes, text);
  }
  std::string Stats(const std::string& text) { return RoundTrip(&ParseStatistics, &PrintStatisticsViz, text); }
  std::string Accuracy(const std::string& text) { return RoundTrip(&ParseResultAccuracy, &PrintResultAccuracy, text); }

  std::vector<std::unique_ptr<std::string>> texts_;
  Context context_;
  ListId id_;
};

TEST_F(SmallValueTest, FrontendAttributes) {
  for (const char* text :
       {"{}", "{_xla_compute_type=\"host\"}", R"({a.b-c="x",xla.sdy.meshes={mesh = #sdy.mesh<["x"=2]>}})",
        R"({xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"})", "{k=\"\"}"}) {
    EXPECT_EQ(Frontend(text), text);
  }
  EXPECT_EQ(Frontend("{\n b=\"1\", a={ {0,1} },c=\"{n = 1 : i32}\"\n}"), "{a={ {0,1} },b=\"1\",c={n = 1 : i32}}");
  EXPECT_EQ(Frontend("{k=\"1\",k=\"2\"}"), "{k=\"2\"}");
  EXPECT_EQ(Frontend("{k='it''}").substr(0, 6), "error:");
  for (const char* text :
       {"{k}", "{k=}", "{k=1}", "{=\"1\"}", "{k=\"1\"", "{k={}", "{k=\"1\" j=\"2\"}", "{k=\"1\",}", "k"}) {
    EXPECT_EQ(Frontend(text).substr(0, 6), "error:") << text;
  }
}

TEST_F(SmallValueTest, StatisticsViz) {
  EXPECT_EQ(Stats("{visualizing_index=1,stat-1=33,stat-2=44.5}"), "{visualizing_index=1,stat-1=33,stat-2=44.5}");
  EXPECT_EQ(Stats("{visualizing_index=0, a=1000000, b=-0.00001, c=12345.678}"),
            "{visualizing_index=0,a=1e+06,b=-1e-05,c=12345.7}");
  // The stored number is the printed one.
  const ListId id = id_;
  Stats("{visualizing_index=0,a=1e+06,b=-1e-05,c=12345.7}");
  EXPECT_EQ(id_, id);
  EXPECT_EQ(Stats("{}"), "{}");
  EXPECT_EQ(id_, context_.lists.Intern({}));
  for (const char* text : {"{stat-1=33}", "{visualizing_index=a}", "{visualizing_index=1,a}",
                           "{visualizing_index=1,a=b}", "{visualizing_index=1,a=1e999}", "{visualizing_index=1"}) {
    EXPECT_EQ(Stats(text).substr(0, 6), "error:") << text;
  }
}

TEST_F(SmallValueTest, ResultAccuracy) {
  EXPECT_EQ(Accuracy("{mode=highest}"), "{mode=highest}");
  EXPECT_EQ(Accuracy("{mode=HIGHEST}"), "{mode=highest}");
  EXPECT_EQ(Accuracy("{tolerance={rtol=0.5, atol=1.0, ulps=2}}"), "{tolerance={atol=1,rtol=0.5,ulps=2}}");
  EXPECT_EQ(Accuracy("{tolerance={atol=0.03125,rtol=0.03125,ulps=2.0}}"),
            "{tolerance={atol=0.03125,rtol=0.03125,ulps=2}}");
  EXPECT_EQ(Accuracy("{tolerance={}}"), "{tolerance={atol=0,rtol=0,ulps=0}}");
  Accuracy("{mode=DEFAULT}");
  EXPECT_EQ(id_, context_.lists.Intern({}));
  for (const char* text : {"{mode=high}", "{mode=tolerance}", "{foo=10.0}", "{0.5}", "{}", "{tolerance={ulp=2}}",
                           "{tolerance={ulps=1e30}}", "{tolerance={ulps=nan}}", "{tolerance=1}"}) {
    EXPECT_EQ(Accuracy(text).substr(0, 6), "error:") << text;
  }
}

}  // namespace
}  // namespace hlokit
