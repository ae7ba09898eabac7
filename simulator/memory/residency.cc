// SPDX-License-Identifier: Apache-2.0
#include "simulator/memory/residency.h"

#include <algorithm>
#include <vector>

#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/loop.h"
#include "passes/schedule/loop_state.h"
#include "passes/schedule/vector_memory.h"
#include "passes/target/aliases.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

namespace {

constexpr uint32_t kNoArray = 0xffffffffu;

struct Candidate {
  uint32_t value = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  double bytes = 0;
};

// Returns the padded bytes on one device.
double BytesOf(const TpuTarget& target, Shape shape) {
  return static_cast<double>(PaddedBytes(target.machine, shape)) / target.parts;
}

// Returns the get-tuple-elements of `tuple` by index, without indices that are read twice. Returns none if the tuple
// has any other use.
std::vector<Instruction> TakenFrom(Instruction tuple) {
  std::vector<Instruction> elements;
  for (const auto [user, index] : tuple.uses()) {
    if (user.opcode() != Opcode::kGetTupleElement) return {};
    elements.push_back(user);
  }
  std::sort(elements.begin(), elements.end(), [](Instruction a, Instruction b) {
    const int64_t ka = a.int_attr(Attr::kIndex), kb = b.int_attr(Attr::kIndex);
    return ka != kb ? ka < kb : a.id().value < b.id().value;
  });
  std::vector<Instruction> once;
  for (size_t e = 0; e < elements.size(); ++e) {
    const int64_t index = elements[e].int_attr(Attr::kIndex);
    const bool again = (e > 0 && elements[e - 1].int_attr(Attr::kIndex) == index) ||
                       (e + 1 < elements.size() && elements[e + 1].int_attr(Attr::kIndex) == index);
    if (!again) once.push_back(elements[e]);
  }
  return once;
}

// Sets the fraction in vector memory of tuples that kernels write.
void CountWrittenParts(const DeviceDescription& machine, const Module& module, const std::vector<KernelCost>& works,
                       Residency* result) {
  for (const KernelCost& work : works) {
    for (const MemoryAccess& access : work.writes) {
      const Instruction value = module.instruction(access.value);
      if (!value.shape().IsTuple()) continue;
      double there = 0;
      for (Instruction element : TakenFrom(value)) {
        if (result->PartOf(element.id()) == 1) there += static_cast<double>(PaddedBytes(machine, element.shape()));
      }
      if (there == 0) continue;
      double& part = result->part[access.value.value];
      part = std::min(1.0, std::max(part, there / static_cast<double>(PaddedBytes(machine, value.shape()))));
    }
  }
}

// Returns the live intervals that memory space assignment placed in vector memory. Each begins at the step that
// produces the array, or starts to copy it there, and ends at the last read.
std::vector<Candidate> FindAssigned(const Module& module, const TpuTarget& target, const ComputationPlan& plan,
                                    const std::vector<KernelCost>& works, Residency* result) {
  const Computation body = module.computation(plan.computation);
  std::vector<Candidate> assigned;
  absl::flat_hash_map<uint32_t, size_t> position;  // index into assigned, by value
  const auto add_access = [&](InstructionId value, uint32_t step) {
    if (const auto found = position.find(value.value); found != position.end()) {
      assigned[found->second].to = step;
      return;
    }
    const Shape shape = module.instruction(value).shape();
    const double part = FractionInVmem(target.machine, shape);
    if (part == 0) return;
    result->part[value.value] = part;
    position[value.value] = assigned.size();
    assigned.push_back({value.value, step, step, part * BytesOf(target, shape)});
  };
  for (uint32_t s = 0; s < works.size(); ++s) {
    if (plan.steps[s].kind == ScheduleUnitKind::kCopy) {
      const Instruction start = module.instruction(plan.steps[s].root);
      for (Instruction operand : start.operands()) {
        const Instruction value = ValueOf(operand);
        if (IsOnChip(target.machine, value.shape())) add_access(value.id(), s);
      }
      for (Instruction done : start.users()) {
        if (done.opcode() == Opcode::kCopyDone && IsOnChip(target.machine, done.shape())) add_access(done.id(), s);
      }
    }
    // The source of an asynchronous copy is live until its copy-done.
    if (plan.steps[s].kind == ScheduleUnitKind::kDone) {
      const Instruction done = module.instruction(plan.steps[s].root);
      if (done.opcode() == Opcode::kCopyDone && done.operand(0).opcode() == Opcode::kCopyStart) {
        const Instruction value = ValueOf(done.operand(0).operand(0));
        if (IsOnChip(target.machine, value.shape())) add_access(value.id(), s);
      }
    }
    for (const MemoryAccess& access : works[s].reads) {
      add_access(access.value, s);
      // Elements of the loop state are live from the start of the body.
      if (const auto found = position.find(access.value.value);
          found != position.end() && body.parameter_count() == 1 &&
          IsStateElement(module.instruction(access.value), body)) {
        assigned[found->second].from = 0;
      }
    }
    for (const MemoryAccess& access : works[s].writes) {
      const Instruction written = module.instruction(access.value);
      if (IsOnChip(target.machine, written.shape())) {
        // In-place updates share the interval of the updated operand.
        for (int64_t k = 0; k < written.operand_count(); ++k) {
          const auto found = position.find(ValueOf(written.operand(k)).id().value);
          if (found == position.end() || !IsUpdatedInPlaceBy(written.operand(k), written, k)) continue;
          const size_t at = found->second;
          position[written.id().value] = at;
        }
        if (body.parameter_count() == 1) {
          const int64_t over = OperandWrittenOver(written, body);
          const auto found = over < 0 ? position.end() : position.find(written.operand(over).id().value);
          if (found != position.end()) {
            const size_t at = found->second;
            position[written.id().value] = at;
          }
        }
        if (position.contains(written.id().value)) result->part[written.id().value] = 1;
      }
      add_access(access.value, s);
    }
  }
  // Results of the computation are live until its end.
  if (body.root().opcode() == Opcode::kTuple && body.parameter_count() == 1) {
    for (Instruction result : body.root().operands()) {
      const auto found = position.find(ValueOf(result).id().value);
      if (found != position.end()) assigned[found->second].to = static_cast<uint32_t>(works.size()) - 1;
    }
  }
  return assigned;
}

}  // namespace

std::vector<double> ReservedByCallers(const Module& module, const TpuTarget& target) {
  std::vector<double> outside(module.computation_id_bound(), 0);
  const CallGraph calls(module);
  const absl::Span<const ComputationId> callees_first = calls.PostOrder();
  std::vector<uint32_t> array_of(module.instruction_id_bound(), kNoArray),
      position_of(module.instruction_id_bound(), 0);
  for (size_t at = callees_first.size(); at-- > 0;) {
    const Computation c = module.computation(callees_first[at]);
    if (!calls.IsLive(c) || !calls.IsSequential(c)) continue;
    std::vector<Candidate> arrays;
    std::vector<std::pair<uint32_t, Instruction>> callers;
    uint32_t position = 0;
    for (Instruction i : c.instructions()) {
      uint32_t array = kNoArray;
      for (int64_t k = 0; k < i.operand_count(); ++k) {
        const uint32_t read = array_of[i.operand(k).id().value];
        if (read == kNoArray) continue;
        arrays[read].to = position;
        // Aliases, in-place updates and asynchronous copies in flight refer to the same bytes.
        const bool leaves = OpcodeSet{Opcode::kCopyStart, Opcode::kCopyDone}.Contains(i.opcode());
        if (IsAlias(i) || leaves || IsUpdatedInPlaceBy(i.operand(k), i, k)) array = read;
      }
      if (array == kNoArray && IsOnChip(target.machine, i.shape())) {
        array = static_cast<uint32_t>(arrays.size());
        const double bytes = BytesOf(target, i.shape());
        // The destination of a copy is allocated from its copy-start.
        const uint32_t from = i.opcode() == Opcode::kCopyDone ? position_of[i.operand(0).id().value] : position;
        arrays.push_back({i.id().value, from, position, bytes});
      }
      array_of[i.id().value] = array;
      position_of[i.id().value] = position;
      if (MightHaveCalledComputations(i.opcode()) && i.opcode() != Opcode::kFusion) callers.push_back({position, i});
      ++position;
    }
    std::vector<double> change(position + 1, 0);
    for (const Candidate& array : arrays) {
      change[array.from] += array.bytes;
      change[array.to + 1] -= array.bytes;
    }
    double held = outside[c.id().value];
    uint32_t next = 0;
    for (const auto& [where, caller] : callers) {
      for (; next <= where; ++next) held += change[next];
      caller.ForEachCallee([&](Computation callee) {
        double& most = outside[callee.id().value];
        most = std::max(most, held);
      });
    }
  }
  return outside;
}

Residency FindResidency(const Module& module, const TpuTarget& target, const ComputationPlan& plan,
                        const std::vector<KernelCost>& works, const std::vector<double>& called, double outside) {
  Residency result;
  const double whole = std::max(target.VmemForArrays() - outside, 0.0);
  // By step: bytes of callees and of assigned arrays.
  std::vector<double> held = called;
  for (const Candidate& candidate : FindAssigned(module, target, plan, works, &result)) {
    for (uint32_t s = candidate.from; s <= candidate.to; ++s) held[s] += candidate.bytes;
    result.residents.push_back({InstructionId(candidate.value), candidate.bytes, candidate.from, candidate.to});
  }
  for (size_t s = 0; s < held.size(); ++s) {
    result.free_bytes.push_back(std::max(whole - held[s], 0.0));
    result.used_bytes.push_back(held[s] - called[s]);
  }
  CountWrittenParts(target.machine, module, works, &result);
  return result;
}

}  // namespace hlokit::tpu
