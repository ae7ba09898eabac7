// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/sweep_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hlokit::tpu {
namespace {

TEST(SweepTableTest, ParsesWhatVariesAndItsValues) {
  const absl::StatusOr<SweepValues> sweep = ParseSweep("hbm=1,0.5", /*any=*/false);
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->what, "hbm");
  EXPECT_EQ(sweep->values, (std::vector<std::string>{"1", "0.5"}));
  EXPECT_FALSE(ParseSweep("layers=1,2", /*any=*/false).ok());
  EXPECT_TRUE(ParseSweep("layers=1,2", /*any=*/true).ok());
  for (const char* text : {"", "hbm", "hbm=", "=1", "hbm=1,,2", "hbm=,1", "hbm=1,"}) {
    EXPECT_FALSE(ParseSweep(text, /*any=*/false).ok()) << text;
  }
}

TEST(SweepTableTest, BarsAreInProportion) {
  SweepRow fast, slow;
  fast.value = "2";
  fast.step_us = 10;
  fast.bound = slow.bound = "HBM";
  slow.value = "1";
  slow.step_us = 20;
  slow.fits = false;
  const std::string table = SweepTable("hbm", {fast, slow});
  EXPECT_NE(table.find("|" + std::string(24, '#') + " "), std::string::npos) << table;
  EXPECT_NE(table.find("|" + std::string(48, '#') + " "), std::string::npos) << table;
  EXPECT_NE(table.find("does not fit"), std::string::npos) << table;
  const nlohmann::json rows = nlohmann::json::parse(SweepJson("hbm", {fast, slow}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["hbm"], "1");
  EXPECT_EQ(rows[1]["step_time_us"], 20);
  EXPECT_EQ(rows[1]["fits"], false);
}

}  // namespace
}  // namespace hlokit::tpu
