// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/memory/memory_plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "interp/tpu/memory/heap_simulator.h"
#include "ir/core/saturating.h"
#include "passes/schedule/loop_state.h"
#include "passes/target/aliases.h"
#include "passes/target/op_class.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

namespace {

constexpr size_t kMaxListed = 10000;
constexpr double kMaxArrayBytes = 1e17;  // exceeds any memory, without risk of overflow

// Memory that one run of a computation needs beyond its parameters.
struct Need {
  int64_t peak = 0;
  std::vector<LiveArray> live;  // its own arrays at its peak
  int64_t callee = -1;          // index of the Need of the computation that runs at its peak; -1: none
  InstructionId at;
};

class Planner {
 public:
  Planner(const DeviceDescription& machine, const Module& module, const KernelPlan& plan, double parts)
      : machine_(machine), module_(module), plan_(plan), parts_(parts) {}

  MemoryPlan Run() {
    MemoryPlan result;
    result.limit_bytes = machine_.HbmBytes();
    for (const ComputationPlan& computation : plan_.computations()) {
      const bool entry = module_.computation(computation.computation).is_entry();
      needs_.push_back(PlanComputation(computation, entry ? &result : nullptr));
    }
    return result;
  }

 private:
  int64_t Bytes(Shape shape) const {
    return static_cast<int64_t>(std::min(static_cast<double>(PaddedBytes(machine_, shape)) / parts_, kMaxArrayBytes));
  }
  LiveArray ArrayOf(Instruction value) const {
    LiveArray array;
    array.value = value.id();
    array.bytes = Bytes(value.shape());
    const double own = static_cast<double>(std::max<int64_t>(ByteSize(value.shape()), 0)) / parts_;
    array.unpadded_bytes = std::min(static_cast<int64_t>(std::min(own, kMaxArrayBytes)), array.bytes);
    array.parameter = value.opcode() == Opcode::kParameter;
    return array;
  }

  // Appends the arrays that `i` refers to, through tuples and their elements, without duplicates.
  void ValuesBelow(Instruction i, std::vector<Instruction>* values) const {
    std::vector<Instruction> open = {i};
    absl::flat_hash_set<uint32_t> seen;
    while (!open.empty()) {
      Instruction value = ValueOf(open.back());
      open.pop_back();
      while (value.opcode() == Opcode::kGetTupleElement) value = ValueOf(value.operand(0));
      if (!seen.insert(value.id().value).second) continue;
      if (ClassOf(value.opcode()) == OpClass::kTuple) {
        for (Instruction operand : value.operands()) open.push_back(operand);
      } else {
        values->push_back(value);
      }
    }
  }

  // Returns true for loops and updates whose result reuses the memory of an operand.
  static bool InPlace(ScheduleUnitKind kind, Instruction root) {
    if (kind == ScheduleUnitKind::kLoop || kind == ScheduleUnitKind::kDone) return true;
    if (root.opcode() == Opcode::kFusion) {
      const Computation body = root.computation_attr(Attr::kCalls);
      if (!body.valid()) return false;
      const Instruction result = ValueOf(body.root());
      return ClassOf(result.opcode()) == OpClass::kUpdate;
    }
    return ClassOf(root.opcode()) == OpClass::kUpdate;
  }

  // Returns the initial elements of a loop's state, each with true if it is loop-invariant.
  static std::vector<std::pair<Instruction, bool>> StateOf(Instruction loop) {
    std::vector<std::pair<Instruction, bool>> result;
    const Computation body = loop.computation_attr(Attr::kBody);
    const Instruction init = ValueOf(loop.operand(0));
    if (!body.valid() || init.opcode() != Opcode::kTuple) return result;
    const std::vector<int64_t> invariant = InvariantElements(body);
    for (int64_t k = 0; k < init.operand_count(); ++k) {
      result.push_back({init.operand(k), std::binary_search(invariant.begin(), invariant.end(), k)});
    }
    return result;
  }

  // Returns the bytes of the result of a step before reuse of operand memory.
  int64_t MadeBytes(ScheduleUnitKind kind, Instruction root) const {
    int64_t bytes = Bytes(root.shape());
    if (kind != ScheduleUnitKind::kLoop) return bytes;
    for (const auto& [element, invariant] : StateOf(root)) {
      if (invariant) bytes = SaturatingAdd(bytes, -Bytes(element.shape()));
    }
    return std::max<int64_t>(bytes, 0);
  }

  Need PlanComputation(const ComputationPlan& plan, MemoryPlan* entry) {
    const Computation computation = module_.computation(plan.computation);
    const uint32_t n = static_cast<uint32_t>(plan.steps.size());
    // Last step that uses the value of each step; `n` for results.
    std::vector<uint32_t> last(n, 0);
    for (uint32_t s = 0; s < n; ++s) {
      last[s] = std::max(last[s], s);
      for (uint32_t input : plan.steps[s].inputs) last[input] = std::max(last[input], s);
    }
    std::vector<Instruction> results;
    ValuesBelow(computation.root(), &results);
    for (Instruction value : results) {
      if (const uint32_t s = plan_.StepOf(value.id()); s != ComputationPlan::kNoStep) last[s] = n;
    }
    // Loop-invariant elements live as long as the loop's result.
    for (uint32_t s = n; s-- > 0;) {
      if (plan.steps[s].kind != ScheduleUnitKind::kLoop) continue;
      std::vector<Instruction> kept;
      for (const auto& [element, invariant] : StateOf(module_.instruction(plan.steps[s].root))) {
        if (invariant) ValuesBelow(element, &kept);
      }
      for (Instruction value : kept) {
        const uint32_t producer = plan_.StepOf(value.id());
        if (producer != ComputationPlan::kNoStep && producer < s) last[producer] = std::max(last[producer], last[s]);
      }
    }
    std::vector<std::vector<uint32_t>> dies(n + 1);
    std::vector<int64_t> bytes(n, 0);
    std::vector<int64_t> held(n, 0);  // by step: operand memory that its result reuses
    absl::flat_hash_set<uint32_t> donated;
    if (entry != nullptr) Donations(&donated);
    int64_t alive = 0;
    if (entry != nullptr) {
      for (int64_t k = 0; k < computation.parameter_count(); ++k) {
        alive = SaturatingAdd(alive, Bytes(computation.parameter(k).shape()));
        entry->persistent.push_back({computation.parameter(k).id(), Bytes(computation.parameter(k).shape())});
      }
      for (Computation c : module_.computations()) {
        for (Instruction i : c.instructions()) {
          if (i.opcode() != Opcode::kConstant || i.shape().IsScalar()) continue;
          alive = SaturatingAdd(alive, Bytes(i.shape()));
          entry->persistent.push_back({i.id(), Bytes(i.shape())});
        }
      }
      entry->parameter_bytes = alive;
    }
    const bool in_body = entry == nullptr;
    Need need;
    uint32_t peak_step = n;
    int64_t peak = alive;
    std::vector<int64_t> timeline(n, 0);
    absl::flat_hash_set<uint32_t> taken;  // parameters whose memory a result reuses
    for (uint32_t s = 0; s < n; ++s) {
      const ScheduleUnit& step = plan.steps[s];
      const Instruction root = module_.instruction(step.root);
      int64_t made = MadeBytes(step.kind, root);
      if (InPlace(step.kind, root))
        made = std::max<int64_t>(made - Reused(plan, s, last, in_body, donated, &taken, &held), 0);
      bytes[s] = made;
      alive = SaturatingAdd(alive, made);
      const int64_t callee = CalleeNeed(step);
      const int64_t callee_peak = callee < 0 ? 0 : needs_[static_cast<size_t>(callee)].peak;
      const int64_t here = SaturatingAdd(alive, callee_peak);
      timeline[s] = here;
      if (entry != nullptr) {
        const InstructionId value = step.root;
        if (callee_peak > 0) entry->live_ranges.push_back({value, callee_peak, s, s, false, true});
        entry->live_ranges.push_back({value, made, s, last[s], false, false});
        if (held[s] > 0) entry->live_ranges.push_back({value, held[s], s, last[s], true, false});
      }
      if (here > peak) {
        peak = here;
        peak_step = s;
        need.callee = callee;
      }
      if (last[s] < n) dies[last[s]].push_back(s);
      for (uint32_t d : dies[s]) alive = SaturatingAdd(alive, -SaturatingAdd(bytes[d], held[d]));
      alive = SaturatingAdd(alive, held[s]);
    }
    need.peak = peak;
    if (peak_step < n) need.at = plan.steps[peak_step].root;
    for (uint32_t s = 0; peak_step < n && s <= peak_step && need.live.size() < kMaxListed; ++s) {
      // At the peak step itself reused memory still counts for the operands.
      const int64_t own = s == peak_step ? bytes[s] : SaturatingAdd(bytes[s], held[s]);
      if (last[s] < peak_step || own == 0) continue;
      LiveArray array = ArrayOf(module_.instruction(plan.steps[s].root));
      array.bytes = own;
      array.unpadded_bytes = std::min(array.unpadded_bytes, array.bytes);
      need.live.push_back(array);
    }
    if (entry != nullptr) {
      for (int64_t callee = need.callee; callee >= 0 && need.live.size() < kMaxListed;) {
        const Need& inner = needs_[static_cast<size_t>(callee)];
        const size_t count = std::min(inner.live.size(), kMaxListed - need.live.size());
        need.live.insert(need.live.end(), inner.live.begin(), inner.live.begin() + static_cast<ptrdiff_t>(count));
        callee = inner.callee;
      }
      for (int64_t k = 0; k < computation.parameter_count(); ++k) {
        if (!taken.contains(computation.parameter(k).id().value))
          need.live.push_back(ArrayOf(computation.parameter(k)));
      }
      entry->peak_bytes = need.peak;
      entry->peak_at = need.at;
      entry->timeline = std::move(timeline);
      for (const ScheduleUnit& step : plan.steps) {
        entry->ops.emplace_back();
        entry->ops.back().name = step.root;
      }
      int64_t in_heap = 0;
      entry->heap_bytes = SimulateHeap(*entry, n, [&](const HeapEvent& e) {
        const LiveRange& life = entry->live_ranges[e.live_range];
        const int64_t more = e.allocates ? life.bytes : -life.bytes;
        in_heap = SaturatingAdd(in_heap, more);
        entry->heap_peak_bytes = std::max(entry->heap_peak_bytes, in_heap);
        OpMemory& op = entry->ops[e.step];
        if (!life.scratch) op.increase = SaturatingAdd(op.increase, more);
        if (e.allocates) (life.scratch ? op.self : op.allocation) += life.bytes;
      });
      for (uint32_t s = 0; s < n; ++s) {
        if (last[s] == n) entry->result_bytes = SaturatingAdd(entry->result_bytes, bytes[s]);
      }
      entry->live = need.live;
      std::stable_sort(entry->live.begin(), entry->live.end(),
                       [](const LiveArray& a, const LiveArray& b) { return a.bytes > b.bytes; });
      for (const LiveArray& array : entry->live) {
        entry->padding_bytes = SaturatingAdd(entry->padding_bytes, array.bytes - array.unpadded_bytes);
      }
    }
    return need;
  }

  // Collects the parameters whose memory results may reuse.
  void Donations(absl::flat_hash_set<uint32_t>* donated) const {
    const Computation entry = module_.entry();
    const auto add = [&](int64_t parameter) {
      if (parameter >= 0 && parameter < entry.parameter_count()) donated->insert(entry.parameter(parameter).id().value);
    };
    for (const InputOutputAlias& alias : module_.header().input_output_alias) add(alias.parameter);
    for (const BufferDonor& donor : module_.header().buffer_donor) add(donor.parameter);
  }

  // Returns the bytes of operands that die with step `s` and whose memory its result reuses.
  int64_t Reused(const ComputationPlan& plan, uint32_t s, const std::vector<uint32_t>& last, bool in_body,
                 const absl::flat_hash_set<uint32_t>& donated, absl::flat_hash_set<uint32_t>* taken,
                 std::vector<int64_t>* held) {
    const Instruction root = module_.instruction(plan.steps[s].root);
    std::vector<Instruction> operands;
    const std::vector<std::pair<Instruction, bool>> state =
        plan.steps[s].kind == ScheduleUnitKind::kLoop ? StateOf(root) : std::vector<std::pair<Instruction, bool>>();
    for (const auto& [element, invariant] : state) {
      if (!invariant) ValuesBelow(element, &operands);
    }
    const bool all = plan.steps[s].kind != ScheduleUnitKind::kKernel || root.opcode() == Opcode::kFusion;
    for (int64_t k = 0; k < root.operand_count() && state.empty() && (all || k == 0); ++k) {
      ValuesBelow(root.operand(k), &operands);
    }
    int64_t reused = 0;
    const int64_t most = MadeBytes(plan.steps[s].kind, root);
    for (Instruction value : operands) {
      const uint32_t producer = plan_.StepOf(value.id());
      const int64_t size = Bytes(value.shape());
      if (SaturatingAdd(reused, size) > most && value.opcode() != Opcode::kParameter) continue;
      if (producer != ComputationPlan::kNoStep) {
        if (producer >= s || last[producer] != s) continue;
        // Freed at `s` with the operand's step, and held by the result from then on.
        (*held)[s] = SaturatingAdd((*held)[s], size);
        reused = SaturatingAdd(reused, size);
      } else if (value.opcode() == Opcode::kParameter && (in_body || donated.contains(value.id().value))) {
        if (!in_body) taken->insert(value.id().value);
        reused = SaturatingAdd(reused, std::min(size, most - std::min(reused, most)));
      }
    }
    // Reused memory counts for the operands until `s` ends, then for the result.
    return reused;
  }

  // Returns the index of the callee's Need with the highest peak, or -1.
  int64_t CalleeNeed(const ScheduleUnit& step) const {
    int64_t most = -1;
    if (step.kind != ScheduleUnitKind::kLoop && step.kind != ScheduleUnitKind::kCall) return most;
    module_.instruction(step.root).ForEachCallee([&](Computation callee) {
      const int64_t at = plan_.PlanOf(callee.id());
      if (at < 0 || at >= static_cast<int64_t>(needs_.size())) return;
      if (most < 0 || needs_[static_cast<size_t>(at)].peak > needs_[static_cast<size_t>(most)].peak) most = at;
    });
    return most;
  }

  const DeviceDescription& machine_;
  const Module& module_;
  const KernelPlan& plan_;
  const double parts_;
  std::vector<Need> needs_;  // parallel to the plan's computations
};

}  // namespace

MemoryPlan PlanMemory(const DeviceDescription& machine, const Module& module, const KernelPlan& plan, double parts) {
  return Planner(machine, module, plan, parts).Run();
}

}  // namespace hlokit::tpu
