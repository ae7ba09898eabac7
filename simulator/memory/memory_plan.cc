// SPDX-License-Identifier: Apache-2.0
#include "simulator/memory/memory_plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "passes/target/tiling.h"
#include "simulator/memory/heap_simulator.h"

namespace hlokit::tpu {

namespace {

constexpr size_t kMaxListed = 10000;

// Memory that one run of a computation needs beyond its parameters, and in callees beyond its results.
struct Need {
  int64_t peak = 0;
  std::vector<LiveArray> live;  // its own arrays at its peak
  int64_t callee = -1;          // index of the Need of the computation that runs at its peak; -1: none
};

class Planner {
 public:
  Planner(const DeviceDescription& machine, const Module& module, const KernelPlan& plan, double parts)
      : module_(module), plan_(plan), sizes_(machine, parts) {
    result_.limit_bytes = machine.HbmBytes();
  }

  MemoryPlan Run() {
    absl::flat_hash_set<uint32_t> bodies;
    for (const ComputationPlan& computation : plan_.computations()) {
      for (const ScheduleUnit& step : computation.steps) {
        if (step.kind != ScheduleUnitKind::kLoop) continue;
        const Computation body = module_.instruction(step.root).computation_attr(Attr::kBody);
        if (body.valid()) bodies.insert(body.id().value);
      }
    }
    for (const ComputationPlan& computation : plan_.computations()) {
      result_.callees.emplace_back();
      if (module_.computation(computation.computation).is_entry()) {
        PlanEntry(computation);
        continue;
      }
      const bool body = bodies.contains(computation.computation.value);
      PlanCallee(computation, body ? ComputationRole::kLoopBody : ComputationRole::kCallee);
    }
    return std::move(result_);
  }

 private:
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

  // Returns, by step, the bytes of callees.
  std::vector<int64_t> CalleeBytes(const ComputationPlan& plan) const {
    std::vector<int64_t> bytes(plan.steps.size(), 0);
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      if (const int64_t callee = CalleeNeed(plan.steps[s]); callee >= 0) {
        bytes[s] = needs_[static_cast<size_t>(callee)].peak;
      }
    }
    return bytes;
  }

  // Computes the timeline of live bytes and the rows of the steps.
  static void AddUp(const ComputationPlan& plan, const BufferAssignment& buffers, const std::vector<int64_t>& callees,
                    std::vector<int64_t>* timeline, std::vector<OpMemory>* ops) {
    const size_t n = plan.steps.size();
    std::vector<int64_t> freed(n, 0);
    ops->resize(n);
    for (const AssignedBuffer& buffer : buffers.buffers) {
      if (buffer.outside) continue;
      OpMemory& op = (*ops)[buffer.from];
      op.self = SaturatingAdd(op.self, buffer.bytes);
      if (buffer.to < n) freed[buffer.to] = SaturatingAdd(freed[buffer.to], buffer.bytes);
    }
    timeline->resize(n);
    int64_t alive = 0;
    for (size_t s = 0; s < n; ++s) {
      OpMemory& op = (*ops)[s];
      op.name = plan.steps[s].root;
      op.allocation = SaturatingAdd(op.self, callees[s]);
      op.increase = SaturatingAdd(op.self, -freed[s]);
      (*timeline)[s] = SaturatingAdd(alive, op.allocation);
      alive = SaturatingAdd(alive, op.increase);
    }
  }

  // Lists the arrays of a computation that are live at `peak`.
  void ListLive(const ComputationPlan& plan, const BufferAssignment& buffers, uint32_t peak, Need* need) const {
    for (const AssignedBuffer& buffer : buffers.buffers) {
      if (buffer.outside || buffer.from > peak || buffer.to < peak || need->live.size() >= kMaxListed) continue;
      const ArrayName* now = &buffer.arrays.front();
      for (const ArrayName& array : buffer.arrays) {
        if (array.from <= peak) now = &array;
      }
      need->live.push_back({now->value, now->leaf, buffer.bytes, buffer.unpadded_bytes, false});
    }
    need->callee = CalleeNeed(plan.steps[peak]);
  }

  Need NeedOf(const ComputationPlan& plan, const BufferAssignment& buffers, const std::vector<int64_t>& timeline,
              uint32_t* peak_step) const {
    Need need;
    const auto most = std::max_element(timeline.begin(), timeline.end());
    if (most == timeline.end() || *most <= 0) return need;
    need.peak = *most;
    *peak_step = static_cast<uint32_t>(most - timeline.begin());
    ListLive(plan, buffers, *peak_step, &need);
    return need;
  }

  void PlanCallee(const ComputationPlan& plan, ComputationRole role) {
    CalleeMemory& memory = result_.callees.back();
    const BufferAssignment buffers = AssignBuffers(module_, plan_, plan, role, sizes_, &sharing_);
    AddUp(plan, buffers, CalleeBytes(plan), &memory.timeline, &memory.ops);
    uint32_t peak = 0;
    needs_.push_back(NeedOf(plan, buffers, memory.timeline, &peak));
  }

  void AddPersistent(Instruction value) {
    const int64_t bytes = sizes_.PaddedSum(value.shape());
    LiveRange range;
    range.value = value.id();
    range.bytes = bytes;
    range.offset = result_.parameter_bytes;
    result_.persistent.push_back(range);
    result_.parameter_bytes = SaturatingAdd(result_.parameter_bytes, bytes);
  }

  void PlanEntry(const ComputationPlan& plan) {
    const uint32_t n = static_cast<uint32_t>(plan.steps.size());
    const Computation entry = module_.entry();
    for (int64_t k = 0; k < entry.parameter_count(); ++k) AddPersistent(entry.parameter(k));
    for (Computation c : module_.computations()) {
      for (Instruction i : c.instructions()) {
        if (i.opcode() == Opcode::kConstant && !i.shape().IsScalar()) AddPersistent(i);
      }
    }
    const BufferAssignment buffers = AssignBuffers(module_, plan_, plan, ComputationRole::kEntry, sizes_, &sharing_);
    const std::vector<int64_t> callees = CalleeBytes(plan);
    AddUp(plan, buffers, callees, &result_.timeline, &result_.ops);
    uint32_t peak = n;
    Need need = NeedOf(plan, buffers, result_.timeline, &peak);
    AddRanges(plan, buffers, callees);
    result_.heap_peak_bytes = need.peak;
    result_.heap_bytes = AssignOffsets(n, need.peak, &result_.live_ranges);
    result_.peak_bytes = SaturatingAdd(result_.parameter_bytes, need.peak);
    for (int64_t& bytes : result_.timeline) bytes = SaturatingAdd(bytes, result_.parameter_bytes);
    if (peak < n) result_.peak_at = plan.steps[peak].root;
    AddLive(std::move(need));
  }

  // Adds the live ranges of the heap, and the results in the memory of parameters.
  void AddRanges(const ComputationPlan& plan, const BufferAssignment& buffers, const std::vector<int64_t>& callees) {
    const uint32_t n = static_cast<uint32_t>(plan.steps.size());
    std::vector<std::vector<const AssignedBuffer*>> begins(n);
    for (const AssignedBuffer& buffer : buffers.buffers) {
      if (buffer.outside) {
        for (const ArrayName& array : buffer.arrays) {
          if (&array == &buffer.arrays.front() || buffer.parameter < 0) continue;
          result_.aliased.push_back({array.value, array.leaf, buffer.parameter, buffer.bytes});
        }
        continue;
      }
      begins[buffer.from].push_back(&buffer);
      if (buffer.to == n) result_.result_bytes = SaturatingAdd(result_.result_bytes, buffer.bytes);
    }
    for (uint32_t s = 0; s < n; ++s) {
      if (callees[s] > 0) result_.live_ranges.push_back({plan.steps[s].root, 0, callees[s], s, s, true, 0});
      for (const AssignedBuffer* buffer : begins[s]) {
        const ArrayName& array = buffer->arrays.front();
        result_.live_ranges.push_back({array.value, array.leaf, buffer->bytes, s, buffer->to, false, 0});
      }
    }
  }

  // Lists what is live at the peak: arrays of the entry and of the computations that run then, parameters, constants.
  void AddLive(Need need) {
    std::vector<LiveArray>& live = result_.live;
    live = std::move(need.live);
    for (int64_t callee = need.callee; callee >= 0 && live.size() < kMaxListed;) {
      const Need& inner = needs_[static_cast<size_t>(callee)];
      const size_t count = std::min(inner.live.size(), kMaxListed - live.size());
      live.insert(live.end(), inner.live.begin(), inner.live.begin() + static_cast<ptrdiff_t>(count));
      callee = inner.callee;
    }
    for (const LiveRange& range : result_.persistent) {
      if (range.bytes == 0) continue;
      const Instruction value = module_.instruction(range.value);
      int64_t unpadded = 0;
      std::vector<Shape> open = {value.shape()};
      while (!open.empty()) {
        const Shape s = open.back();
        open.pop_back();
        unpadded = SaturatingAdd(unpadded, sizes_.Unpadded(s));
        open.insert(open.end(), s.elements().begin(), s.elements().end());
      }
      live.push_back({range.value, 0, range.bytes, unpadded, value.opcode() == Opcode::kParameter});
    }
    std::stable_sort(live.begin(), live.end(),
                     [](const LiveArray& a, const LiveArray& b) { return a.bytes > b.bytes; });
    for (const LiveArray& array : live) {
      result_.padding_bytes = SaturatingAdd(result_.padding_bytes, array.bytes - array.unpadded_bytes);
    }
  }

  const Module& module_;
  const KernelPlan& plan_;
  const ArraySizes sizes_;
  BufferSharing sharing_;
  std::vector<Need> needs_;  // parallel to the plan's computations
  MemoryPlan result_;
};

}  // namespace

MemoryPlan PlanMemory(const DeviceDescription& machine, const Module& module, const KernelPlan& plan, double parts) {
  return Planner(machine, module, plan, parts).Run();
}

std::string ArrayText(Instruction value, int64_t leaf) {
  if (!value.shape().IsTuple()) return std::string(value.name());
  return StrCat(value.name(), "{", leaf, "}");
}

}  // namespace hlokit::tpu
