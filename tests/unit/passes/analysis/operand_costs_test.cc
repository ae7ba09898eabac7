// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/operand_costs.h"

#include <gtest/gtest.h>

#include "parser/formats/parser.h"
#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

struct Costs {
  std::vector<double> bytes, utilization;
};

Costs CostsOfEntry(std::string_view text) {
  const std::unique_ptr<Module> module = Parse(text);
  Costs costs;
  if (module == nullptr) return costs;
  for (const OperandCost& cost : OperandCosts(CostAnalysis(*module), *module)) {
    costs.bytes.push_back(cost.bytes);
    costs.utilization.push_back(cost.utilization);
  }
  return costs;
}

using Numbers = std::vector<double>;

TEST(OperandCostsTest, OperandsOfAllInstructionsAddUp) {
  const Costs costs = CostsOfEntry(R"(HloModule m
    ENTRY e {
      a = f32[3,5] parameter(0)
      b = f32[5,7] parameter(1)
      c = f32[3,7] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT d = f32[3,7] negate(c)
    })");
  EXPECT_EQ(costs.bytes, (Numbers{4 * (15 + 21), 4 * 35}));
  EXPECT_EQ(costs.utilization, (Numbers{2, 1}));
}

TEST(OperandCostsTest, SlicesReadAPart) {
  const Costs costs = CostsOfEntry(R"(HloModule m
    ENTRY e {
      a = f32[1000] parameter(0)
      i = s32[] parameter(1)
      u = f32[100] dynamic-slice(a, i), dynamic_slice_sizes={100}
      ROOT d = f32[1000] dynamic-update-slice(a, u, i)
    })");
  EXPECT_EQ(costs.bytes, (Numbers{400, 4 + 400, 4}));
  EXPECT_EQ(costs.utilization, (Numbers{0.1, 2, 1}));
}

TEST(OperandCostsTest, FusionsReadWhatTheirBodiesUse) {
  const Costs costs = CostsOfEntry(R"(HloModule m
    body {
      p = f32[1000] parameter(0)
      q = f32[10] parameter(1)
      s = f32[10] slice(p), slice={[0:10]}
      ROOT t = f32[10] add(s, q)
    }
    ENTRY e {
      a = f32[1000] parameter(0)
      b = f32[10] parameter(1)
      ROOT f = f32[10] fusion(a, b), kind=kLoop, calls=body
    })");
  EXPECT_EQ(costs.bytes, (Numbers{40, 40}));
  EXPECT_EQ(costs.utilization, (Numbers{0.01, 1}));
}

TEST(OperandCostsTest, CalleesCountOnce) {
  const Costs costs = CostsOfEntry(R"(HloModule m
    cond { c = (s32[], f32[10]) parameter(0) i = s32[] get-tuple-element(c), index=0 n = s32[] constant(7) ROOT l = pred[] compare(i, n), direction=LT }
    body {
      c = (s32[], f32[10]) parameter(0)
      i = s32[] get-tuple-element(c), index=0
      x = f32[10] get-tuple-element(c), index=1
      one = s32[] constant(1)
      j = s32[] add(i, one)
      y = f32[10] negate(x)
      ROOT t = (s32[], f32[10]) tuple(j, y)
    }
    ENTRY e {
      a = (s32[], f32[10]) parameter(0)
      ROOT w = (s32[], f32[10]) while(a), condition=cond, body=body
    })");
  EXPECT_EQ(costs.bytes, (Numbers{4 + 4 + 40, 4 + 4}));
}

TEST(OperandCostsTest, TheBranchThatReadsMost) {
  const Costs costs = CostsOfEntry(R"(HloModule m
    small { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }
    large { p = f32[9] parameter(0) s = f32[9] negate(p) t = f32[9] add(s, p) ROOT r = f32[2] slice(t), slice={[0:2]} }
    ENTRY e {
      c = pred[] parameter(0)
      a = f32[2] parameter(1)
      b = f32[9] parameter(2)
      ROOT w = f32[2] conditional(c, a, b), true_computation=small, false_computation=large
    })");
  EXPECT_EQ(costs.bytes, (Numbers{36 + 36 + 8, 36}));
}

}  // namespace
}  // namespace hlokit
