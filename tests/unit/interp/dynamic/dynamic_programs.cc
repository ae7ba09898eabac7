// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/interp/dynamic/dynamic_programs.h"

namespace hlokit::interp {
namespace {

const Program kPrograms[] = {
    {"Reduce", R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[8,3] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  x = s32[<=8,3] negate(d)
  t = s32[3,<=8] transpose(x), dimensions={1,0}
  b = s32[2,3,<=8] broadcast(t), dimensions={1,2}
  size = s32[] get-dimension-size(b), dimensions={2}
  zero = s32[] constant(0)
  r = s32[2,3] reduce(b, zero), dimensions={2}, to_apply=sum
  k = s32[<=8] reduce(x, zero), dimensions={1}, to_apply=sum
  ROOT u = (s32[2,3], s32[<=8], s32[]) tuple(r, k, size)
})"},
    {"ReduceOfTwo", R"(HloModule m
least { a = s32[] parameter(0) i = s32[] parameter(1) b = s32[] parameter(2) j = s32[] parameter(3)
  l = pred[] compare(a, b), direction=LE
  v = s32[] select(l, a, b)
  k = s32[] select(l, i, j)
  ROOT c = (s32[], s32[]) tuple(v, k) }
ENTRY e {
  p = s32[8] parameter(0)
  q = s32[8] parameter(1)
  n = s32[] parameter(2)
  d = s32[<=8] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N]}
  f = s32[<=8] set-dimension-size(q, n), dimensions={0} //= slice(q), slice={[0:N]}
  most = s32[] constant(2147483647)
  ROOT r = (s32[], s32[]) reduce(d, f, most, most), dimensions={0}, to_apply=least
})"},
    {"Dot", R"(HloModule m
ENTRY e {
  p = s32[4,8] parameter(0)
  q = s32[8,4] parameter(1)
  n = s32[] parameter(2)
  a = s32[4,<=8] set-dimension-size(p, n), dimensions={1} //= slice(p), slice={[0:4], [0:N]}
  b = s32[<=8,4] set-dimension-size(q, n), dimensions={0} //= slice(q), slice={[0:N], [0:4]}
  c = s32[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = s32[<=8,<=8] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[4,4], s32[<=8,<=8]) tuple(c, d)
})"},
    {"ReduceWindow",
     R"(HloModule m
most { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] maximum(a, b) }
ENTRY e {
  p = s32[8,3] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  least = s32[] constant(-2147483648)
  same = s32[<=8,3] reduce-window(d, least), window={size=3x1 pad=1_1x0_0}, to_apply=most
  half = s32[<=4,2] reduce-window(d, least), window={size=2x2 stride=2x1}, to_apply=most
  wide = s32[<=6,3] reduce-window(d, least), window={size=2x1 pad=0_0x0_0 rhs_dilate=2x1}, to_apply=most
  ROOT r = (s32[<=8,3], s32[<=4,2], s32[<=6,3]) tuple(same, half, wide)
})",
     {{4, [](int64_t n) { return n / 2; }}, {6, [](int64_t n) { return n - 2; }}},
     2},
    {"Sort", R"(HloModule m
less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
more { a = s32[] parameter(0) b = s32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=GT }
ENTRY e {
  p = s32[3,8] parameter(0)
  q = s32[3,8] parameter(1)
  n = s32[] parameter(2)
  d = s32[3,<=8] set-dimension-size(p, n), dimensions={1} //= slice(p), slice={[0:3], [0:N]}
  f = s32[3,<=8] set-dimension-size(q, n), dimensions={1} //= slice(q), slice={[0:3], [0:N]}
  one = s32[3,<=8] sort(d), dimensions={1}, to_apply=less
  other = s32[3,<=8] sort(d), dimensions={0}, to_apply=less
  two = (s32[3,<=8], s32[3,<=8]) sort(d, f), dimensions={1}, is_stable=true, to_apply=more
  x = s32[3,<=8] get-tuple-element(two), index=0
  y = s32[3,<=8] get-tuple-element(two), index=1
  ROOT r = (s32[3,<=8], s32[3,<=8], s32[3,<=8], s32[3,<=8]) tuple(one, other, x, y)
})"},
    {"Gather",
     R"(HloModule m
ENTRY e {
  p = s32[8,5] parameter(0)
  i = s32[8,1] parameter(1)
  j = s32[4,2] parameter(2)
  n = s32[] parameter(3)
  d = s32[<=8,5] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:5]}
  k = s32[<=8,1] set-dimension-size(i, n), dimensions={0} //= slice(i), slice={[0:N], [0:1]}
  rows = s32[<=8,5] gather(d, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}
  columns = s32[<=8,<=8] gather(d, k), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={8,1} //= gather(d, k), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={N,1}
  points = s32[4] gather(d, j), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,1}
  ROOT r = (s32[<=8,5], s32[<=8,<=8], s32[4]) tuple(rows, columns, points)
})",
     {},
     1},
    {"Scatter", R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[5,3] parameter(0)
  i = s32[8,1] parameter(1)
  u = s32[8,3] parameter(2)
  q = s32[8,3] parameter(3)
  v = s32[8,8] parameter(4)
  w = s32[3,8] parameter(5)
  n = s32[] parameter(6)
  k = s32[<=8,1] set-dimension-size(i, n), dimensions={0} //= slice(i), slice={[0:N], [0:1]}
  d = s32[<=8,3] set-dimension-size(u, n), dimensions={0} //= slice(u), slice={[0:N], [0:3]}
  f = s32[<=8,3] set-dimension-size(q, n), dimensions={0} //= slice(q), slice={[0:N], [0:3]}
  h = s32[3,<=8] set-dimension-size(w, n), dimensions={1} //= slice(w), slice={[0:3], [0:N]}
  g0 = s32[8,<=8] set-dimension-size(v, n), dimensions={1} //= slice(v), slice={[0:8], [0:N]}
  g = s32[<=8,<=8] set-dimension-size(g0, n), dimensions={0} //= slice(g0), slice={[0:N], [0:N]}
  a = s32[5,3] scatter(p, k, d), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  b = s32[<=8,3] scatter(f, k, d), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  c = s32[3,<=8] scatter(h, k, g), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
  ROOT r = (s32[5,3], s32[<=8,3], s32[3,<=8]) tuple(a, b, c)
})"},
    {"Concatenate",
     R"(HloModule m
ENTRY e {
  p = s32[8,3] parameter(0)
  q = s32[2,3] parameter(1)
  n = s32[] parameter(2)
  d = s32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  x = s32[<=8,3] negate(d)
  a = s32[<=20,3] concatenate(q, d, q, x), dimensions={0}
  b = s32[<=8,6] concatenate(d, x), dimensions={1}
  ROOT r = (s32[<=20,3], s32[<=8,6]) tuple(a, b)
})",
     {{20, [](int64_t n) { return 2 * n + 4; }}}},
    {"Reshape",
     R"(HloModule m
ENTRY e {
  p = s32[2,8,3] parameter(0)
  q = s32[2,24] parameter(1)
  n = s32[] parameter(2)
  three = s32[] constant(3)
  m = s32[] multiply(n, three)
  d = s32[2,<=8,3] set-dimension-size(p, n), dimensions={1} //= slice(p), slice={[0:2], [0:N], [0:3]}
  f = s32[2,<=24] set-dimension-size(q, m), dimensions={1} //= slice(q), slice={[0:2], [0:TRIPLE]}
  same = s32[1,2,<=8,1,3] reshape(d)
  joined = s32[2,<=24] reshape(d)
  split = s32[2,<=8,3] reshape(f)
  ROOT r = (s32[1,2,<=8,1,3], s32[2,<=24], s32[2,<=8,3]) tuple(same, joined, split)
})",
     {{24, [](int64_t n) { return 3 * n; }}}},
    {"Cut",
     R"(HloModule m
ENTRY e {
  p = s32[8,3] parameter(0)
  v = s32[] parameter(1)
  i = s32[] parameter(2)
  u = s32[2,3] parameter(3)
  n = s32[] parameter(4)
  zero = s32[] constant(0)
  d = s32[<=8,3] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N], [0:3]}
  padded = s32[<=11,4] pad(d, v), padding=1_2x0_1
  between = s32[<=16,3] pad(d, v), padding=0_1_1x0_0
  shorter = s32[<=6,3] pad(d, v), padding=-1_-1x0_0
  turned = s32[<=8,3] reverse(d), dimensions={0,1}
  part = s32[2,3] dynamic-slice(d, i, zero), dynamic_slice_sizes={2,3}
  column = s32[<=8,1] dynamic-slice(d, zero, i), dynamic_slice_sizes={8,1} //= dynamic-slice(d, zero, i), dynamic_slice_sizes={N,1}
  written = s32[<=8,3] dynamic-update-slice(d, u, i, zero)
  ROOT r = (s32[<=11,4], s32[<=16,3], s32[<=6,3], s32[<=8,3], s32[2,3], s32[<=8,1], s32[<=8,3]) tuple(padded, between, shorter, turned, part, column, written)
})",
     {{11, [](int64_t n) { return n + 3; }},
      {16, [](int64_t n) { return 2 * n; }},
      {6, [](int64_t n) { return n - 2; }}},
     2},
    {"While", R"(HloModule m
more { s = (s32[], s32[<=8], s32[<=8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT }
next { s = (s32[], s32[<=8], s32[<=8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s32[<=8] get-tuple-element(s), index=1
  y = s32[<=8] get-tuple-element(s), index=2
  t = s32[] get-tuple-element(s), index=3
  size = s32[] get-dimension-size(y), dimensions={0}
  u = s32[] add(t, size)
  one = s32[] constant(1)
  k = s32[] add(i, one)
  z = s32[<=8] add(x, y)
  ROOT r = (s32[], s32[<=8], s32[<=8], s32[]) tuple(k, y, z, u) }
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
ENTRY e {
  p = s32[8] parameter(0)
  n = s32[] parameter(1)
  d = s32[<=8] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N]}
  x = s32[<=8] negate(d)
  zero = s32[] constant(0)
  s = (s32[], s32[<=8], s32[<=8], s32[]) tuple(zero, d, x, zero)
  w = (s32[], s32[<=8], s32[<=8], s32[]) while(s), condition=more, body=next
  y = s32[<=8] get-tuple-element(w), index=2
  u = s32[] get-tuple-element(w), index=3
  t = s32[] reduce(y, zero), dimensions={0}, to_apply=sum
  ROOT r = (s32[], s32[], s32[<=8]) tuple(t, u, y)
})"},
    {"Calls", R"(HloModule m
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
total { x = s32[<=8] parameter(0) y = s32[] parameter(1)
  ROOT t = s32[] reduce(x, y), dimensions={0}, to_apply=sum }
double { x = s32[<=8] parameter(0) ROOT y = s32[<=8] add(x, x) }
both { x = (s32[<=8], s32[]) parameter(0)
  a = s32[<=8] get-tuple-element(x), index=0
  b = s32[<=8] negate(a)
  ROOT r = (s32[<=8], s32[<=8]) tuple(b, a) }
turn { x = (s32[<=8], s32[]) parameter(0)
  a = s32[<=8] get-tuple-element(x), index=0
  b = s32[<=8] reverse(a), dimensions={0}
  ROOT r = (s32[<=8], s32[<=8]) tuple(a, b) }
ENTRY e {
  p = s32[8] parameter(0)
  c = pred[] parameter(1)
  n = s32[] parameter(2)
  d = s32[<=8] set-dimension-size(p, n), dimensions={0} //= slice(p), slice={[0:N]}
  zero = s32[] constant(0)
  t = s32[] call(d, zero), to_apply=total
  x = s32[<=8] call(d), to_apply=double
  s = (s32[<=8], s32[]) tuple(x, t)
  z = (s32[<=8], s32[<=8]) conditional(c, s, s), true_computation=both, false_computation=turn
  a = s32[<=8] get-tuple-element(z), index=0
  b = s32[<=8] get-tuple-element(z), index=1
  ROOT r = (s32[], s32[<=8], s32[<=8]) tuple(t, a, b)
})"},
};

}  // namespace

absl::Span<const Program> DynamicPrograms() { return kPrograms; }

}  // namespace hlokit::interp
