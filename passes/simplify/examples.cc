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
