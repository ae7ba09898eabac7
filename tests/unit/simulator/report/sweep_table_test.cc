// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/sweep_table.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
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

TEST(SweepTableTest, RowsGoToOtherProcessesAsTheyAre) {
  SweepRow row;
  row.value = "v5e:2x2";
  row.step_us = 1.0 / 3;
  row.busy = 0.25;
  row.peak_bytes = int64_t{1} << 40;
  row.used_devices = 2;
  row.devices = 4;
  row.fits = false;
  row.bound = "HBM";
  const std::string bytes = EncodeSweepRow(row);
  SweepRow read;
  DecodeSweepRow(bytes, &read);
  EXPECT_EQ(SweepTable("device", {read}), SweepTable("device", {row}));
  EXPECT_EQ(read.step_us, row.step_us);
  EXPECT_EQ(read.bound, "HBM");
  SweepRow unchanged;
  for (size_t size : {size_t{0}, size_t{7}, sizeof(double) * 8}) {
    DecodeSweepRow(std::string_view(bytes).substr(0, size), &unchanged);
    EXPECT_EQ(unchanged.value, "") << size;
  }
}

}  // namespace
}  // namespace hlokit::tpu
