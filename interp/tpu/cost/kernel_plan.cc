// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/cost/kernel_plan.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "interp/tpu/cost/op_class.h"
#include "interp/tpu/devices/tiling.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/markers.h"
#include "passes/layout/dimension_order.h"

namespace hlokit::tpu {

namespace {

constexpr size_t kMaxCopies = 8;      // consumers that a cheap producer is repeated in
constexpr size_t kMaxMembers = 1000;  // of a kernel

// Repeated rather than stored when several kernels want it.
bool IsCheap(Instruction i) {
  return i.opcode() == Opcode::kBroadcast || i.opcode() == Opcode::kIota || i.opcode() == Opcode::kConvert;
}

// A transpose that moves nothing with the layouts it has. Where they are open, one that layout assignment makes a
// bitcast: the minor dimension stays, or products, which take operands in any layout, are all that use it.
bool IsLayoutChange(Instruction transpose) {
  if (HasTiles(transpose.shape()) && HasTiles(transpose.operand(0).shape())) return MovesNothing(transpose);
  const absl::Span<const int64_t> order = transpose.list_attr(Attr::kDimensions);
  if (order.empty() || order[order.size() - 1] == static_cast<int64_t>(order.size()) - 1) return true;
  size_t seen = 0;
  for (const auto [user, index] : transpose.uses()) {
    if (ClassOf(user.opcode()) != OpClass::kProduct || ++seen > 16) return false;
  }
  return seen > 0;
}

StepKind KindOf(Instruction i) {
  switch (ClassOf(Unwrapped(i).opcode())) {
    case OpClass::kCollective:
      return StepKind::kCollective;
    case OpClass::kAsyncCopy:
      return StepKind::kCopy;
    case OpClass::kHost:
      return StepKind::kHost;
    case OpClass::kDone:
      return StepKind::kDone;
    case OpClass::kCall:
      return StepKind::kCall;
    case OpClass::kLoop:
      return StepKind::kLoop;
    case OpClass::kSource:
    case OpClass::kRename:
    case OpClass::kTuple:
    case OpClass::kElement:
    case OpClass::kElementwise:
    case OpClass::kMovement:
    case OpClass::kUpdate:
    case OpClass::kReduce:
    case OpClass::kProduct:
    case OpClass::kAlone:
    case OpClass::kScalar:
      break;
  }
  return StepKind::kKernel;
}

struct Kernel {
  Instruction root;
  bool open = false;  // takes producers
  bool product = false;
  bool reduce = false;
  absl::InlinedVector<InstructionId, 4> members;
  absl::InlinedVector<InstructionId, 1> returned;  // members that the computation returns, besides the root
};

class Grouper {
 public:
  Grouper(const std::vector<InstructionId>& order, const Module& module) : module_(module), order_(order) {}

  // Kernels in the order of their roots.
  std::vector<Kernel> Run() {
    for (size_t n = order_.size(); n-- > 0;) Place(module_.instruction(order_[n]));
    std::reverse(kernels_.begin(), kernels_.end());
    for (Kernel& kernel : kernels_) std::reverse(kernel.members.begin(), kernel.members.end());
    return std::move(kernels_);
  }

 private:
  using KernelList = absl::InlinedVector<uint32_t, 2>;

  void Place(Instruction i) {
    const OpClass op_class = ClassOf(i.opcode());
    if (op_class == OpClass::kSource || op_class == OpClass::kTuple || op_class == OpClass::kElement) return;
    if (IsRename(i)) return;
    KernelList consumers;
    bool returned = false;
    if (MayJoin(i) && CollectConsumers(i, &consumers, &returned)) {
      const bool one = consumers.size() == 1 && (!returned || op_class == OpClass::kElementwise);
      if (one || (!returned && IsCheap(i) && consumers.size() <= kMaxCopies)) {
        bool all = true;
        for (uint32_t k : consumers) all = all && CanJoin(i, kernels_[k]);
        if (all) {
          for (uint32_t k : consumers) Join(i, &kernels_[k]);
          if (returned) kernels_[consumers[0]].returned.push_back(i.id());
          of_[i.id().value] = consumers;
          return;
        }
      }
    }
    Kernel kernel;
    kernel.root = i;
    kernel.open = op_class == OpClass::kElementwise || op_class == OpClass::kMovement || op_class == OpClass::kUpdate ||
                  op_class == OpClass::kReduce || op_class == OpClass::kProduct;
    kernels_.push_back(std::move(kernel));
    of_[i.id().value] = {static_cast<uint32_t>(kernels_.size() - 1)};
    Join(i, &kernels_.back());
  }

  static void Join(Instruction i, Kernel* kernel) {
    kernel->members.push_back(i.id());
    const OpClass op_class = ClassOf(i.opcode());
    kernel->product |= op_class == OpClass::kProduct;
    kernel->reduce |= op_class == OpClass::kReduce;
  }

  static bool MayJoin(Instruction i) {
    if (!i.shape().IsArray() || i.is_root() || i.has(Attr::kControlPredecessors)) return false;
    const OpClass op_class = ClassOf(i.opcode());
    return op_class == OpClass::kElementwise || op_class == OpClass::kMovement || op_class == OpClass::kReduce ||
           op_class == OpClass::kProduct;
  }

  // The kernels that use the value, each once, and whether the computation returns it in its tuple. False if it is used
  // by what is no kernel.
  bool CollectConsumers(Instruction i, KernelList* consumers, bool* returned) const {
    absl::InlinedVector<Instruction, 4> open = {i};
    size_t seen = 0;
    while (!open.empty()) {
      const Instruction value = open.back();
      open.pop_back();
      if (value.is_root()) return false;
      for (const auto [user, index] : value.uses()) {
        if (++seen > 64) return false;
        if (IsRename(user)) {
          if (!user.shape().IsArray()) return false;
          open.push_back(user);
          continue;
        }
        if (user.opcode() == Opcode::kTuple && user.is_root()) {
          *returned = true;
          continue;
        }
        const auto found = of_.find(user.id().value);
        if (found == of_.end()) return false;
        for (uint32_t k : found->second) {
          if (std::find(consumers->begin(), consumers->end(), k) == consumers->end()) consumers->push_back(k);
        }
      }
    }
    return !consumers->empty();
  }

  bool CanJoin(Instruction i, const Kernel& kernel) const {
    if (!kernel.open || kernel.members.size() >= kMaxMembers) return false;
    const OpClass op_class = ClassOf(i.opcode());
    if (op_class != OpClass::kReduce && op_class != OpClass::kProduct) return true;
    // What follows a product or reduction in its kernel sees each element once.
    if (kernel.product || kernel.reduce) return false;
    const int64_t elements = ElementsOf(i.shape());
    for (InstructionId member : kernel.members) {
      const Instruction m = module_.instruction(member);
      if (ClassOf(m.opcode()) == OpClass::kMovement && m.opcode() != Opcode::kBroadcast &&
          m.opcode() != Opcode::kIota) {
        return false;
      }
    }
    for (const auto [user, index] : i.uses()) {
      if (ClassOf(user.opcode()) == OpClass::kUpdate) return false;
      if (user.opcode() == Opcode::kBroadcast || ElementsOf(user.shape()) != elements) return false;
    }
    return true;
  }

  const Module& module_;
  const std::vector<InstructionId>& order_;
  std::vector<Kernel> kernels_;
  absl::flat_hash_map<uint32_t, KernelList> of_;  // by instruction
};

Instruction NamingInstruction(const Module& module, const Kernel& kernel) {
  for (InstructionId member : kernel.members) {
    const Instruction m = module.instruction(member);
    if (ClassOf(m.opcode()) == OpClass::kProduct) return m;
  }
  return kernel.root;
}

}  // namespace

Instruction Unwrapped(Instruction i) {
  if (i.opcode() != Opcode::kAsyncStart) return i;
  const Computation callee = i.computation_attr(Attr::kCalls);
  return callee.valid() && HasTrait(callee.root().opcode(), kCollective) ? callee.root() : i;
}

bool IsRename(Instruction i) {
  if (i.opcode() == Opcode::kTranspose) return IsLayoutChange(i);
  if (i.opcode() == Opcode::kReshape) {
    if (!i.shape().IsArray() || !i.operand(0).shape().IsArray()) return true;
    if (HasTiles(i.shape()) && HasTiles(i.operand(0).shape())) return MovesNothing(i);
    const Minor from = MinorOf(i.operand(0).shape());
    const Minor to = MinorOf(i.shape());
    return from.columns == to.columns || from.rows == 1 || to.rows == 1;
  }
  return (ClassOf(i.opcode()) == OpClass::kRename || IsMarker(i)) && i.operand_count() > 0;
}

namespace {

Instruction Renamed(Instruction i) {
  while (IsRename(i)) i = i.operand(0);
  return i;
}

}  // namespace

Instruction ValueOf(Instruction i) {
  while (true) {
    if (IsRename(i)) {
      i = i.operand(0);
    } else if (i.opcode() == Opcode::kGetTupleElement) {
      const Instruction tuple = Renamed(i.operand(0));
      if (tuple.opcode() != Opcode::kTuple || i.int_attr(Attr::kIndex) >= tuple.operand_count()) return i;
      i = tuple.operand(i.int_attr(Attr::kIndex));
    } else {
      return i;
    }
  }
}

KernelPlan::KernelPlan(const Module& module)
    : module_(&module),
      plan_of_(module.computation_id_bound(), -1),
      step_of_(module.instruction_id_bound(), ComputationPlan::kNoStep),
      written_(module.instruction_id_bound(), 0) {
  const CallGraph calls(module);
  for (ComputationId id : calls.CalleesFirst()) {
    const Computation computation = module.computation(id);
    if (calls.IsLive(computation) && calls.IsSequential(computation)) Plan(computation, module.header().is_scheduled);
  }
}

void KernelPlan::Plan(Computation computation, bool scheduled) {
  std::vector<InstructionId> order;
  if (scheduled) {
    for (Instruction i : computation.instructions()) order.push_back(i.id());
  } else {
    order = PostOrder(computation);
  }
  std::vector<Kernel> kernels = Grouper(order, *module_).Run();
  ComputationPlan plan;
  plan.computation = computation.id();
  plan.steps.reserve(kernels.size());
  // A producer that several kernels repeat belongs to none of them alone; only roots are named as steps.
  for (const Kernel& kernel : kernels) {
    step_of_[kernel.root.id().value] = static_cast<uint32_t>(plan.steps.size());
    written_[kernel.root.id().value] = 1;
    Step step;
    step.kind = KindOf(kernel.root);
    step.name = NamingInstruction(*module_, kernel).id();
    step.members.assign(kernel.members.begin(), kernel.members.end());
    for (InstructionId returned : kernel.returned) {
      step.results.push_back(returned);
      step_of_[returned.value] = static_cast<uint32_t>(plan.steps.size());
      written_[returned.value] = 1;
    }
    step.results.push_back(kernel.root.id());
    absl::flat_hash_set<uint32_t> inputs;
    std::vector<Instruction> open;
    absl::flat_hash_set<uint32_t> tuples;
    for (InstructionId member : step.members) {
      const Instruction m = module_->instruction(member);
      for (Instruction operand : m.operands()) open.push_back(operand);
      for (Instruction before : m.control_predecessors()) open.push_back(before);
    }
    while (!open.empty()) {
      const Instruction value = ValueOf(open.back());
      open.pop_back();
      if (ClassOf(value.opcode()) == OpClass::kTuple || value.opcode() == Opcode::kGetTupleElement) {
        if (!tuples.insert(value.id().value).second) continue;
        for (Instruction operand : value.operands()) open.push_back(operand);
        continue;
      }
      const uint32_t source = step_of_[value.id().value];
      if (source != ComputationPlan::kNoStep && source != plan.steps.size()) inputs.insert(source);
    }
    step.inputs.assign(inputs.begin(), inputs.end());
    std::sort(step.inputs.begin(), step.inputs.end());
    plan.steps.push_back(std::move(step));
  }
  plan_of_[computation.id().value] = static_cast<int64_t>(computations_.size());
  computations_.push_back(std::move(plan));
}

}  // namespace hlokit::tpu
