// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/memory.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "ir/graph/traversal.h"
#include "parser/formats/parser.h"
#include "passes/analysis/dataflow_analysis.h"
#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

int64_t PeakOf(std::string_view text) {
  const auto module = Parse(text);
  const auto memory = MemoryAnalysis::Create(*module);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return memory.ok() ? memory->OfModule().peak_bytes : -1;
}

Instruction Named(const Module& module, std::string_view name) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (i.name() == name) return i;
    }
  }
  return {};
}

TEST(MemoryTest, AChainKeepsTwoBuffers) {
  // The argument stays live; each result overwrites the previous one.
  EXPECT_EQ(PeakOf(R"(HloModule m
    ENTRY e {
      x = f32[10] parameter(0)
      a = f32[10] negate(x)
      b = f32[10] negate(a)
      ROOT c = f32[10] negate(b)
    })"),
            80);
}

TEST(MemoryTest, ADotWritesOverNothing) {
  EXPECT_EQ(PeakOf(R"(HloModule m
    ENTRY e {
      x = f32[10,10] parameter(0)
      a = f32[10,10] negate(x)
      ROOT b = f32[10,10] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })"),
            1200);
}

TEST(MemoryTest, DonatedArgumentsEnd) {
  constexpr std::string_view kBody = R"(
    ENTRY e {
      x = f32[10] parameter(0)
      ROOT a = f32[10] negate(x)
    })";
  EXPECT_EQ(PeakOf(std::string("HloModule m") + std::string(kBody)), 80);
  EXPECT_EQ(PeakOf(std::string("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }") + std::string(kBody)), 40);
}

TEST(MemoryTest, CalleesAddWhatTheyNeed) {
  const int64_t peak = PeakOf(R"(HloModule m
    cond { p = (s32[], f32[10]) parameter(0) ROOT c = pred[] constant(true) }
    body {
      p = (s32[], f32[10]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[10] get-tuple-element(p), index=1
      big = f32[10,10] broadcast(x), dimensions={0}
      row = f32[1,10] slice(big), slice={[0:1], [0:10]}
      y = f32[10] reshape(row)
      ROOT t = (s32[], f32[10]) tuple(i, y)
    }
    ENTRY e {
      i = s32[] parameter(0)
      x = f32[10] parameter(1)
      t = (s32[], f32[10]) tuple(i, x)
      ROOT w = (s32[], f32[10]) while(t), condition=cond, body=body
    })");
  EXPECT_GT(peak, 400);
}

TEST(DataflowAnalysisTest, LooksThroughTuples) {
  const auto module = Parse(R"(HloModule m
    ENTRY e {
      p = (f32[], (s32[], f32[2])) parameter(0)
      inner = (s32[], f32[2]) get-tuple-element(p), index=1
      two = f32[2] get-tuple-element(inner), index=1
      n = f32[2] negate(two)
      ROOT t = (f32[2], (s32[], f32[2])) tuple(n, inner)
    })");
  const auto flow = DataflowAnalysis::Create(*module, PostOrder(module->entry()));
  ASSERT_TRUE(flow.ok());
  const auto maker = [&](std::string_view name, size_t leaf) {
    const DataflowValue& value = flow->values()[flow->ValuesOf(Named(*module, name))[leaf]];
    return std::make_pair(std::string(module->instruction(value.defining_instruction).name()), value.leaf);
  };
  EXPECT_EQ(maker("two", 0), std::make_pair(std::string("p"), int64_t{2}));
  EXPECT_EQ(maker("t", 0), std::make_pair(std::string("n"), int64_t{0}));
  EXPECT_EQ(maker("t", 1), std::make_pair(std::string("p"), int64_t{1}));
}

}  // namespace
}  // namespace hlokit
