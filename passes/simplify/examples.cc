// SPDX-License-Identifier: Apache-2.0
// Small programs that show the passes of this library at work, for the documentation.
#include "passes/simplify/examples.h"

#include <string>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

struct Example {
  std::string_view pass;
  std::string_view text;
};

constexpr Example kExamples[] = {
    {"simplify-fp-conversions", R"(ENTRY e {
  p = f32[4] parameter(0)
  a = bf16[4] convert(p), metadata={op_name="f/narrow"}
  b = f32[4] convert(a), metadata={op_name="f/wide"}
  x = f32[4] exponential(b), metadata={op_name="f/exp"}
  c = f16[4] convert(x), metadata={op_name="f/half"}
  d = f64[4] convert(c), metadata={op_name="f/double"}
  ROOT t = (f32[4], f64[4]) tuple(x, d)
})"},
    {"float-normalization", R"(ENTRY e {
  p = f8e4m3fn[4] parameter(0)
  q = f8e4m3fn[4] parameter(1)
  r = f8e5m2[4] parameter(2)
  s = f8e4m3fn[4] multiply(p, q), metadata={op_name="f/mul"}
  n = f8e5m2[4] negate(r), metadata={op_name="f/neg"}
  c = pred[4] compare(p, q), direction=LT, metadata={op_name="f/lt"}
  ROOT t = (f8e4m3fn[4], f8e5m2[4], pred[4]) tuple(s, n, c)
})"},
    {"element-type-converter", R"(ENTRY e {
  a = bf16[2,3] parameter(0)
  b = bf16[3,2] parameter(1)
  d = bf16[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/dot"}
  s = bf16[2,2] add(d, d), metadata={op_name="f/add"}
  ROOT t = bf16[2,2] transpose(s), dimensions={1,0}, metadata={op_name="f/transpose"}
})"},
    {"change-op-data-type", R"(ENTRY e {
  a = f16[2,3] parameter(0)
  b = f16[3,2] parameter(1)
  d = f16[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, metadata={op_name="f/dot"}
  ROOT s = f16[2,2] add(d, d), metadata={op_name="f/add"}
})"},
    {"operand-upcaster", R"(ENTRY e {
  a = s8[2,3] parameter(0)
  b = s8[3,2] parameter(1)
  c = bf16[2,3] parameter(2)
  f = f32[3,2] parameter(3)
  g = f16[3,2] parameter(4)
  d = s32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/int"}
  h = f32[2,2] dot(c, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/float"}
  m = f32[3,3] dot(f, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/mixed"}
  ROOT t = (s32[2,2], f32[2,2], f32[3,3]) tuple(d, h, m)
})"},
    {"result-caster", R"(ENTRY e {
  a = f32[2,3] parameter(0)
  b = f32[3,2] parameter(1)
  ROOT d = bf16[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/dot"}
})"},
    {"sharding-remover", R"(ENTRY e {
  p = f32[4,2] parameter(0), sharding={devices=[2,1]<=[2]}, metadata={op_name="f/p"}
  x = f32[4,2] exponential(p), sharding={replicated}, metadata={op_name="f/exp"}
  s = f32[4,2] custom-call(x), custom_call_target="Sharding", sharding={devices=[1,2]<=[2]}, metadata={op_name="f/constraint"}
  m = f32[4,2] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}, metadata={op_name="f/shard"}
  y = f32[4,2] negate(m), metadata={op_name="f/neg"}
  ROOT r = f32[4,2] custom-call(y), custom_call_target="SPMDShardToFullShape", sharding={replicated}, metadata={op_name="f/full"}
})"},
    {"control-dep-remover", R"(ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] exponential(p), metadata={op_name="f/exp"}
  b = f32[4] negate(p), control-predecessors={a}, metadata={op_name="f/neg"}
  c = f32[4] cosine(p), control-predecessors={a, b}, metadata={op_name="f/cos"}
  s = f32[4] subtract(a, b)
  ROOT r = f32[4] multiply(s, c), metadata={op_name="f/mul"}
})"},
    {"hlo-descheduler", R"(HloModule scheduled, is_scheduled=true
ENTRY e {
  p = f32[4] parameter(0)
  k = f32[4] constant({1, 2, 3, 4})
  a = f32[4] exponential(p), metadata={op_name="f/exp"}
  ROOT r = f32[4] subtract(a, k), metadata={op_name="f/sub"}
})"},
    {"constant-deferring", R"(HloModule deferred, is_scheduled=true
ENTRY e {
  k = f32[2] constant({3, 5}), metadata={op_name="f/k"}
  l = f32[2] constant({7, 11}), metadata={op_name="f/l"}
  p = f32[2] parameter(0)
  a = f32[2] exponential(p), metadata={op_name="f/exp"}
  b = f32[2] negate(a), metadata={op_name="f/neg"}
  m = f32[2] constant({-1, -4})
  c = f32[2] multiply(b, m)
  d = f32[2] clamp(k, c, l), metadata={op_name="f/clamp"}
  ROOT r = f32[2] subtract(d, k), metadata={op_name="f/sub"}
})"},
    {"fusion-constant-sinking", R"(fused {
  x = f32[3] parameter(0)
  k = f32[] parameter(1), metadata={op_name="f/k"}
  l = f32[] parameter(2)
  ks = f32[3] broadcast(k), dimensions={}
  ls = f32[3] broadcast(l), dimensions={}
  y = f32[3] multiply(x, ks), metadata={op_name="f/mul"}
  ROOT z = f32[3] subtract(y, ls), metadata={op_name="f/sub"}
}
ENTRY e {
  p = f32[3] parameter(0)
  three = f32[] constant(3), metadata={op_name="f/three"}
  five = f32[] constant(5)
  f = f32[3] fusion(p, three, five), kind=kLoop, calls=fused, metadata={op_name="f/fusion"}
  fives = f32[3] broadcast(five), dimensions={}
  ROOT r = f32[3] divide(f, fives)
})"},
    {"conditional-code-motion", R"(up {
  x = f32[2] parameter(0)
  e = f32[2] exponential(x), metadata={op_name="f/exp"}
  ROOT t = (f32[2]) tuple(e)
}
down {
  x = f32[2] parameter(0)
  n = f32[2] negate(x), metadata={op_name="f/down"}
  e = f32[2] exponential(n), metadata={op_name="f/exp"}
  ROOT t = (f32[2]) tuple(e)
}
ENTRY e {
  c = pred[] parameter(0)
  p = f32[2] parameter(1)
  w = (f32[2]) conditional(c, p, p), true_computation=up, false_computation=down
  ROOT r = f32[2] get-tuple-element(w), index=0
})"},
    {"conditional-canonicalizer", R"(up {
  x = f32[2] parameter(0)
  ROOT y = f32[2] exponential(x), metadata={op_name="f/up"}
}
down {
  x = f32[2] parameter(0)
  ROOT y = f32[2] negate(x), metadata={op_name="f/down"}
}
ENTRY e {
  c = pred[] parameter(0)
  p = f32[2] parameter(1)
  w = f32[2] conditional(c, p, p), true_computation=up, false_computation=down, metadata={op_name="f/cond"}
  ROOT r = f32[2] subtract(w, p)
})"},
    {"conditional-to-select", R"(inner_true {
  x = f32[] parameter(0)
  ROOT y = f32[] exponential(x), metadata={op_name="f/exp"}
}
inner_false {
  x = f32[] parameter(0)
  ROOT y = f32[] sine(x), metadata={op_name="f/sin"}
}
outer_true {
  x = f32[] parameter(0)
  one = f32[] constant(1)
  c = pred[] compare(x, one), direction=GT
  ROOT y = f32[] conditional(c, x, x), true_computation=inner_true, false_computation=inner_false, metadata={op_name="f/inner"}
}
outer_false {
  x = f32[] parameter(0)
  ROOT y = f32[] negate(x), metadata={op_name="f/neg"}
}
each {
  x = f32[] parameter(0)
  zero = f32[] constant(0)
  c = pred[] compare(x, zero), direction=GT
  ROOT y = f32[] conditional(c, x, x), true_computation=outer_true, false_computation=outer_false, metadata={op_name="f/outer"}
}
ENTRY e {
  p = f32[4] parameter(0)
  ROOT m = f32[4] map(p), dimensions={0}, to_apply=each, metadata={op_name="f/map"}
})"},
    {"while-loop-trip-count-annotator", R"(cond {
  s = (s32[], f32[2,2], f32[2,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[2,2], f32[2,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[2,2] get-tuple-element(s), index=1
  b = f32[2,3] get-tuple-element(s), index=2
  two = s32[] constant(2)
  next = s32[] add(i, two)
  next_b = f32[2,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/while/dot"}
  ROOT t = (s32[], f32[2,2], f32[2,3]) tuple(next, a, next_b)
}
ENTRY e {
  a = f32[2,2] parameter(0)
  b = f32[2,3] parameter(1)
  start = s32[] constant(1)
  init = (s32[], f32[2,2], f32[2,3]) tuple(start, a, b)
  w = (s32[], f32[2,2], f32[2,3]) while(init), condition=cond, body=body, metadata={op_name="f/while"}
  ROOT r = f32[2,3] get-tuple-element(w), index=2
})"},
    {"while-loop-expensive-invariant-code-motion", R"(cond {
  s = (s32[], f32[2], f32[2,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[2], f32[2,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[2] get-tuple-element(s), index=1
  b = f32[2,2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  n = f32[2] negate(a), metadata={op_name="f/while/neg"}
  d = f32[2,2] dot(a, n), metadata={op_name="f/while/dot"}
  c = f32[2,2] subtract(d, b), metadata={op_name="f/while/sub"}
  ROOT t = (s32[], f32[2], f32[2,2]) tuple(next, a, c)
}
ENTRY e {
  a = f32[2] parameter(0)
  b = f32[2,2] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[2], f32[2,2]) tuple(zero, a, b)
  w = (s32[], f32[2], f32[2,2]) while(init), condition=cond, body=body, metadata={op_name="f/while"}
  ROOT r = f32[2,2] get-tuple-element(w), index=2
})"},
    {"control-flow-flattening", R"(cond {
  s = (f32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  n = f32[] constant(100)
  ROOT lt = pred[] compare(x, n), direction=LT, metadata={op_name="f/while/cond"}
}
body {
  s = (f32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  y = f32[] abs(x)
  three = f32[] constant(3)
  z = f32[] add(y, three), metadata={op_name="f/while/add"}
  minus = s32[] negate(k)
  ROOT t = (f32[], s32[]) tuple(z, minus)
}
ENTRY e {
  x = f32[] parameter(0)
  k = s32[] parameter(1)
  init = (f32[], s32[]) tuple(x, k)
  ROOT w = (f32[], s32[]) while(init), condition=cond, body=body, metadata={op_name="f/while"}
})"},
    {"dynamic-index-splitter", R"(ENTRY e {
  p = f32[5,3] parameter(0)
  i = s32[2] parameter(1)
  u = f32[1,3] parameter(2)
  s = f32[2,2] dynamic-slice(p, i), dynamic_slice_sizes={2,2}, metadata={op_name="f/slice"}
  v = f32[5,3] dynamic-update-slice(p, u, i), metadata={op_name="f/update"}
  ROOT t = (f32[2,2], f32[5,3]) tuple(s, v)
})"},
    {"scatter-simplifier", R"(sub {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  d = f32[] subtract(x, y)
  two = f32[] constant(2)
  ROOT m = f32[] multiply(d, two), metadata={op_name="f/combine"}
}
ENTRY e {
  p = f32[3,4,2] parameter(0)
  i = s32[2,2,3] constant({{{1,2,3},{0,1,2}},{{2,1,0},{2,1,1}}})
  u = f32[2,2,3] parameter(1)
  ROOT s = f32[3,4,2] scatter(p, i, u), update_window_dims={0}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=sub, metadata={op_name="f/scatter"}
})"},
    {"batch-dot-simplification", R"(ENTRY e {
  a = f32[1,2,3,4] parameter(0)
  b = f32[2,1,4,5] parameter(1)
  c = f32[1,3] parameter(2)
  d = f32[3,1] parameter(3)
  x = f32[1,2,3,5] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={1,0}, lhs_contracting_dims={3}, rhs_contracting_dims={2}, metadata={op_name="f/dot"}
  y = f32[1] dot(c, d), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, metadata={op_name="f/inner"}
  ROOT t = (f32[1,2,3,5], f32[1]) tuple(x, y)
})"},
    {"bfloat16-propagation", R"(ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  x = f32[8] exponential(p), metadata={op_name="f/exp"}
  both = f32[16] concatenate(x, q), dimensions={0}, metadata={op_name="f/both"}
  m = f32[16] maximum(both, both), metadata={op_name="f/max"}
  ROOT r = bf16[16] convert(m), metadata={op_name="f/narrow"}
})"},
    {"dot-merger", R"(ENTRY e {
  a = f32[2,3] parameter(0)
  b = f32[3,4] parameter(1)
  c = f32[3,5] parameter(2)
  d = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[2,5] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[2,4], f32[2,5]) tuple(d, e)
})"},
    {"algsimp", R"(ENTRY e {
  p = f32[4] parameter(0)
  n = f32[4] negate(p), metadata={op_name="f/neg"}
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={}
  sum = f32[4] add(n, zeros), metadata={op_name="f/add"}
  ROOT r = f32[4] exponential(sum), metadata={op_name="f/exp"}
})"},
    {"bf16-normalization", R"(ENTRY e {
  p = bf16[4] parameter(0)
  q = bf16[4] parameter(1)
  ROOT r = bf16[4] multiply(p, q), metadata={op_name="f/mul"}
})"},
    {"computation-deduplicator", R"(add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y), metadata={op_name="f/first"}
}
add.1 {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y), metadata={op_name="f/second"}
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  zero = f32[] constant(0)
  a = f32[] reduce(p, zero), dimensions={0}, to_apply=add
  b = f32[] reduce(q, zero), dimensions={0}, to_apply=add.1
  ROOT r = f32[] multiply(a, b)
})"},
    {"conditional-simplifier", R"(yes {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x), metadata={op_name="f/neg"}
}
no {
  x = f32[4] parameter(0)
  ROOT n = f32[4] abs(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  t = pred[] constant(true)
  ROOT r = f32[4] conditional(t, p, p), true_computation=yes, false_computation=no, metadata={op_name="main/cond"}
})"},
    {"convert-mover", R"(ENTRY e {
  p = f32[4,8] parameter(0)
  q = bf16[4,8] parameter(1)
  t = f32[8,4] transpose(p), dimensions={1,0}, metadata={op_name="f/t"}
  n = bf16[8,4] convert(t), metadata={op_name="f/narrow"}
  w = f32[4,8] convert(q)
  u = f32[32] reshape(w)
  ROOT r = (bf16[8,4], f32[32]) tuple(n, u)
})"},
    {"cse", R"(ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] add(p, q), metadata={op_name="f/a"}
  b = f32[4] add(q, p), metadata={op_name="f/b"}
  ROOT r = f32[4] multiply(a, b)
})"},
    {"dce", R"(add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] negate(p)
  b = f32[4] abs(a)
  ROOT r = f32[4] negate(p)
})"},
    {"dead-parameter-removal", R"(f {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT n = f32[4] negate(y)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  ROOT a = f32[4] call(p, q), to_apply=f
})"},
    {"dynamic-dimension-simplifier", R"(ENTRY e {
  p = f32[4,8] parameter(0)
  s = s32[] get-dimension-size(p), dimensions={0}
  ROOT r = s32[] negate(s)
})"},
    {"dynamic-padder", R"(sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  p = f32[8] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=8] set-dimension-size(p, n), dimensions={0}, metadata={op_name="f/resize"}
  x = f32[<=8] exponential(d), metadata={op_name="f/exp"}
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum, metadata={op_name="f/sum"}
})"},
    {"flatten-call-graph", R"(f {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  m = f32[4] multiply(x, y), metadata={op_name="f/mul"}
  ROOT s = f32[4] add(m, x), metadata={op_name="f/add"}
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] call(p, q), to_apply=f
  ROOT b = f32[4] call(a, q), to_apply=f
})"},
    {"gather-simplifier", R"(ENTRY e {
  p = f32[8,4] parameter(0)
  i = s32[1] parameter(1)
  ROOT g = f32[4] gather(p, i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,4}, metadata={op_name="f/take"}
})"},
    {"inline", R"(f {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  m = f32[4] multiply(x, y), metadata={op_name="f/mul"}
  ROOT s = f32[4] add(m, x), metadata={op_name="f/add"}
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  a = f32[4] call(p, q), to_apply=f, metadata={op_name="main/f"}
  ROOT b = f32[4] call(a, q), to_apply=f
})"},
    {"reshape-mover", R"(ENTRY e {
  p = f32[24] parameter(0)
  q = f32[24] parameter(1)
  c = f32[] constant(2)
  a = f32[4,6] reshape(p), metadata={op_name="f/ra"}
  b = f32[4,6] reshape(q), metadata={op_name="f/rb"}
  cs = f32[4,6] broadcast(c), dimensions={}
  s = f32[4,6] add(a, b), metadata={op_name="f/add"}
  ROOT r = f32[4,6] multiply(s, cs), metadata={op_name="f/mul"}
})"},
    {"sort-simplifier", R"(less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT lt = pred[] compare(a, b), direction=LT
}
ENTRY e {
  k = f32[8] parameter(0)
  v = s32[8] parameter(1)
  s = (f32[8], s32[8]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
  ROOT r = f32[8] get-tuple-element(s), index=0
})"},
    {"transpose-folding", R"(ENTRY e {
  a = f32[3,2] parameter(0)
  b = f32[3,4] parameter(1)
  t = f32[2,3] transpose(a), dimensions={1,0}, metadata={op_name="f/t"}
  d = f32[2,4] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f/dot"}
  ROOT r = f32[4,2] transpose(d), dimensions={1,0}, metadata={op_name="f/out"}
})"},
    {"tuple-simplifier", R"(ENTRY e {
  p = (f32[4], s32[]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  b = s32[] get-tuple-element(p), index=1
  t = (f32[4], s32[]) tuple(a, b)
  u = (s32[], (f32[4], s32[])) tuple(b, t)
  ROOT r = (f32[4], s32[]) get-tuple-element(u), index=1
})"},
    {"zero-sized-hlo-elimination", R"(ENTRY e {
  p = f32[4,8] parameter(0)
  s = f32[0,8] slice(p), slice={[2:2],[0:8]}
  n = f32[0,8] negate(s), metadata={op_name="f/neg"}
  ROOT r = f32[4,8] concatenate(n, p), dimensions={0}
})"},
};

// A loop over a counter and two arrays: the rest of the body after the counter, the initial value of the second array,
// and its definition.
struct LoopExample {
  std::string_view pass;
  int trip_count;
  std::string_view body;
  std::string_view made = "";
  std::string_view second = "q";
};

constexpr LoopExample kLoopExamples[] = {
    {"while-loop-constant-sinking", 10, R"(  sum = f32[4] add(a, b), metadata={op_name="main/while/add"}
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, sum, b)
)",
     R"(  k = f32[4] constant({1, 2, 3, 4}), metadata={op_name="main/k"}
)",
     "k"},
    {"while-loop-invariant-code-motion", 10, R"(  ex = f32[4] exponential(b), metadata={op_name="main/while/exp"}
  sum = f32[4] add(a, ex)
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, sum, b)
)"},
    {"while-loop-simplifier", 10, R"(  twice = f32[4] add(a, a)
  other = f32[4] multiply(b, a)
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, twice, other)
)"},
    {"while-loop-unroller", 2, R"(  sum = f32[4] add(a, b), metadata={op_name="main/while/add"}
  ROOT out = (s32[], f32[4], f32[4]) tuple(next, sum, b)
)"},
};

std::string TextOf(const LoopExample& loop) {
  return StrCat(R"(cond {
  cs = (s32[], f32[4], f32[4]) parameter(0)
  ci = s32[] get-tuple-element(cs), index=0
  lim = s32[] constant()",
                loop.trip_count, R"()
  ROOT lt = pred[] compare(ci, lim), direction=LT
}
body {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
)",
                loop.body, R"(}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
)",
                loop.made, R"(  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(zero, p, )",
                loop.second, R"()
  w = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body, metadata={op_name="main/while"}
  ROOT r = f32[4] get-tuple-element(w), index=1
})");
}

}  // namespace

std::string_view SimplifyExample(std::string_view pass) {
  for (const Example& example : kExamples) {
    if (example.pass == pass) return example.text;
  }
  // Lives as long as the registry.
  static const auto* const kLoops = [] {
    auto* texts = new std::vector<std::pair<std::string_view, std::string>>();
    for (const LoopExample& loop : kLoopExamples) texts->emplace_back(loop.pass, TextOf(loop));
    return texts;
  }();
  for (const auto& [name, text] : *kLoops) {
    if (name == pass) return text;
  }
  return "";
}

}  // namespace hlokit
