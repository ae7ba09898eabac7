// SPDX-License-Identifier: Apache-2.0
// Kernels with loops of their own for frequent cases agree with the reference evaluator there and beside.
#include <gtest/gtest.h>

#include <string>

#include "ir/core/str_cat.h"
#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::interp {
namespace {

void ExpectRuns(const std::string& text) {
  const TextRun run = RunText(text);
  EXPECT_EQ(run.error, "") << text;
  EXPECT_FALSE(run.results.empty());
}

TEST(TopKPathsTest, CandidatesAndSortsGiveTheFirstInOrder) {
  // Narrow types have many equal elements, whose order is that of their positions.
  for (const char* type : {"f32", "bf16", "f64", "s32", "u8", "s64"}) {
    for (int k : {1, 7, 300, 1500}) {
      for (const char* largest : {"true", "false"}) {
        ExpectRuns(StrCat("HloModule m\nENTRY e {\n  x = ", type, "[3,1500] parameter(0)\n  ROOT t = (", type, "[3,", k,
                          "], s32[3,", k, "]) topk(x), k=", k, ", largest=", largest, "\n}\n"));
      }
    }
  }
}

TEST(CumulativePathsTest, LinesBesideEachOtherAndRowsAgree) {
  for (const char* type : {"f32", "s32", "s64", "u8"}) {
    for (const char* op : {"add", "maximum", "multiply"}) {
      for (int lines : {1, 7, 8, 9, 40}) {
        for (const char* window : {"size=1x33 pad=0_0x32_0", "size=1x33 pad=0_0x0_32"}) {
          ExpectRuns(StrCat("HloModule m\nf {\n  a = ", type, "[] parameter(0)\n  b = ", type,
                            "[] parameter(1)\n  ROOT c = ", type, "[] ", op, "(a, b)\n}\nENTRY e {\n  x = ", type, "[",
                            lines, ",33] parameter(0)\n  i = ", type, "[] constant(1)\n  y = ", type, "[33,", lines,
                            "] transpose(x), dimensions={1,0}\n  s = ", type, "[", lines,
                            ",33] reduce-window(x, i), window={", window, "}, to_apply=f\n  z = ", type, "[33,", lines,
                            "] reduce-window(y, i), window={size=33x1 pad=32_0x0_0}, to_apply=f\n  ROOT r = (", type,
                            "[", lines, ",33], ", type, "[33,", lines, "]) tuple(s, z)\n}\n"));
        }
      }
    }
  }
}

TEST(ScatterPathsTest, ElementsAndRowsAreCombinedInOrder) {
  for (const char* type : {"f32", "f64", "s32", "u32", "s64", "u64", "bf16", "s8"}) {
    for (const char* index : {"s32", "u32", "s64", "s16"}) {
      for (const char* root : {"add(a, b)", "minimum(a, b)", "maximum(a, b)", "multiply(a, b)", "copy(b)"}) {
        // Indices from -2, or 0 where there are no negative ones, to 9, of 7 elements.
        ExpectRuns(StrCat("HloModule m\nf {\n  a = ", type, "[] parameter(0)\n  b = ", type,
                          "[] parameter(1)\n  ROOT c = ", type, "[] ", root, "\n}\nENTRY e {\n  x = ", type,
                          "[7] parameter(0)\n  u = ", type, "[60] parameter(1)\n  rows = ", type,
                          "[7,5] parameter(2)\n  v = ", type, "[60,5] parameter(3)\n  n = s32[60] iota(), ",
                          "iota_dimension=0\n  t = s32[] constant(12)\n  tb = s32[60] broadcast(t), dimensions={}\n",
                          "  m = s32[60] remainder(n, tb)\n  two = s32[] constant(2)\n  twos = s32[60] ",
                          "broadcast(two), dimensions={}\n  k = s32[60] subtract(m, twos)\n  i = ", index,
                          "[60] convert(k)\n  s = ", type,
                          "[7] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, ",
                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n  r = ", type,
                          "[7,5] scatter(rows, i, v), update_window_dims={1}, inserted_window_dims={0}, ",
                          "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n  ROOT all = (", type,
                          "[7], ", type, "[7,5]) tuple(s, r)\n}\n"));
      }
    }
  }
}

TEST(GatherPathsTest, LongRowsAreAskedForAhead) {
  ExpectRuns(R"(HloModule m
ENTRY e {
  x = f32[40,100] parameter(0)
  n = s32[70] iota(), iota_dimension=0
  i = s32[70] multiply(n, n)
  ROOT g = f32[70,100] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,100}
})");
}

}  // namespace
}  // namespace hlokit::interp
