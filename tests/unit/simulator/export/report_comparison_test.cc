// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/report_comparison.h"

#include <gtest/gtest.h>

#include <string>

namespace hlokit::tpu {
namespace {

TEST(ReportComparisonTest, SaysWhatAReportLacks) {
  const auto message = [](std::string_view text) { return std::string(ParseReport(text).status().message()); };
  EXPECT_NE(message("[]").find("this is no JSON object"), std::string::npos);
  EXPECT_NE(message("{").find("this is no JSON object"), std::string::npos);
  EXPECT_EQ(message(R"({"format": "other"})"), "expected the format `hlokit report 3`, found `other`");
  EXPECT_EQ(message(R"({"format": "hlokit report 3"})"), "a report has `title`, which is missing here");
  EXPECT_EQ(message(R"({"format": "hlokit report 3", "title": 1})"), "`title`: expected a string, found a number");
}

TEST(ReportComparisonTest, PrintsBothAndTheChange) {
  nlohmann::ordered_json before = {{"title", "a"}, {"step_time_us", 10.0}}, after = before;
  after["step_time_us"] = 15.0;
  std::string text;
  {
    TextWriter out(&text);
    PrintReportComparison(before, after, 10, &out);
  }
  EXPECT_NE(text.find("+50.0 %"), std::string::npos) << text;
  const nlohmann::json document = nlohmann::json::parse(ReportComparisonDocument(before, after));
  EXPECT_EQ(document["after"]["step_time_us"], 15.0);
}

}  // namespace
}  // namespace hlokit::tpu
