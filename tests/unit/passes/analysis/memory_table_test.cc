// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/memory_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

TEST(MemoryTableTest, RowsAddUpToThePeak) {
  const auto module = Parse(R"(HloModule m
    ENTRY e {
      x = f32[10] parameter(0)
      a = f32[10] negate(x)
      b = f32[10] exponential(x)
      ROOT c = f32[10] add(a, b)
    })");
  const auto memory = MemoryAnalysis::Create(*module);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::vector<MemoryRow> rows = LiveAtPeakBy(*module, *memory, CostKey::kOpcode);
  int64_t bytes = 0, buffers = 0;
  for (const MemoryRow& row : rows) {
    bytes += row.bytes;
    buffers += row.buffers;
  }
  EXPECT_EQ(bytes, memory->OfModule().peak_bytes);
  EXPECT_EQ(buffers, 3);
  const Instruction peak = PeakInstruction(*module, memory->OfModule());
  ASSERT_TRUE(peak.valid());
  EXPECT_EQ(peak.name(), "b");
  EXPECT_FALSE(PeakInstruction(*module, MemoryUse()).valid());
}

}  // namespace
}  // namespace hlokit
