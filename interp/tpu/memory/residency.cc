// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/memory/residency.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "interp/tpu/cost/op_class.h"
#include "interp/tpu/devices/tiling.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/loop.h"
#include "passes/schedule/loop_state.h"
#include "passes/schedule/vector_memory.h"

namespace hlokit::tpu {

namespace {

constexpr uint32_t kLongestStay = 512;  // steps
constexpr uint32_t kNoArray = 0xffffffffu;

struct Candidate {
  uint32_t value = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  double bytes = 0;
};

// Values below `i`, through tuples.
void MarkBelow(Instruction i, absl::flat_hash_set<uint32_t>* marked) {
  std::vector<Instruction> open = {i};
  absl::flat_hash_set<uint32_t> tuples;
  while (!open.empty()) {
    const Instruction value = ValueOf(open.back());
    open.pop_back();
    if (ClassOf(value.opcode()) != OpClass::kTuple) {
      marked->insert(value.id().value);
      continue;
    }
    if (!tuples.insert(value.id().value).second) continue;
    for (Instruction operand : value.operands()) open.push_back(operand);
  }
}

// The state of a loop: elements that change stay where they fit, of those that only are read a part.
void PlaceState(const Machine& machine, const Module& module, Computation body, const std::vector<KernelWork>& works,
                double scale, uint32_t last_step, double* room, Residency* result,
                absl::flat_hash_set<uint32_t>* kept_roots) {
  if (body.parameter_count() != 1 || body.root().opcode() != Opcode::kTuple) return;
  const absl::flat_hash_set<int64_t> invariant = InvariantElements(body);
  // What is made anew in each trip before what is written over in part; the smallest first.
  std::vector<std::tuple<bool, double, int64_t>> changing;
  for (const ChangingElement& element : ChangingElements(body)) {
    if (invariant.contains(element.index)) continue;
    const double bytes = static_cast<double>(PaddedBytes(machine, element.value.shape())) * scale;
    changing.emplace_back(element.in_place, bytes, element.index);
  }
  std::sort(changing.begin(), changing.end());
  absl::flat_hash_set<int64_t> kept;
  for (const auto& [in_place, bytes, k] : changing) {
    if (bytes > *room) continue;
    *room -= bytes;
    kept.insert(k);
    result->residents.push_back({ValueOf(body.root().operand(k)).id(), bytes, 0, last_step});
    kept_roots->insert(ValueOf(body.root().operand(k)).id().value);
  }
  double whole = 0;
  absl::flat_hash_set<uint32_t> read;
  for (const KernelWork& work : works) {
    for (const Access& access : work.reads) {
      const Instruction value = module.instruction(access.value);
      if (!IsStateElement(value, body)) continue;
      const int64_t k = value.int_attr(Attr::kIndex);
      if (kept.contains(k)) result->part[access.value.value] = 1;
      if (invariant.contains(k) && access.whole && read.insert(access.value.value).second)
        whole += access.bytes * scale;
    }
  }
  if (whole <= 0) return;
  const double stays = std::min({whole * machine.vmem_loop_fraction, machine.VmemBytes() / 2, *room});
  *room -= stays;
  for (uint32_t value : read) result->part[value] = stays / whole;
}

// The part of the array, or of the arrays of a tuple, that its layout puts into vector memory.
double PartInVmem(const Machine& machine, Shape shape) {
  double bytes = 0, in_vmem = 0;
  for (Shape leaf : Leaves(shape)) {
    if (!leaf.IsArray()) continue;
    const double size = static_cast<double>(PaddedBytes(machine, leaf));
    bytes += size;
    if (leaf.has_layout() && leaf.layout()->memory_space() == kVectorMemorySpace) in_vmem += size;
  }
  return bytes > 0 ? in_vmem / bytes : 0;
}

// The arrays of a tuple that a kernel makes, as the computation takes them out of it. One that is taken out twice, or
// not by its index alone, is none.
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

// What kernels with several results write there: the parts of their tuples that stay.
void CountWrittenParts(const Machine& machine, const Module& module, const std::vector<KernelWork>& works,
                       Residency* result) {
  for (const KernelWork& work : works) {
    for (const Access& access : work.writes) {
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

bool IsInVmem(Shape array) {
  return array.IsArray() && array.has_layout() && array.layout()->memory_space() == kVectorMemorySpace;
}

// What a memory-space assignment has put into vector memory, from the step that makes it, or that begins to copy it
// there, to the last that reads it.
std::vector<Candidate> FindAssigned(const Machine& machine, const Module& module, const ComputationPlan& plan,
                                    const std::vector<KernelWork>& works, double scale, Residency* result) {
  std::vector<Candidate> assigned;
  absl::flat_hash_map<uint32_t, size_t> place;  // in assigned, by value
  const auto meet = [&](InstructionId value, uint32_t step) {
    if (const auto found = place.find(value.value); found != place.end()) {
      assigned[found->second].to = step;
      return;
    }
    const Shape shape = module.instruction(value).shape();
    const double part = PartInVmem(machine, shape);
    if (part == 0) return;
    result->part[value.value] = part;
    place[value.value] = assigned.size();
    assigned.push_back({value.value, step, step, part * static_cast<double>(PaddedBytes(machine, shape)) * scale});
  };
  for (uint32_t s = 0; s < works.size(); ++s) {
    if (plan.steps[s].kind == StepKind::kCopy) {
      const Instruction start = module.instruction(plan.steps[s].name);
      for (Instruction operand : start.operands()) {
        const Instruction value = ValueOf(operand);
        if (IsInVmem(value.shape())) meet(value.id(), s);
      }
      for (Instruction done : start.users()) {
        if (done.opcode() == Opcode::kCopyDone && IsInVmem(done.shape())) meet(done.id(), s);
      }
    }
    // Until its copy is done the source of one stays.
    if (plan.steps[s].kind == StepKind::kDone) {
      const Instruction done = module.instruction(plan.steps[s].name);
      if (done.opcode() == Opcode::kCopyDone && done.operand(0).opcode() == Opcode::kCopyStart) {
        const Instruction value = ValueOf(done.operand(0).operand(0));
        if (IsInVmem(value.shape())) meet(value.id(), s);
      }
    }
    for (const Access& access : works[s].reads) meet(access.value, s);
    for (const Access& access : works[s].writes) {
      // What is written over an array is that array.
      const Instruction written = module.instruction(access.value);
      for (int64_t k = 0; k < written.operand_count(); ++k) {
        const auto found = place.find(ValueOf(written.operand(k)).id().value);
        if (found == place.end() || !IsUpdatedBy(written.operand(k), written, k)) continue;
        const size_t at = found->second;
        place[written.id().value] = at;
      }
      if (place.contains(written.id().value)) result->part[written.id().value] = 1;
      meet(access.value, s);
    }
  }
  return assigned;
}

}  // namespace

absl::flat_hash_set<int64_t> InvariantElements(Computation body) {
  absl::flat_hash_set<int64_t> result;
  if (body.parameter_count() != 1 || body.root().opcode() != Opcode::kTuple) return result;
  for (int64_t k = 0; k < body.root().operand_count(); ++k) {
    const Instruction value = ValueOf(body.root().operand(k));
    if (IsStateElement(value, body, k)) result.insert(k);
  }
  return result;
}

bool HasAssignment(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      for (Shape leaf : Leaves(i.shape())) {
        if (IsInVmem(leaf)) return true;
      }
    }
  }
  return false;
}

std::vector<double> HeldByCallers(const Machine& machine, const Module& module, double scale) {
  std::vector<double> outside(module.computation_id_bound(), 0);
  const CallGraph calls(module);
  const absl::Span<const ComputationId> callees_first = calls.CalleesFirst();
  std::vector<uint32_t> array_of(module.instruction_id_bound(), kNoArray), place_of(module.instruction_id_bound(), 0);
  for (size_t at = callees_first.size(); at-- > 0;) {
    const Computation c = module.computation(callees_first[at]);
    if (!calls.IsLive(c) || !calls.IsSequential(c)) continue;
    std::vector<Candidate> arrays;
    std::vector<std::pair<uint32_t, Instruction>> callers;
    uint32_t place = 0;
    for (Instruction i : c.instructions()) {
      uint32_t array = kNoArray;
      for (int64_t k = 0; k < i.operand_count(); ++k) {
        const uint32_t read = array_of[i.operand(k).id().value];
        if (read == kNoArray) continue;
        arrays[read].to = place;
        // The same bytes: under another name, written over, on their way.
        const bool leaves = i.opcode() == Opcode::kCopyStart || i.opcode() == Opcode::kCopyDone;
        if (IsRename(i) || leaves || IsUpdatedBy(i.operand(k), i, k)) array = read;
      }
      if (array == kNoArray && IsInVmem(i.shape())) {
        array = static_cast<uint32_t>(arrays.size());
        const double bytes = static_cast<double>(PaddedBytes(machine, i.shape())) * scale;
        // What a copy brings has its place from the start.
        const uint32_t from = i.opcode() == Opcode::kCopyDone ? place_of[i.operand(0).id().value] : place;
        arrays.push_back({i.id().value, from, place, bytes});
      }
      array_of[i.id().value] = array;
      place_of[i.id().value] = place;
      if (MayCall(i.opcode()) && i.opcode() != Opcode::kFusion) callers.push_back({place, i});
      ++place;
    }
    std::vector<double> change(place + 1, 0);
    for (const Candidate& array : arrays) {
      change[array.from] += array.bytes;
      change[array.to + 1] -= array.bytes;
    }
    double held = outside[c.id().value];
    uint32_t next = 0;
    for (const auto& [where, caller] : callers) {
      for (; next <= where; ++next) held += change[next];
      for (Computation callee : caller.called_computations()) {
        double& most = outside[callee.id().value];
        most = std::max(most, held);
      }
    }
  }
  return outside;
}

Residency PlaceArrays(const Machine& machine, const Module& module, const ComputationPlan& plan,
                      const std::vector<KernelWork>& works, bool loop_body, const std::vector<double>& called,
                      double outside_bytes, bool assigned, double scale) {
  Residency result;
  const double scoped = machine.vmem_scoped * static_cast<double>(machine.cores_per_device());
  const double whole = std::max(machine.OnChipBytes() - scoped - outside_bytes, 0.0);
  const uint32_t last_step = plan.steps.empty() ? 0 : static_cast<uint32_t>(plan.steps.size()) - 1;
  const Computation computation = module.computation(plan.computation);

  // By step: what is called holds there, and what is assigned.
  std::vector<double> held = called;
  for (const Candidate& candidate : FindAssigned(machine, module, plan, works, scale, &result)) {
    for (uint32_t s = candidate.from; s <= candidate.to; ++s) held[s] += candidate.bytes;
    result.residents.push_back({InstructionId(candidate.value), candidate.bytes, candidate.from, candidate.to});
  }
  double room = whole;
  for (double bytes : held) room = std::min(room, std::max(whole - bytes, 0.0));
  const double before_state = room;
  absl::flat_hash_set<uint32_t> kept_roots;
  if (loop_body) PlaceState(machine, module, computation, works, scale, last_step, &room, &result, &kept_roots);
  const double state = before_state - room;
  result.free_bytes.resize(plan.steps.size());
  for (size_t s = 0; s < held.size(); ++s) {
    result.free_bytes[s] = std::max(whole - held[s] - state, 0.0);
    result.used_bytes.push_back(held[s] - called[s] + state);
  }
  for (const KernelWork& work : works) {
    for (const Access& access : work.writes) {
      const Instruction value = module.instruction(access.value);
      if (kept_roots.contains(access.value.value)) result.part[access.value.value] = 1;
      if (!value.shape().IsTuple()) continue;
      for (Instruction element : TakenFrom(value)) {
        if (kept_roots.contains(element.id().value)) result.part[element.id().value] = 1;
      }
    }
  }
  if (assigned) {
    CountWrittenParts(machine, module, works, &result);
    return result;
  }

  // Values that leave the computation, or that a step other than a kernel uses, are in HBM.
  absl::flat_hash_set<uint32_t> outside;
  MarkBelow(computation.root(), &outside);
  for (uint32_t value : kept_roots) outside.erase(value);
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kKernel) continue;
    for (InstructionId member : step.members) {
      for (Instruction operand : module.instruction(member).operands()) MarkBelow(operand, &outside);
    }
  }
  absl::flat_hash_map<uint32_t, Candidate> candidates;
  const auto consider = [&](Instruction value, uint32_t step) {
    if (outside.contains(value.id().value) || !value.shape().IsArray()) return;
    const double bytes = static_cast<double>(PaddedBytes(machine, value.shape())) * scale;
    if (bytes > 0 && bytes <= whole - state) candidates[value.id().value] = {value.id().value, step, step, bytes};
  };
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const Access& access : works[s].writes) {
      const Instruction value = module.instruction(access.value);
      if (!value.shape().IsTuple()) {
        consider(value, s);
      } else if (!outside.contains(value.id().value)) {
        for (Instruction element : TakenFrom(value)) consider(element, s);
      }
    }
  }
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const Access& access : works[s].reads) {
      if (const auto found = candidates.find(access.value.value); found != candidates.end()) {
        found->second.to = std::max(found->second.to, s);
      }
    }
  }
  std::vector<Candidate> sorted;
  for (const auto& [value, candidate] : candidates) {
    if (candidate.to - candidate.from <= kLongestStay) sorted.push_back(candidate);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Candidate& a, const Candidate& b) {
    const uint32_t la = a.to - a.from;
    const uint32_t lb = b.to - b.from;
    return la != lb ? la < lb : a.from != b.from ? a.from < b.from : a.value < b.value;
  });
  for (const Candidate& c : sorted) {
    bool fits = true;
    for (uint32_t s = c.from; s <= c.to && fits; ++s) fits = result.free_bytes[s] >= c.bytes;
    if (!fits) continue;
    for (uint32_t s = c.from; s <= c.to; ++s) {
      result.free_bytes[s] -= c.bytes;
      result.used_bytes[s] += c.bytes;
    }
    result.part[c.value] = 1;
    result.residents.push_back({InstructionId(c.value), c.bytes, c.from, c.to});
  }
  CountWrittenParts(machine, module, works, &result);
  return result;
}

}  // namespace hlokit::tpu
