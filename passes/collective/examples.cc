// SPDX-License-Identifier: Apache-2.0
// Small programs that show the passes on collectives at work, for the documentation.
#include "passes/collective/examples.h"

namespace hlokit {
namespace {

struct CollectiveProgram {
  std::string_view pass;
  std::string_view text;
};

constexpr CollectiveProgram kPrograms[] = {
    {"reduce-scatter-creator", R"(HloModule shards, replica_count=2

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8] parameter(0)
  total = f32[8] all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  me = u32[] replica-id()
  four = u32[] constant(4)
  start = u32[] multiply(me, four)
  ROOT shard = f32[4] dynamic-slice(total, start), dynamic_slice_sizes={4}
})"},
    {"all-reduce-simplifier", R"(HloModule equal, replica_count=2

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8] parameter(0)
  total = f32[8] all-reduce(x), replica_groups={{0,1}}, to_apply=sum
  scaled = f32[8] negate(total)
  twice = f32[8] all-reduce(scaled), replica_groups={{0,1}}, to_apply=sum
  ROOT alone = f32[8] all-reduce(twice), replica_groups={{0},{1}}, to_apply=sum
})"},
    {"all-gather-dynamic-slice-simplifier", R"(HloModule own, num_partitions=2

ENTRY main {
  x = f32[4] parameter(0)
  all = f32[8] all-gather(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  me = u32[] partition-id()
  starts = u32[2] constant({0, 4})
  start = u32[1] dynamic-slice(starts, me), dynamic_slice_sizes={1}
  scalar = u32[] reshape(start)
  own = f32[4] dynamic-slice(all, scalar), dynamic_slice_sizes={4}
  ROOT y = f32[4] negate(own)
})"},
    {"all-gather-cse", R"(HloModule weights, replica_count=2

ENTRY main {
  w = f32[4] parameter(0)
  forward = f32[8] all-gather(w), channel_id=1, replica_groups={{0,1}}, dimensions={0}
  again = f32[4] opt-barrier(w)
  backward = f32[8] all-gather(again), channel_id=2, replica_groups={{0,1}}, dimensions={0}
  ROOT sum = f32[8] add(forward, backward)
})"},
    {"all-gather-broadcast-reorder", R"(HloModule rows, replica_count=2

ENTRY main {
  x = f32[4] parameter(0)
  rows = f32[3,4] broadcast(x), dimensions={1}
  ROOT all = f32[3,8] all-gather(rows), replica_groups={{0,1}}, dimensions={1}
})"},
    {"reduce-scatter-reassociate", R"(HloModule total, replica_count=2

sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}

ENTRY main {
  x = s32[8] parameter(0)
  y = s32[8] parameter(1)
  rx = s32[4] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=sum
  ry = s32[4] reduce-scatter(y), replica_groups={{0,1}}, dimensions={0}, to_apply=sum
  ROOT s = s32[4] add(rx, ry)
})"},
    {"collective-permute-combiner", R"(HloModule neighbors, replica_count=2

ENTRY main {
  x = f32[8] parameter(0)
  y = s32[4] parameter(1)
  from_left = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  count = s32[4] collective-permute(y), source_target_pairs={{0,1},{1,0}}
  ROOT t = (f32[8], s32[4]) tuple(from_left, count)
})"},
    {"while-loop-all-reduce-code-motion", R"(HloModule microbatches, replica_count=2

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  state = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(state), index=1
  gradient = f32[8] cosine(x)
  total = f32[8] all-reduce(gradient), replica_groups={{0,1}}, to_apply=sum
  accumulated = f32[8] get-tuple-element(state), index=2
  more = f32[8] add(accumulated, total)
  after = f32[8] add(x, gradient)
  ROOT r = (s32[], f32[8], f32[8]) tuple(next, after, more)
}

condition {
  state = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  fzero = f32[] constant(0)
  zeros = f32[8] broadcast(fzero), dimensions={}
  init = (s32[], f32[8], f32[8]) tuple(zero, x, zeros)
  loop = (s32[], f32[8], f32[8]) while(init), condition=condition, body=body
  ROOT gradients = f32[8] get-tuple-element(loop), index=2
})"},
    {"collective-permute-decomposer", R"(HloModule stages, num_partitions=2

body {
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(state), index=1
  from_before = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}
  ROOT r = (s32[], f32[8]) tuple(next, from_before)
}

condition {
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(2)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  ROOT loop = (s32[], f32[8]) while(init), condition=condition, body=body
})"},
    {"all-to-all-decomposer", R"(HloModule exchange, replica_count=2

ENTRY main {
  x = f32[4,3] parameter(0)
  ROOT y = f32[4,3] all-to-all(x), replica_groups={{0,1}}, dimensions={0}
})"},
    {"windowed-einsum-handler", R"(HloModule rows, num_partitions=2

ENTRY main {
  x = f32[4,8] parameter(0)
  w = f32[8,3] parameter(1)
  all = f32[8,8] all-gather(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT y = f32[8,3] dot(all, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})"},
    {"collective-quantizer", R"(HloModule weights, replica_count=2

ENTRY main {
  w = s8[4] parameter(0)
  wide = f32[4] convert(w)
  scale = f32[] constant(0.5)
  scales = f32[4] broadcast(scale), dimensions={}
  scaled = f32[4] multiply(wide, scales)
  ROOT all = f32[8] all-gather(scaled), replica_groups={{0,1}}, dimensions={0}
})"},
};

}  // namespace

std::string_view CollectiveExample(std::string_view pass) {
  for (const CollectiveProgram& program : kPrograms) {
    if (program.pass == pass) return program.text;
  }
  return "";
}

}  // namespace hlokit
