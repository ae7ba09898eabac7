// SPDX-License-Identifier: Apache-2.0
// Registers the scheduling and memory passes.
#include <algorithm>

#include "passes/core/register_passes.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/schedule/argument_copies.h"
#include "passes/schedule/collective_pipeliner.h"
#include "passes/schedule/copy_insertion.h"
#include "passes/schedule/host_memory.h"
#include "passes/schedule/host_offload_legalize.h"
#include "passes/schedule/loop_schedule_linearizer.h"
#include "passes/schedule/memory_space_assignment.h"
#include "passes/schedule/rematerialization.h"
#include "passes/schedule/schedule.h"
#include "passes/target/cost_model.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

int64_t ToBytes(double bytes) { return static_cast<int64_t>(std::clamp(bytes, 1.0, 1e18)); }

// Returns the option `hbm-bytes`, or the HBM capacity of the target's devices for the module.
int64_t HbmBytes(const Pass& pass, const tpu::TpuTarget& target) {
  const int64_t given = pass.options().Int("hbm-bytes");
  return given >= 0 ? given : ToBytes(target.machine.HbmBytes() * target.parts);
}

class MemoryPlacementConverter : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = ConvertMemoryPlacements(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("placements converted", *count);
    return *count > 0;
  }
};

class HostOffloadLegalize : public RulesOf<AddHostOffloadLegalizeRules, RewriteScope::kSequential> {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled) return false;
    const int64_t sunk = SinkHostCopiesIntoLoops(module);
    if (sunk > 0) Count("copies moved into loops", sunk);
    const absl::StatusOr<bool> changed = RulePass::Run(module);
    if (!changed.ok()) return changed.status();
    return sunk > 0 || *changed;
  }
};

class HostOffload : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<HostOffloadCounts> counts = OffloadToHost(module, options().Int("host-memory-space"));
    if (!counts.ok()) return counts.status();
    if (counts->arrays > 0) Count("arrays offloaded", counts->arrays);
    if (counts->parameters > 0) Count("parameters placed on the host", counts->parameters);
    const int64_t redundant = counts->redundant_stores + counts->redundant_loads;
    if (redundant > 0) Count("redundant moves removed", redundant);
    return counts->arrays + counts->parameters + redundant > 0;
  }
};

class HostTransferAsyncifier : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MakeHostTransfersAsync(module, options().Int("host-memory-space"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("transfers made asynchronous", *count);
    return *count > 0;
  }
};

class LoopScheduleLinearizer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = LinearizeLoops(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("reads ordered before writes", *count);
    return *count > 0;
  }
};

class InputOutputAliasing : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = AddInputOutputAliases(module, options().Bool("donors-only"));
    if (!count.ok()) return count.status();
    if (*count > 0) Count("results given buffers of parameters", *count);
    return *count > 0;
  }
};

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
    const tpu::TpuTarget target = tpu::TargetOf(*this, module);
    const std::vector<Latency> latencies = tpu::EstimateLatencies(module, target);
    ScheduleOptions schedule;
    schedule.memory_bytes = HbmBytes(*this, target);
    schedule.latencies = latencies;
    const absl::StatusOr<ScheduleCounts> counts = ScheduleModule(module, schedule);
    if (!counts.ok()) return counts.status();
    Count("computations ordered", counts->computations);
    Count("bytes at the peak", counts->peak_bytes);
    return true;
  }
};

class MemorySpaceAssignment : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const tpu::TpuTarget target = tpu::TargetOf(*this, module);
    MemorySpaceOptions assignment{.vmem_bytes = options().Int("vmem-bytes"), .prefetch = options().Bool("prefetch")};
    if (assignment.vmem_bytes < 0) assignment.vmem_bytes = ToBytes(target.VmemForArrays() * target.parts);
    const absl::StatusOr<MemorySpaceCounts> counts = AssignMemorySpaces(module, target, assignment);
    if (!counts.ok()) return counts.status();
    if (counts->pinned > 0) Count("arrays pinned", counts->pinned);
    if (counts->evicted > 0) Count("arrays evicted", counts->evicted);
    if (counts->prefetched > 0) Count("arrays prefetched", counts->prefetched);
    if (counts->changes() > 0) Count("bytes of VMEM at the peak", counts->peak_bytes);
    return counts->changes() > 0;
  }
};

class Rematerialization : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<RematerializationCounts> counts =
        Rematerialize(module, HbmBytes(*this, tpu::TargetOf(*this, module)));
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
    const absl::StatusOr<int64_t> copies =
        options().Bool("arguments-only") ? InsertArgumentCopies(module) : InsertCopies(module);
    if (!copies.ok()) return copies.status();
    if (*copies > 0) Count("copies added", *copies);
    return *copies > 0;
  }
};

class CollectivePipeliner : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<PipelinedCounts> made =
        PipelineCollectives(module, HbmBytes(*this, tpu::TargetOf(*this, module)), Direction());
    if (!made.ok()) return made.status();
    if (made->backward > 0) Count("collectives issued an iteration ahead", made->backward);
    if (made->forward > 0) Count("collectives issued an iteration later", made->forward);
    return made->backward + made->forward > 0;
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

constexpr char kCounter[] = R"(HloModule counter

cond {
  p = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  scale = f32[] convert(i)
  scales = f32[8]{0} broadcast(scale), dimensions={}
  y = f32[8]{0} multiply(x, scales)
  ROOT t = (s32[], f32[8]{0}) tuple(next, y)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[8]{0}) tuple(zero, x)
  ROOT w = (s32[], f32[8]{0}) while(t), condition=cond, body=body
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

const OptionInfo kHbmBytes = {.name = "hbm-bytes",
                              .type = OptionInfo::Type::kInt,
                              .default_text = "-1",
                              .doc = "limit of the program's peak memory; -1: that of the device",
                              .min = -1};

constexpr char kPlacement[] = R"(ENTRY e {
  x = f32[8] parameter(0)
  there = f32[8] custom-call(x), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true, frontend_attributes={_xla_buffer_placement="pinned_host"}
  ROOT y = f32[8] negate(there)
})";

constexpr char kOffloaded[] = R"(ENTRY e {
  weights = f32[4,8]{1,0:S(5)} parameter(0)
  layer = s32[] parameter(1)
  zero = s32[] constant(0)
  w = f32[1,8]{1,0} dynamic-slice(weights, layer, zero), dynamic_slice_sizes={1,8}
  ROOT y = f32[1,8]{1,0} negate(w)
})";

constexpr char kDonated[] = R"(HloModule step, buffer_donor={ (0, {}) }

ENTRY e {
  weights = f32[8] parameter(0)
  gradient = f32[8] parameter(1)
  updated = f32[8] subtract(weights, gradient)
  ROOT r = (f32[8]) tuple(updated)
})";

constexpr char kLeavesSchedules[] = "No schedule: a module that has one is left alone.";

const OptionInfo kHostMemorySpace = {.name = "host-memory-space",
                                     .type = OptionInfo::Type::kInt,
                                     .default_text = "5",
                                     .doc = "number of the memory space of the host, S(5) in layouts",
                                     .min = 1};

constexpr char kKept[] = R"(ENTRY e {
  x = f32[8] parameter(0)
  activation = f32[8] exponential(x)
  there = f32[8] custom-call(activation), custom_call_target="MoveToHost"
  back = f32[8] custom-call(there), custom_call_target="MoveToDevice"
  ROOT y = f32[8] add(x, back)
})";

constexpr char kLegalized[] = R"(ENTRY e {
  x = f32[8,4] parameter(0)
  there = f32[8,4] custom-call(x), custom_call_target="MoveToHost"
  flat = f32[32] reshape(there)
  back = f32[32] custom-call(flat), custom_call_target="MoveToDevice"
  ROOT y = f32[32] negate(back)
})";

void RegisterHostMemoryPasses(PassRegistry* registry) {
  registry->Add({.name = "convert-memory-placement-to-internal-annotations",
                 .category = "schedule",
                 .summary = "convert placements in memories to calls that name the memory",
                 .doc =
                     "Calls of annotate_device_placement, as JAX makes them, become calls of MoveToHost, MoveToDevice, "
                     "PinToDevice or PinToDeviceSram. As in XLA, but other frontend attributes stay.",
                 .example = kPlacement,
                 .create = MakePass<MemoryPlacementConverter>});
  registry->Add(
      {.name = "host-offload-legalize",
       .category = "schedule",
       .summary = "move changes of layout and shape away from calls that move arrays to the host",
       .doc = "Copies, reshapes and bitcasts after MoveToHost come before it, those before MoveToDevice after "
              "it, also past slices, so that host-offloader finds the calls next to what it replaces. A copy before a "
              "loop that only moves slices of it to the device moves into the loop. XLA's follows arrays "
              "through any tuples and loops to the copies between the calls, and moves these down; here a copy "
              "in the loop that stores the slices stays.",
       .example = kLegalized,
       .preconditions = kLeavesSchedules,
       .create = MakePass<HostOffloadLegalize>});
  registry->Add({.name = "host-offloader",
                 .category = "schedule",
                 .summary = "keep arrays in the memory of the host between MoveToHost and MoveToDevice",
                 .doc =
                     "MoveToHost becomes a copy to the host's memory space or a dynamic-update-slice of an array in "
                     "it, MoveToDevice a copy from it or a dynamic-slice. Arrays are followed through tuples, loops, "
                     "calls and branches, from parameters and to results that the layout of the entry places on the "
                     "host. As in XLA, but an array that an operation of the device reads is left alone, where XLA "
                     "marks the operation to run on the host; the buffer of updates is a copy, where XLA allocates one "
                     "without values; and results of computations that run on the host are not followed. "
                     "host-offload-legalize moves changes of layout out of the way.",
                 .example = kKept,
                 .options = {kHostMemorySpace},
                 .preconditions = kLeavesSchedules,
                 .create = MakePass<HostOffload>});
  registry->Add({.name = "host-memory-transfer-asyncifier",
                 .category = "schedule",
                 .summary = "make transfers between host and device asynchronous",
                 .doc =
                     "Dynamic-slices from arrays in the host's memory, dynamic-update-slices of them and copies become "
                     "start and done, between which `schedule` puts other work. As in XLA.",
                 .example = kOffloaded,
                 .options = {kHostMemorySpace},
                 .preconditions = kLeavesSchedules,
                 .create = MakePass<HostTransferAsyncifier>});
  registry->Add({.name = "optimize-input-output-buffer-alias",
                 .category = "schedule",
                 .summary = "let results reuse the buffers of parameters",
                 .doc =
                     "Results get may-alias entries with parameters of the same size and memory space, largest first. "
                     "As in XLA, by default from parameters that the header names in buffer_donor.",
                 .example = kDonated,
                 .options = {{.name = "donors-only",
                              .type = OptionInfo::Type::kBool,
                              .default_text = "true",
                              .doc = "take buffers only from parameters that the header declares as donors"}},
                 .preconditions = kLeavesSchedules,
                 .create = MakePass<InputOutputAliasing>});
}

}  // namespace

void RegisterSchedulePasses(PassRegistry* registry) {
  registry->Add(
      {.name = "collective-pipeliner",
       .category = "schedule",
       .summary = "pipeline collectives of loops: issue them an iteration ahead or later",
       .doc =
           "A collective that depends only on loop-invariant values and the induction variable, such as the all-gather "
           "of a layer's weights, moves to the previous iteration, the first one before the loop, and its result "
           "becomes loop state. The last iteration computes an unused one. A collective whose result is only stored, "
           "such as the reduce-scatter of a layer's gradient, moves to the next iteration, the last one after the "
           "loop. For loops with a known trip count, if there is memory for the additional loop state.",
       .example = kLayers,
       .options = {tpu::DeviceOption(),
                   kHbmBytes,
                   {.name = "direction",
                    .type = OptionInfo::Type::kString,
                    .default_text = "both",
                    .doc = "backward: only an iteration earlier; forward: only an iteration later",
                    .choices = {"both", "backward", "forward"}}},
       .preconditions = "No schedule: a module that has one is left alone.",
       .create = MakePass<CollectivePipeliner>});
  registry->Add(
      {.name = "latency-hiding-scheduler",
       .category = "schedule",
       .summary = "order the instructions to overlap communication with computation",
       .doc = "As `schedule`, with estimated latencies of instructions on a target: collectives and copies start as "
              "early as possible, and their done operations come when the work in between takes as long.",
       .options = {tpu::DeviceOption(), kHbmBytes},
       .create = MakePass<LatencyHidingScheduler>});
  registry->Add(
      {.name = "memory-space-assignment",
       .category = "schedule",
       .summary = "assign arrays to a TPU's vector memory, with prefetches and evictions",
       .doc = "An array is in VMEM, S(1), from its definition to its last use if it fits; if it has later uses, or "
              "users that cannot read from VMEM, it is evicted to HBM concurrently. Arrays in HBM are prefetched by "
              "copy-start and copy-done, overlapped with instructions that are bound by computation.",
       .example = kStream,
       .options = {{.name = "vmem-bytes",
                    .type = OptionInfo::Type::kInt,
                    .default_text = "-1",
                    .doc = "VMEM for arrays, without the tiles of kernels; -1: that of the device",
                    .min = -1},
                   tpu::DeviceOption(),
                   {.name = "prefetch",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "true",
                    .doc = "prefetch arrays before their use"}},
       .preconditions = kScheduled,
       .create = MakePass<MemorySpaceAssignment>});
  registry->Add({.name = "rematerialization",
                 .category = "schedule",
                 .summary = "recompute values to reduce the peak memory",
                 .doc = "Values that are live but unused at the peak of the schedule are recomputed before their next "
                        "use, those with the lowest cost per saved byte first, until the peak is below the limit or "
                        "there is no candidate left.",
                 .example = kAgain,
                 .options = {tpu::DeviceOption(), kHbmBytes},
                 .preconditions = kScheduled,
                 .create = MakePass<Rematerialization>});
  registry->Add({.name = "schedule",
                 .category = "schedule",
                 .summary = "order the instructions for low memory and overlapped communication",
                 .doc = "A list schedule that prefers instructions which free more bytes than they define, or the "
                        "post-order if it needs less memory. Asynchronous operations start as early as possible, and "
                        "their done operations come when the work in between moves as many bytes. The module is marked "
                        "as scheduled, and its text is in the order of the schedule.",
                 .example = kOverlap,
                 .options = {{.name = "overlap",
                              .type = OptionInfo::Type::kBool,
                              .default_text = "true",
                              .doc = "overlap asynchronous operations with other work"}},
                 .create = MakePass<Schedule>});
  registry->Add({.name = "loop-schedule-linearizer",
                 .category = "schedule",
                 .summary = "order reads of loop states before their updates",
                 .doc =
                     "Control edges let the readers of an array of the state run before the instruction that computes "
                     "its next value, which can then take its buffer: copy-insertion has less to do. As XLA's, "
                     "except that instructions that only pass arrays on are not readers, nor are operands of the "
                     "update, and that in cycles other edges may be left out.",
                 .example = kCounter,
                 .preconditions = kLeavesSchedules,
                 .create = MakePass<LoopScheduleLinearizer>});
  registry->Add(
      {.name = "copy-insertion",
       .category = "schedule",
       .summary = "copy values that would otherwise be overwritten before their last use",
       .doc = "Adds the copies needed so that each array of a loop state keeps its buffer, updates in place overwrite "
              "no value with other uses, and results do not share memory with parameters or each other.",
       .example = kSwap,
       .options = {{.name = "arguments-only",
                    .type = OptionInfo::Type::kBool,
                    .default_text = "false",
                    .doc = "only copies of arguments and constants of the program that are results, or are updated in "
                           "place, and are not donated"}},
       .preconditions = "No schedule: a module that has one is left alone.",
       .create = MakePass<CopyInsertion>});
  RegisterHostMemoryPasses(registry);
}

}  // namespace hlokit
