// SPDX-License-Identifier: Apache-2.0
// Windows, reshapes, indexed access, control flow, and XLA's own calls.
#include "tests/unit/interp/dynamic/dynamic_programs.h"

namespace hlokit::interp {
namespace {

const Program kMorePrograms[] = {
    {"Convolution",
     R"(HloModule m
ENTRY e {
  p0 = s32[8,6,2] parameter(0)
  q0 = s32[3,8,2] parameter(1)
  s0 = s32[3,6,8] parameter(2)
  k0 = s32[3,2,4] parameter(3)
  g0 = s32[3,8,4] parameter(4)
  n = s32[] parameter(5)
  p = f32[8,6,2] convert(p0)
  q = f32[3,8,2] convert(q0)
  s = f32[3,6,8] convert(s0)
  k = f32[3,2,4] convert(k0)
  g = f32[3,8,4] convert(g0)
  a = f32[<=8,6,2] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:6], [0:2]}
  b = f32[3,<=8,2] set-dimension-size(q, n), dimensions={1} //= slice(q), slice={[0:3], [0:N], [0:2]}
  c = f32[3,6,<=8] set-dimension-size(s, n), dimensions={2} //= slice(s), slice={[0:3], [0:6], [0:N]}
  h = f32[3,<=8,4] set-dimension-size(g, n), dimensions={1} //= slice(g), slice={[0:3], [0:N], [0:4]}
  batch = f32[<=8,4,4] convolution(a, k), window={size=3}, dim_labels=b0f_0io->b0f
  space = f32[3,<=8,4] convolution(b, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
  half = f32[3,<=4,4] convolution(b, k), window={size=3 stride=2 pad=1_1 rhs_reversal=1}, dim_labels=b0f_0io->b0f
  wide = f32[3,<=15,4] convolution(b, k), window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f
  features = f32[3,4,4] convolution(c, h), window={size=3}, dim_labels=b0f_0io->b0f
  ROOT r = (f32[<=8,4,4], f32[3,<=8,4], f32[3,<=4,4], f32[3,<=15,4], f32[3,4,4]) tuple(batch, space, half, wide, features)
})",
     {{4, [](int64_t n) { return (n + 1) / 2; }}, {15, [](int64_t n) { return 2 * n - 1; }}},
     1},
    {"Windows",
     R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
first { a = s32[] parameter(0) i = s32[] parameter(1) b = s32[] parameter(2) j = s32[] parameter(3)
  l = pred[] compare(a, b), direction=LE
  v = s32[] select(l, a, b)
  k = s32[] select(l, i, j)
  ROOT c = (s32[], s32[]) tuple(v, k) }
ENTRY e {
  p = s32[8,3] parameter(0)
  q = s32[8,3] parameter(1)
  n = s32[] parameter(2)
  d = s32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  f = s32[<=8,3] set-dimension-size(q, n), dimensions={0} //= slice(q), slice={[0:N], [0:3]}
  zero = s32[] constant(0)
  most = s32[] constant(2147483647)
  running = s32[<=8,3] reduce-window(d, zero), window={size=8x1 pad=7_0x0_0}, to_apply=sum
  spread = s32[<=14,3] reduce-window(d, zero), window={size=2x1 lhs_dilate=2x1}, to_apply=sum
  w = (s32[<=8,3], s32[<=8,3]) reduce-window(d, f, most, most), window={size=3x1 pad=1_1x0_0}, to_apply=first
  x = s32[<=8,3] get-tuple-element(w), index=0
  y = s32[<=8,3] get-tuple-element(w), index=1
  ROOT r = (s32[<=8,3], s32[<=14,3], s32[<=8,3], s32[<=8,3]) tuple(running, spread, x, y)
})",
     {{14, [](int64_t n) { return 2 * n - 2; }}},
     1},
    {"SelectAndScatter",
     R"(HloModule m
ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GE }
lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[8,3] parameter(0)
  q = f32[4,3] parameter(1)
  n = s32[] parameter(2)
  one = s32[] constant(1)
  two = s32[] constant(2)
  m1 = s32[] add(n, one)
  m = s32[] divide(m1, two)
  d = f32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  s = f32[<=4,3] set-dimension-size(q, m), dimensions={0} //= slice(q), slice={[0:HALF], [0:3]}
  three = f32[] constant(3)
  most = f32[<=8,3] select-and-scatter(d, s, three), window={size=3x1 stride=2x1 pad=1_1x0_0}, select=ge, scatter=sum
  least = f32[<=8,3] select-and-scatter(d, s, three), window={size=3x1 stride=2x1 pad=1_1x0_0}, select=lt, scatter=sum
  ROOT r = (f32[<=8,3], f32[<=8,3]) tuple(most, least)
})",
     {{4, [](int64_t n) { return (n + 1) / 2; }}},
     1},
    {"Reorder",
     R"(HloModule m
ENTRY e {
  p = s32[3,8] parameter(0)
  q = s32[2,8,8,3] parameter(1)
  u = s32[24] parameter(2)
  n = s32[] parameter(3)
  three = s32[] constant(3)
  m = s32[] multiply(n, three)
  d = s32[3,<=8] set-dimension-size(p, n), dimensions={1} //= slice(p), slice={[0:3], [0:N]}
  b0 = s32[2,<=8,8,3] set-dimension-size(q, n), dimensions={1} //= slice(q), slice={[0:2], [0:N], [0:8], [0:3]}
  b = s32[2,<=8,<=8,3] set-dimension-size(b0, n), dimensions={2} //= slice(b0), slice={[0:2], [0:N], [0:N], [0:3]}
  f = s32[<=24] set-dimension-size(u, m), dimensions={0} //= slice(u), slice={[0:TRIPLE]}
  joined = s32[<=24] reshape(d)
  turned = s32[<=8,3] reshape(d)
  inner = s32[3,<=8] reshape(f)
  both = s32[2,<=64,3] reshape(b)
  all = s32[<=384] reshape(b)
  ROOT r = (s32[<=24], s32[<=8,3], s32[3,<=8], s32[2,<=64,3], s32[<=384]) tuple(joined, turned, inner, both, all)
})",
     {{24, [](int64_t n) { return 3 * n; }},
      {64, [](int64_t n) { return n * n; }},
      {384, [](int64_t n) { return 6 * n * n; }}}},
    {"DynamicReshape",
     R"(HloModule m
ENTRY e {
  p = s32[16] parameter(0)
  q = s32[2,8] parameter(1)
  n = s32[] parameter(2)
  two = s32[] constant(2)
  m = s32[] multiply(n, two)
  d = s32[<=16] set-dimension-size(p, m), dimensions={0} //= slice(p), slice={[0:DOUBLE]}
  f = s32[2,<=8] set-dimension-size(q, n), dimensions={1} //= slice(q), slice={[0:2], [0:N]}
  rows = s32[<=8,2] dynamic-reshape(d, n, two) //= reshape(d)
  columns = s32[2,<=8] dynamic-reshape(d, two, n) //= reshape(d)
  flat = s32[<=16] dynamic-reshape(f, m) //= reshape(f)
  ROOT r = (s32[<=8,2], s32[2,<=8], s32[<=16]) tuple(rows, columns, flat)
})",
     {{16, [](int64_t n) { return 2 * n; }}}},
    {"Written",
     R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[10,3] parameter(0)
  q = s32[8,3] parameter(1)
  i = s32[] parameter(2)
  t = s32[5,1] parameter(3)
  u = s32[5,2,3] parameter(4)
  v = s32[8,3] parameter(5)
  n = s32[] parameter(6)
  zero = s32[] constant(0)
  d = s32[<=8,3] set-dimension-size(q, n), dimensions={0} //= slice(q), slice={[0:N], [0:3]}
  f = s32[<=8,3] set-dimension-size(v, n), dimensions={0} //= slice(v), slice={[0:N], [0:3]}
  written = s32[10,3] dynamic-update-slice(p, d, i, zero)
  windows = s32[<=8,3] scatter(f, t, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  ROOT r = (s32[10,3], s32[<=8,3]) tuple(written, windows)
})",
     {},
     2},
    {"Batches",
     R"(HloModule m
ENTRY e {
  p = s32[8,5] parameter(0)
  i = s32[8,2,1] parameter(1)
  x = f32[8,3,3] parameter(2)
  y = f32[8,6] parameter(3)
  n = s32[] parameter(4)
  d = s32[<=8,5] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:5]}
  k = s32[<=8,2,1] set-dimension-size(i, n), dimensions={0} //= slice(i), slice={[0:N], [0:2], [0:1]}
  z = f32[<=8,3,3] set-dimension-size(x, n), dimensions={0} //= slice(x), slice={[0:N], [0:3], [0:3]}
  w = f32[<=8,6] set-dimension-size(y, n), dimensions={0} //= slice(y), slice={[0:N], [0:6]}
  points = s32[<=8,2] gather(d, k), offset_dims={}, collapsed_slice_dims={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, start_index_map={1}, index_vector_dim=2, slice_sizes={1,1}
  t = f32[<=8,3,3] transpose(z), dimensions={0,2,1}
  square = f32[<=8,3,3] dot(z, t), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
  factor = f32[<=8,3,3] cholesky(square), lower=true
  solved = f32[<=8,3,3] triangular-solve(factor, z), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
  best = (f32[<=8,2], s32[<=8,2]) topk(w), k=2, largest=true
  values = f32[<=8,2] get-tuple-element(best), index=0
  waves = c64[<=8,4] fft(w), fft_type=RFFT, fft_length={6}
  ROOT r = (s32[<=8,2], f32[<=8,3,3], f32[<=8,3,3], f32[<=8,2], c64[<=8,4]) tuple(points, factor, solved, values, waves)
})",
     {},
     1},
    {"Branches", R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
part { x = (s32[8], s32[]) parameter(0)
  a = s32[8] get-tuple-element(x), index=0
  m = s32[] get-tuple-element(x), index=1
  ROOT d = s32[<=8] set-dimension-size(a, m), dimensions={0} //= slice(a), slice={[0:N]}
}
half { x = (s32[8], s32[]) parameter(0)
  a = s32[8] get-tuple-element(x), index=0
  m = s32[] get-tuple-element(x), index=1
  b = s32[<=8] set-dimension-size(a, m), dimensions={0} //= slice(a), slice={[0:N]}
  ROOT d = s32[<=8] negate(b)
}
ENTRY e {
  p = s32[8] parameter(0)
  c = pred[] parameter(1)
  i = s32[] parameter(2)
  n = s32[] parameter(3)
  s = (s32[8], s32[]) tuple(p, n)
  z = s32[<=8] conditional(c, s, s), true_computation=part, false_computation=half
  y = s32[<=8] conditional(i, s, s), branch_computations={half, part}
  zero = s32[] constant(0)
  t = s32[] reduce(z, zero), dimensions={0}, to_apply=sum
  ROOT r = (s32[], s32[<=8]) tuple(t, y)
})"},
    {"Elementwise", R"(HloModule m
twice { a = s32[] parameter(0) ROOT b = s32[] add(a, a) }
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
fused { x = s32[<=8,3] parameter(0)
  y = s32[<=8,3] multiply(x, x)
  zero = s32[] constant(0)
  ROOT z = s32[3] reduce(y, zero), dimensions={0}, to_apply=sum }
ENTRY e {
  p = s32[8,3] parameter(0)
  q = s32[8,3] parameter(1)
  n = s32[] parameter(2)
  d = s32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  f = s32[<=8,3] set-dimension-size(q, n), dimensions={0} //= slice(q), slice={[0:N], [0:3]}
  m = s32[<=8,3] map(d), dimensions={0,1}, to_apply=twice
  c = pred[<=8,3] compare(m, f), direction=LT
  s = s32[<=8,3] select(c, m, f)
  x = f32[<=8,3] convert(s)
  y = s32[<=8,3] bitcast-convert(x)
  z = s32[<=8,3] copy(y)
  o = s32[<=8,3] opt-barrier(z)
  t = s32[3] fusion(o), kind=kInput, calls=fused
  ROOT r = (s32[<=8,3], s32[3]) tuple(o, t)
})"},
    {"Boundary", R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[8,3] parameter(0)
  n = s32[] parameter(1)
  three = s32[] constant(3)
  d = s32[<=8,3] custom-call(p, n, three), custom_call_target="SliceToDynamic" //= slice(p), slice={[0:N], [0:3]}
  x = s32[<=8,3] negate(d)
  t = (s32[8,3],s32[],s32[]) custom-call(x), custom_call_target="PadToStatic" //= tuple(p, n, three)
  rows = s32[] get-tuple-element(t), index=1
  columns = s32[] get-tuple-element(t), index=2
  zero = s32[] constant(0)
  k = s32[3] reduce(x, zero), dimensions={0}, to_apply=sum
  ROOT r = (s32[<=8,3], s32[], s32[], s32[3]) tuple(x, rows, columns, k)
})"},
    {"AllReduce", R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[8] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=8] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N]}
  g = s32[<=8] all-reduce(d), replica_groups={{0}}, to_apply=sum
  zero = s32[] constant(0)
  t = s32[] reduce(g, zero), dimensions={0}, to_apply=sum
  ROOT r = (s32[], s32[<=8]) tuple(t, g)
})"},
    {"Parameters",
     R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = (s32[<=8,3], s32[2]) parameter(0)
  q = s32[3,<=8] parameter(1)
  n = s32[] parameter(2)
  d = s32[<=8,3] get-tuple-element(p), index=0
  zero = s32[] constant(0)
  t = s32[3] reduce(d, zero), dimensions={0}, to_apply=sum
  c = s32[3,3] dot(q, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = s32[<=16,3] concatenate(d, d), dimensions={0}
  ROOT r = (s32[3], s32[3,3], s32[<=16,3], s32[3,<=8]) tuple(t, c, b, q)
})",
     {{16, [](int64_t n) { return 2 * n; }}}},
    // The last start, 22, is no value of the starts' type.
    {"NarrowStarts",
     R"(HloModule m
ENTRY e {
  p = s32[24] parameter(0)
  u = s32[2] parameter(1)
  s = s4[] parameter(2)
  n = s32[] parameter(3)
  three = s32[] constant(3)
  m = s32[] multiply(n, three)
  d = s32[<=24] set-dimension-size(p, m), dimensions={0} //= slice(p), slice={[0:TRIPLE]}
  x = s32[2] dynamic-slice(d, s), dynamic_slice_sizes={2}
  y = s32[<=24] dynamic-update-slice(d, u, s)
  ROOT r = (s32[2], s32[<=24]) tuple(x, y)
})",
     {{24, [](int64_t n) { return 3 * n; }}},
     1},
    // Strides beyond the dimension, and beyond 32 bits.
    {"LongStrides",
     R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[8,3] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  zero = s32[] constant(0)
  far = s32[<=1,3] reduce-window(d, zero), window={size=2x1 stride=9x1}, to_apply=sum
  farther = s32[<=1,3] reduce-window(d, zero), window={size=2x1 stride=1000000000000x1}, to_apply=sum
  ROOT r = (s32[<=1,3], s32[<=1,3]) tuple(far, farther)
})",
     {{1, [](int64_t n) { return n >= 2 ? 1 : 0; }}}},
};

}  // namespace

absl::Span<const Program> MoreDynamicPrograms() { return kMorePrograms; }

}  // namespace hlokit::interp
