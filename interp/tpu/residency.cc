#include "interp/tpu/residency.h"

#include <algorithm>

#include "interp/tpu/op_class.h"
#include "interp/tpu/tiling.h"
#include "passes/schedule/memory_space_assignment.h"

namespace hlokit::tpu {

namespace {

constexpr uint32_t kLongestStay = 512;  // steps

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

bool IsStateElement(Instruction value, Computation body) {
  return value.opcode() == Opcode::kGetTupleElement && value.operand(0).opcode() == Opcode::kParameter &&
         value.parent() == body;
}

// The state of a loop: small elements that change stay if all fit, of those that only are read a part.
void PlaceState(const Machine& machine, const Module& module, Computation body, const std::vector<KernelWork>& works,
                double scale, uint32_t last_step, double* room, Residency* result,
                absl::flat_hash_set<uint32_t>* kept_roots) {
  if (body.parameter_count() != 1 || body.root().opcode() != Opcode::kTuple) return;
  const absl::flat_hash_set<int64_t> invariant = InvariantElements(body);
  std::vector<std::pair<double, int64_t>> changing;
  for (int64_t k = 0; k < body.root().operand_count(); ++k) {
    if (invariant.contains(k) || !body.root().operand(k).shape().IsArray()) continue;
    changing.push_back({static_cast<double>(PaddedBytes(machine, body.root().operand(k).shape())) * scale, k});
  }
  std::sort(changing.begin(), changing.end());
  absl::flat_hash_set<int64_t> kept;
  for (const auto& [bytes, k] : changing) {
    if (bytes > *room) break;
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
    if (IsStateElement(value, body) && value.int_attr(Attr::kIndex) == k) result.insert(k);
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

Residency PlaceArrays(const Machine& machine, const Module& module, const ComputationPlan& plan,
                      const std::vector<KernelWork>& works, bool loop_body, const std::vector<double>& called,
                      bool assigned, double scale) {
  Residency result;
  const double whole =
      std::max(machine.OnChipBytes() - machine.vmem_scoped * static_cast<double>(machine.cores_per_device()), 0.0);
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
      if (kept_roots.contains(access.value.value)) result.part[access.value.value] = 1;
    }
  }
  if (assigned) return result;

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
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const Access& access : works[s].writes) {
      if (outside.contains(access.value.value)) continue;
      const Instruction value = module.instruction(access.value);
      const double bytes = static_cast<double>(PaddedBytes(machine, value.shape())) * scale;
      if (bytes > 0 && bytes <= whole - state) candidates[access.value.value] = {access.value.value, s, s, bytes};
    }
  }
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    for (const Access& access : works[s].reads) {
      Instruction value = module.instruction(access.value);
      // The elements of what a kernel with several results makes.
      if (value.opcode() == Opcode::kGetTupleElement) value = ValueOf(value.operand(0));
      if (const auto found = candidates.find(value.id().value); found != candidates.end()) {
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
  // Elements of resident tuples.
  for (const KernelWork& work : works) {
    for (const Access& access : work.reads) {
      const Instruction value = module.instruction(access.value);
      if (value.opcode() != Opcode::kGetTupleElement) continue;
      const auto found = result.part.find(ValueOf(value.operand(0)).id().value);
      if (found != result.part.end()) result.part[access.value.value] = found->second;
    }
  }
  return result;
}

}  // namespace hlokit::tpu
