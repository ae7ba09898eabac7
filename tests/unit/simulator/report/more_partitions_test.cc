// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/more_partitions.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ir/graph/module.h"
#include "ir/sharding/sharding.h"
#include "parser/formats/parser.h"

namespace hlokit::tpu {
namespace {

std::unique_ptr<Module> Parse(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? *std::move(module) : nullptr;
}

std::string ShardingOf(const Module& module, std::string_view name) {
  for (Instruction i : module.entry().instructions()) {
    if (i.name() != name) continue;
    std::string text;
    TextWriter out(&text);
    PrintSharding(out, module.context(), ListId(*i.payload(Attr::kSharding)));
    out.Flush();
    return text;
  }
  return "no such instruction";
}

TEST(MorePartitions, MultiplyTheSlowestAxis) {
  const std::unique_ptr<Module> module = Parse(R"(HloModule m, num_partitions=8
ENTRY e {
  x = f32[64,64] parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  w = f32[64,64] parameter(1), sharding={devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  y = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,2]<=[8]}
  ROOT t = (f32[64,64], f32[64,64]) tuple(y, w), sharding={{devices=[4,2]<=[8]}, {replicated}}
})");
  ASSERT_TRUE(MultiplyPartitions(module.get(), 2));
  EXPECT_EQ(module->header().num_partitions, 16);
  EXPECT_EQ(ShardingOf(*module, "x"), "{devices=[8,1,2]<=[16] last_tile_dim_replicate}");
  EXPECT_EQ(ShardingOf(*module, "w"), "{devices=[2,1,8]<=[8,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(ShardingOf(*module, "y"), "{devices=[8,2]<=[16]}");
  EXPECT_EQ(ShardingOf(*module, "t"), "{{devices=[8,2]<=[16]}, {replicated}}");
}

TEST(MorePartitions, NotOfDevicesWithoutAPatternOrPartitionedPrograms) {
  const std::unique_ptr<Module> listed = Parse(R"(HloModule m, num_partitions=4
ENTRY e {
  ROOT x = f32[64] parameter(0), sharding={devices=[4]0,2,3,1}
})");
  EXPECT_FALSE(MultiplyPartitions(listed.get(), 2));
  const std::unique_ptr<Module> partitioned = Parse(R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[16] parameter(0), sharding={devices=[4]<=[4]}
  ROOT y = f32[64] all-gather(x), dimensions={0}, replica_groups={{0,1,2,3}}
})");
  EXPECT_FALSE(MultiplyPartitions(partitioned.get(), 2));
}

}  // namespace
}  // namespace hlokit::tpu
