// SPDX-License-Identifier: Apache-2.0
// The sharding rules of operations, as text.
#include "passes/sharding/sharding_rule.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

constexpr char kHead[] = R"(HloModule rules
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}
ENTRY e {
)";

// Returns the rule of the root of an entry.
std::string RuleText(const std::string& entry) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(StrCat(kHead, entry, "}\n"));
  if (!module.ok()) return std::string(module.status().message());
  return RuleOf((*module)->entry().root()).ToString();
}

TEST(ShardingRuleTest, Elementwise) {
  EXPECT_EQ(RuleText("x = f32[2,3] parameter(0)\n ROOT y = f32[2,3] add(x, x)\n"), "ab,ab->ab");
  EXPECT_EQ(RuleText("p = pred[] parameter(0)\n x = f32[4] parameter(1)\n ROOT y = f32[4] select(p, x, x)\n"),
            ",a,a->a");
  EXPECT_EQ(RuleText("x = f32[2,3] parameter(0)\n ROOT y = f32[2,3] copy(x)\n"), "ab->ab");
  EXPECT_EQ(RuleText("x = f32[4] parameter(0)\n ROOT y = f32[4] collective-reduce(x), to_apply=sum\n"), "a->a");
  // Roots are not divided with the arrays.
  EXPECT_EQ(RuleText("x = f32[4] parameter(0)\n r = s32[1] parameter(1)\n"
                     " ROOT y = f32[4] collective-reduce(x, r), has_dynamic_root=true, to_apply=sum\n"),
            "a,b->a {b whole}");
}

TEST(ShardingRuleTest, Movement) {
  EXPECT_EQ(RuleText("x = f32[2,3] parameter(0)\n ROOT y = f32[3,2] transpose(x), dimensions={1,0}\n"), "ba->ab");
  EXPECT_EQ(RuleText("x = f32[3] parameter(0)\n ROOT y = f32[2,3] broadcast(x), dimensions={1}\n"), "a->ba");
  EXPECT_EQ(RuleText("x = f32[6,4] parameter(0)\n ROOT y = f32[24] reshape(x)\n"), "ab->(ab)");
  EXPECT_EQ(RuleText("x = f32[6,4] parameter(0)\n ROOT y = f32[4,6] reshape(x)\n"),
            "(ab)e->(ac)d {b whole, c whole, d whole, e whole}");
  EXPECT_EQ(RuleText("x = f32[6,4] parameter(0)\n ROOT y = f32[6,4] reverse(x), dimensions={0}\n"),
            "ab->ab {a window}");
  EXPECT_EQ(RuleText("x = f32[6,4] parameter(0)\n ROOT y = f32[6,2] slice(x), slice={[0:6], [1:3]}\n"),
            "ab->ab {b window}");
  EXPECT_EQ(RuleText("x = f32[6,4] parameter(0)\n ROOT y = f32[12,4] concatenate(x, x), dimensions={0}\n"),
            "ab,ab->ab {a whole}");
}

TEST(ShardingRuleTest, Contractions) {
  EXPECT_EQ(RuleText("x = f32[2,3,4] parameter(0)\n y = f32[2,4,5] parameter(1)\n"
                     "ROOT d = f32[2,3,5] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                     "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"),
            "acb,abd->acd {b reduced}");
  EXPECT_EQ(RuleText("x = f32[8,16,16,3] parameter(0)\n k = f32[3,3,3,7] parameter(1)\n"
                     "ROOT c = f32[8,16,16,7] convolution(x, k), window={size=3x3 pad=1_1x1_1}, "
                     "dim_labels=b01f_01io->b01f\n"),
            "adeb,fgbc->adec {b reduced, d window, e window, f whole, g whole}");
  // Groups are major in the features.
  EXPECT_EQ(RuleText("x = f32[8,16,6] parameter(0)\n k = f32[1,3,4] parameter(1)\n"
                     "ROOT c = f32[8,16,4] convolution(x, k), window={size=1}, dim_labels=b0f_0io->b0f, "
                     "feature_group_count=2\n"),
            "ae(bc),fc(bd)->ae(bd) {c reduced, f whole}");
}

TEST(ShardingRuleTest, Reductions) {
  EXPECT_EQ(RuleText("x = f32[2,3] parameter(0)\n z = f32[] constant(0)\n"
                     "ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=sum\n"),
            "ab,->b {a reduced}");
  EXPECT_EQ(RuleText("x = f32[2,8] parameter(0)\n z = f32[] constant(0)\n"
                     "ROOT r = f32[2,4] reduce-window(x, z), window={size=1x2 stride=1x2}, to_apply=sum\n"),
            "ab,->ab {b window}");
  EXPECT_EQ(RuleText("x = f32[2,3] parameter(0)\n ROOT s = f32[2,3] sort(x), dimensions={1}, to_apply=less\n"),
            "ab->ab {b whole}");
}

TEST(ShardingRuleTest, Indexed) {
  EXPECT_EQ(RuleText("t = f32[10,4] parameter(0)\n i = s32[5,1] parameter(1)\n"
                     "ROOT g = f32[5,4] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, "
                     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}\n"),
            "bc,ad->ac {b looked-up, d whole}");
  // An index that counts along a dimension makes that of the operand a batch.
  EXPECT_EQ(
      RuleText("t = f32[5,10,4] parameter(0)\n i = s32[5,1] parameter(1)\n n = s32[5,1] iota(), iota_dimension=0\n"
               "c = s32[5,2] concatenate(n, i), dimensions={1}\n"
               "ROOT g = f32[5,4] gather(t, c), offset_dims={1}, collapsed_slice_dims={0,1}, "
               "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1,4}\n"),
      "abc,ad->ac {b looked-up, d whole}");
  EXPECT_EQ(RuleText("t = f32[10,4] parameter(0)\n i = s32[5,1] parameter(1)\n u = f32[5,4] parameter(2)\n"
                     "ROOT s = f32[10,4] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n"),
            "bc,ad,ac->bc {a reduced, b looked-up, d whole}");
  EXPECT_EQ(RuleText("t = f32[10,4] parameter(0)\n i = s32[] parameter(1)\n"
                     "ROOT s = f32[1,4] dynamic-slice(t, i, i), dynamic_slice_sizes={1,4}\n"),
            "ab,,->cb {a looked-up, c whole}");
}

TEST(ShardingRuleTest, NoRule) {
  const std::string call =
      "x = f32[2,3] parameter(0)\n ROOT y = f32[2,3] custom-call(x), custom_call_target=\"mine\"\n";
  EXPECT_EQ(RuleText(call), "ab->cd {a whole, b whole, c whole, d whole}");
}

// What is carried along the factors moves no data.
TEST(ShardingRuleTest, CarriesAlongFactors) {
  const absl::StatusOr<std::unique_ptr<Module>> module =
      ParseModuleText(StrCat(kHead,
                             "x = f32[6,4] parameter(0)\n y = f32[4,8] parameter(1)\n"
                             "ROOT d = f32[6,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"));
  ASSERT_TRUE(module.ok());
  const ShardingRule rule = RuleOf((*module)->entry().root());
  Tiling tiling = Tiling::Of(ShardingKind::kTiled);
  tiling.device_count = 8;
  tiling.dims = {{{4, 2}}, {{1, 4}}};
  const Tiling result = CarryAlongFactors(rule, rule.operands[0], rule.results[0], tiling);
  EXPECT_EQ(result.dims, (std::vector<AxisList>{{{4, 2}}, {}}));
  const Tiling other = CarryAlongFactors(rule, rule.operands[0], rule.operands[1], tiling);
  EXPECT_EQ(other.dims, (std::vector<AxisList>{{{1, 4}}, {}}));
  EXPECT_EQ(CarryAlongFactors(rule, rule.operands[0], rule.operands[1], tiling, KindBit(FactorKind::kParallel)).kind,
            ShardingKind::kReplicated);
}

// The rule that a custom-call of f32[8,4] with a result of this type states, or "whole" if it is not taken.
std::string StatedRuleText(const std::string& type, const std::string& rule) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(StrCat(
      kHead, "x = f32[8,4] parameter(0)\n ROOT y = ", type,
      " custom-call(x), custom_call_target=\"t\", frontend_attributes={xla.sdy.sharding_rule=\"", rule, "\"}\n}\n"));
  if (!module.ok()) return std::string(module.status().message());
  const ShardingRule made = RuleOf((*module)->entry().root());
  return made.known ? made.ToString() : "whole";
}

TEST(ShardingRuleTest, StatedByCustomCalls) {
  EXPECT_EQ(StatedRuleText("f32[8]", "#sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={j}>"),
            "ab->a {b reduced}");
  EXPECT_EQ(StatedRuleText("f32[2,4]",
                           "#sdy.op_sharding_rule<([ik, j])->([i, j]) {i=2, j=4, k=4} need_replication={k}, custom>"),
            "(ac)b->ab {c whole}");
  EXPECT_EQ(StatedRuleText("f32[8,4]", "#sdy.op_sharding_rule<([i, z_1])->([i, z_1]) {i=8, z_1=4} permutation={z_1}>"),
            "ab->ab {b whole}");
  // Sizes, ranks and factors that do not fit, and other text.
  EXPECT_EQ(StatedRuleText("f32[8]", "#sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=3}>"), "whole");
  EXPECT_EQ(StatedRuleText("f32[8]", "#sdy.op_sharding_rule<([i])->([i]) {i=8}>"), "whole");
  EXPECT_EQ(StatedRuleText("f32[8]", "#sdy.op_sharding_rule<([i, i])->([i]) {i=8}>"), "whole");
  EXPECT_EQ(StatedRuleText("f32[8]", "#sdy.op_sharding_rule<([i, j])->([k]) {i=8, j=4}>"), "whole");
  EXPECT_EQ(StatedRuleText("f32[8]", "#sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=4} reduction={"), "whole");
  EXPECT_EQ(StatedRuleText("f32[8]", "#sdy.op_sharding_rule<"), "whole");
  EXPECT_EQ(StatedRuleText("f32[8]", ""), "whole");
}

}  // namespace
}  // namespace hlokit
