// SPDX-License-Identifier: Apache-2.0
// The passes of this room.
#include "passes/core/register_passes.h"
#include "passes/schedule/collective_pipeliner.h"
#include "passes/schedule/copy_insertion.h"
#include "passes/schedule/memory_space_assignment.h"
#include "passes/schedule/rematerialization.h"
#include "passes/schedule/schedule.h"

namespace hlokit {
namespace {

class Schedule : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled) return false;
    const absl::StatusOr<ScheduleCounts> counts = ScheduleModule(module, {options().Bool("overlap")});
    if (!counts.ok()) return counts.status();
    Count("computations ordered", counts->computations);
    Count("bytes at the peak", counts->peak_bytes);
    Count("bytes at the peak of the post-order", counts->post_order_peak_bytes);
    return true;
  }
};

class LatencyHidingScheduler : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled) return false;
    ScheduleOptions rates;
    rates.flops_per_second = static_cast<double>(options().Int("tflops")) * 1e12;
    rates.bytes_per_second = static_cast<double>(options().Int("hbm-gbps")) * 1e9;
    rates.link_bytes_per_second = static_cast<double>(options().Int("ici-gbps")) * 1e9;
    rates.memory_bytes = options().Int("hbm-bytes");
    std::vector<Latency> latencies;
    if (environment().latencies) latencies = environment().latencies(module);
    rates.latencies = latencies;
    const absl::StatusOr<ScheduleCounts> counts = ScheduleModule(module, rates);
    if (!counts.ok()) return counts.status();
    Count("computations ordered", counts->computations);
    Count("bytes at the peak", counts->peak_bytes);
    return true;
  }
};

class MemorySpaceAssignment : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<MemorySpaceCounts> counts =
        AssignMemorySpaces(module, {.vmem_bytes = options().Int("vmem-bytes"),
                                    .hbm_bytes_per_second = static_cast<double>(options().Int("hbm-gbps")) * 1e9,
                                    .flops_per_second = static_cast<double>(options().Int("tflops")) * 1e12,
                                    .prefetch = options().Bool("prefetch")});
    if (!counts.ok()) return counts.status();
    if (counts->kept > 0) Count("arrays kept", counts->kept);
    if (counts->evicted > 0) Count("arrays evicted", counts->evicted);
    if (counts->prefetched > 0) Count("arrays prefetched", counts->prefetched);
    if (counts->changes() > 0) Count("bytes of VMEM at the peak", counts->peak_bytes);
    return counts->changes() > 0;
  }
};

class Rematerialization : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<RematerializationCounts> counts = Rematerialize(module, options().Int("hbm-bytes"));
    if (!counts.ok()) return counts.status();
    if (counts->instructions == 0) return false;
    Count("instructions computed again", counts->instructions);
    Count("bytes at the peak before", counts->peak_before);
    Count("bytes at the peak", counts->peak_after);
    return true;
  }
};

class CopyInsertion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> copies = InsertCopies(module);
    if (!copies.ok()) return copies.status();
    if (*copies > 0) Count("copies added", *copies);
    return *copies > 0;
  }
};

class CollectivePipeliner : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<PipelinedCounts> made = PipelineCollectives(module, options().Int("hbm-bytes"), Direction());
    if (!made.ok()) return made.status();
    if (made->ahead > 0) Count("collectives issued an iteration ahead", made->ahead);
    if (made->late > 0) Count("collectives issued an iteration later", made->late);
    return made->ahead + made->late > 0;
  }

 private:
  PipelineDirection Direction() const {
    const std::string_view direction = options().String("direction");
    if (direction == "backward") return PipelineDirection::kBackward;
    return direction == "forward" ? PipelineDirection::kForward : PipelineDirection::kBoth;
  }
};

constexpr char kLayers[] = R"(HloModule layers

cond {
  p = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,64]{1,0} get-tuple-element(p), index=1
  all = f32[4,32,64]{2,1,0} get-tuple-element(p), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  part = f32[1,32,64]{2,1,0} dynamic-slice(all, i, zero, zero), dynamic_slice_sizes={1,32,64}
  half = f32[32,64]{1,0} reshape(part)
  w = f32[64,64]{1,0} all-gather(half), replica_groups={{0,1}}, dimensions={0}
  y = f32[8,64]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) tuple(next, y, all)
}

ENTRY main {
  x = f32[8,64]{1,0} parameter(0)
  all = f32[4,32,64]{2,1,0} parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) tuple(zero, x, all)
  w = (s32[], f32[8,64]{1,0}, f32[4,32,64]{2,1,0}) while(t), condition=cond, body=body
  ROOT y = f32[8,64]{1,0} get-tuple-element(w), index=1
}
)";

constexpr char kOverlap[] = R"(HloModule overlap

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  w = f32[64,64]{1,0} parameter(1)
  start = (f32[64,64]{1,0}, f32[128,64]{1,0}) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
  done = f32[128,64]{1,0} all-gather-done(start)
  d = f32[64,64]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[128,64]{1,0}, f32[64,64]{1,0}) tuple(done, d)
}
)";

constexpr char kSwap[] = R"(HloModule swap

cond {
  p = (f32[8]{0}, f32[8]{0}) parameter(0)
  ROOT c = pred[] constant(false)
}

body {
  p = (f32[8]{0}, f32[8]{0}) parameter(0)
  a = f32[8]{0} get-tuple-element(p), index=0
  b = f32[8]{0} get-tuple-element(p), index=1
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(b, a)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  t = (f32[8]{0}, f32[8]{0}) tuple(x, x)
  ROOT w = (f32[8]{0}, f32[8]{0}) while(t), condition=cond, body=body
}
)";

constexpr char kStream[] = R"(HloModule stream, is_scheduled=true

ENTRY main {
  x = f32[2048,2048]{1,0} parameter(0)
  w = f32[2048,2048]{1,0} parameter(1)
  v = f32[2048,2048]{1,0} parameter(2)
  t = f32[2048,2048]{1,0} tanh(x)
  d = f32[2048,2048]{1,0} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT e = f32[2048,2048]{1,0} dot(d, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";

constexpr char kAgain[] = R"(HloModule again, is_scheduled=true

ENTRY main {
  x = f32[20480,32768]{1,0} parameter(0)
  w = f32[32768,32768]{1,0} parameter(1)
  v = f32[32768,32768]{1,0} parameter(2)
  a = f32[20480,32768]{1,0} tanh(x)
  d = f32[20480,32768]{1,0} dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[20480,32768]{1,0} tanh(d)
  c = f32[20480,32768]{1,0} multiply(b, d)
  e = f32[20480,32768]{1,0} dot(c, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[20480,32768]{1,0} add(a, e)
}
)";

constexpr char kScheduled[] = "A schedule; a module without one is left alone.";

// Figures of the machine that several passes take, so that `tpu{hbm-gbps=1640}` sets them for all. The defaults are
// those of a TPU v5e.
const OptionInfo kHbmRate = {.name = "hbm-gbps",
                             .type = OptionInfo::Type::kInt,
                             .default_text = "819",
                             .doc = "bytes that HBM moves in a nanosecond",
                             .min = 1};
const OptionInfo kFlops = {.name = "tflops",
                           .type = OptionInfo::Type::kInt,
                           .default_text = "197",
                           .doc = "operations of a picosecond",
                           .min = 1};

}  // namespace

void RegisterSchedulePasses(PassRegistry* registry) {
  registry->Add(
      {.name = "collective-pipeliner",
       .room = "schedule",
       .summary = "pipeline collectives of loops: issue them an iteration ahead or later",
       .doc =
           "A collective that depends only on what the loop passes on unchanged and on the number of the trip, such "
           "as the all-gather of a layer's weights, is made in the trip before and handed on in the state, the first "
           "in front of the loop. The last trip makes one that nobody reads. A collective whose result the trip only "
           "puts aside, such as the reduce-scatter of a layer's gradient, is made in the trip after, the last behind "
           "the loop. For loops with a known number of trips, where there is memory for what is handed on.",
       .example = kLayers,
       .options = {{.name = "hbm-bytes",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "17179869184",
                    .doc = "memory that the program may need at its peak; 0: no limit"},
                   {.name = "direction",
                    .type = OptionInfo::Type::kString,
                    .default_text = "both",
                    .doc = "backward: only an iteration ahead; forward: only an iteration later",
                    .choices = {"both", "backward", "forward"}}},
       .needs = "No schedule: a module that has one is left alone.",
       .make = MakePass<CollectivePipeliner>});
  registry->Add({.name = "latency-hiding-scheduler",
                 .room = "schedule",
                 .summary = "order the instructions to overlap communication with computation",
                 .doc = "As `schedule`, with estimates of how long instructions take on a machine: collectives and "
                        "copies start as soon as they can and are waited for when what ran meanwhile took as long.",
                 .options = {kHbmRate,
                             kFlops,
                             {.name = "ici-gbps",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "90",
                              .doc = "bytes that go between devices in a nanosecond",
                              .min = 1},
                             {.name = "hbm-bytes",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "17179869184",
                              .doc = "above this peak, what needs less memory goes first"}},
                 .make = MakePass<LatencyHidingScheduler>});
  registry->Add({.name = "memory-space-assignment",
                 .room = "schedule",
                 .summary = "assign arrays to a TPU's vector memory, with prefetches and evictions",
                 .doc = "An array stands in VMEM, S(1), from where it is made to its last use if it fits; what is "
                        "needed later, or by what takes no operands from there, is copied to HBM meanwhile. Arrays in "
                        "HBM are copied there by copy-start and copy-done while instructions run that compute longer "
                        "than they load.",
                 .example = kStream,
                 .options = {{.name = "vmem-bytes",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "117440512",
                              .doc = "VMEM for arrays, without what kernels need for their tiles"},
                             kHbmRate,
                             kFlops,
                             {.name = "prefetch",
                              .type = OptionInfo::Type::kBool,
                              .default_text = "true",
                              .doc = "copy arrays there before they are used"}},
                 .needs = kScheduled,
                 .make = MakePass<MemorySpaceAssignment>});
  registry->Add({.name = "rematerialization",
                 .room = "schedule",
                 .summary = "recompute values to reduce the peak memory",
                 .doc = "At the peak of the schedule, values that are not used there but later are computed a second "
                        "time before that use, those first that save most bytes for what it costs, until the peak "
                        "is below the limit or nothing more can be had.",
                 .example = kAgain,
                 .options = {{.name = "hbm-bytes",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "17179869184",
                              .doc = "memory that the program may need at its peak"}},
                 .needs = kScheduled,
                 .make = MakePass<Rematerialization>});
  registry->Add(
      {.name = "schedule",
       .room = "schedule",
       .summary = "order the instructions for low memory and overlapped communication",
       .doc = "A list schedule that prefers instructions which free more than they make, or the post-order where "
              "that needs less. Asynchronous operations start as soon as they can and are waited for when what "
              "ran meanwhile moved as many bytes. The module is marked as scheduled, and its text is in the "
              "order of the schedule.",
       .example = kOverlap,
       .options = {{.name = "overlap",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "true",
                    .doc = "keep asynchronous operations going beside others"}},
       .make = MakePass<Schedule>});
  registry->Add(
      {.name = "copy-insertion",
       .room = "schedule",
       .summary = "copy values that would otherwise be overwritten before their last use",
       .doc = "So that each array of a loop's state can stay where it is, updates in place write over nothing that "
              "is read elsewhere, and results do not share memory with parameters or each other.",
       .example = kSwap,
       .needs = "No schedule: a module that has one is left alone.",
       .make = MakePass<CopyInsertion>});
}

}  // namespace hlokit
