// SPDX-License-Identifier: Apache-2.0
// The same bits on one thread and on several, for each way of sharing work among threads.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/interp/exact/run_text.h"

namespace hlokit::interp {
namespace {

void ExpectSameOnAnyThreads(std::string_view text) {
  EvaluatorOptions options;
  options.num_threads = 1;
  const TextRun one = RunText(text, "", options);
  EXPECT_EQ(one.error, "");
  for (int threads : {2, 3, 8}) {
    options.num_threads = threads;
    const TextRun several = RunText(text, "", options);
    EXPECT_EQ(several.error, "");
    EXPECT_EQ(several.results, one.results) << threads << " threads";
  }
}

TEST(ThreadsTest, LongReductionsToFewResults) {
  ExpectSameOnAnyThreads(R"(HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
largest {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] maximum(a, b)
}
ENTRY e {
  x = f32[1100,301] parameter(0)
  narrow = bf16[331100] parameter(1)
  zero = f32[] constant(0.5)
  low = bf16[] constant(-2)
  all = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  columns = f32[301] reduce(x, zero), dimensions={0}, to_apply=add
  counts = f32[400,7,400] iota(), iota_dimension=2
  middle = f32[7] reduce(counts, zero), dimensions={0,2}, to_apply=add
  most = bf16[] reduce(narrow, low), dimensions={0}, to_apply=largest
  ROOT r = (f32[], f32[301], f32[7], bf16[]) tuple(all, columns, middle, most)
})");
}

// One more than a whole number of chunks: the last one has a single element.
TEST(ThreadsTest, AChunkOfOne) {
  const std::string text = R"(HloModule m
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
ENTRY e {
  x = s32[196609] iota(), iota_dimension=0
  zero = s32[] constant(7)
  ROOT all = s32[] reduce(x, zero), dimensions={0}, to_apply=add
})";
  ExpectSameOnAnyThreads(text);
  // 196608 * 196609 / 2 + 7, modulo 2^32
  EXPECT_EQ(RunText(text).results[0], "s32[] -2147385337");
}

TEST(ThreadsTest, ALongLineSortedWithItsCompanion) {
  ExpectSameOnAnyThreads(R"(HloModule m
less {
  a = s8[] parameter(0)
  b = s8[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY e {
  keys = s8[100003] parameter(0)
  places = s32[100003] iota(), iota_dimension=0
  ROOT s = (s8[100003], s32[100003]) sort(keys, places), dimensions={0}, is_stable=true, to_apply=less
})");
}

TEST(ThreadsTest, RowsScatteredToTheSamePlaces) {
  ExpectSameOnAnyThreads(R"(HloModule m
mix {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  half = f32[] constant(0.5)
  c = f32[] multiply(a, half)
  ROOT s = f32[] add(c, b)
}
ENTRY e {
  table = f32[40,33] parameter(0)
  rows = s32[9000,1] parameter(1)
  updates = f32[9000,33] parameter(2)
  ROOT s = f32[40,33] scatter(table, rows, updates), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=mix
})");
}

// Windows of two rows overlap, so one worker applies them all.
TEST(ThreadsTest, OverlappingWindowsScattered) {
  ExpectSameOnAnyThreads(R"(HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  table = f32[40,33] parameter(0)
  rows = s32[9000,1] parameter(1)
  updates = f32[9000,2,33] parameter(2)
  ROOT s = f32[40,33] scatter(table, rows, updates), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
})");
}

TEST(ThreadsTest, ProductsOfAllProportions) {
  ExpectSameOnAnyThreads(R"(HloModule m
ENTRY e {
  a = f32[256,256] parameter(0)
  b = f32[256,256] parameter(1)
  thin = f32[3,5000] parameter(2)
  wide = f32[5000,700] parameter(3)
  image = f32[2,30,30,16] parameter(4)
  kernel = f32[3,3,16,40] parameter(5)
  square = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  long = f32[3,700] dot(thin, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[2,28,28,40] convolution(image, kernel), window={size=3x3}, dim_labels=b01f_01io->b01f
  ROOT r = (f32[256,256], f32[3,700], f32[2,28,28,40]) tuple(square, long, c)
})");
}

// The thread pool partitions work by the number of threads; results must not depend on where a chunk begins.
TEST(ThreadsTest, PiecesOfAnyLength) {
  ExpectSameOnAnyThreads(R"(HloModule m
ENTRY e {
  x = f32[1000003] parameter(0)
  y = bf16[1000003] convert(x)
  exponential = f32[1000003] exponential(x)
  tanh = bf16[1000003] tanh(y)
  sine = f32[1000003] sine(x)
  a = f32[257,300] parameter(1)
  b = f32[300,131] parameter(2)
  product = f32[257,131] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[1000003], bf16[1000003], f32[1000003], f32[257,131]) tuple(exponential, tanh, sine, product)
})");
}

}  // namespace
}  // namespace hlokit::interp
