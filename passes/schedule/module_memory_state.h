// SPDX-License-Identifier: Apache-2.0
// State of memory-space assignment that the computations of a module share.
#ifndef HLOKIT_PASSES_SCHEDULE_MODULE_MEMORY_STATE_H_
#define HLOKIT_PASSES_SCHEDULE_MODULE_MEMORY_STATE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/loop.h"
#include "passes/schedule/memory_space_assignment.h"
#include "passes/target/cost_model.h"
#include "passes/target/tiling.h"

namespace hlokit {

struct ModuleMemoryState {
  ModuleMemoryState(Module* module_in, const tpu::TpuTarget& target_in, const MemorySpaceOptions& options_in)
      : module(*module_in),
        target(target_in),
        tile(TileOf(target_in.machine)),
        options(options_in),
        calls(*module_in),
        model(*module_in, target_in),
        callers(CountCallers(*module_in)),
        loops(module_in->computation_id_bound(), 0),
        loop_of(module_in->computation_id_bound()),
        held(module_in->computation_id_bound(), 0),
        outside(module_in->computation_id_bound(), 0) {
    CollectLoops();
  }

  // Returns the peak VMEM of the computations that the instruction calls.
  int64_t BytesHeldByCallees(Instruction i) const {
    int64_t bytes = 0;
    if (i.opcode() == Opcode::kFusion) return bytes;
    i.ForEachCallee([&](Computation callee) { bytes = std::max(bytes, held[callee.id().value]); });
    return bytes;
  }

  Module& module;
  const tpu::TpuTarget& target;
  const tpu::VectorTile tile;
  const MemorySpaceOptions options;
  const CallGraph calls;
  const tpu::CostModel model;
  const std::vector<uint32_t> callers;  // by ComputationId: CountCallers
  std::vector<uint8_t> loops;           // by ComputationId: it runs a loop
  std::vector<InstructionId> loop_of;   // by ComputationId, of bodies: the while instruction
  std::vector<int64_t> held;            // by ComputationId: peak VMEM allocated by the computation and its callees
  std::vector<int64_t> outside;         // by ComputationId: peak VMEM that its callers hold during a call
  MemorySpaceCounts counts;

 private:
  void CollectLoops() {
    for (ComputationId id : calls.PostOrder()) {
      for (Instruction i : module.computation(id).instructions()) {
        if (!MightHaveCalledComputations(i.opcode()) || i.opcode() == Opcode::kFusion) continue;
        if (i.opcode() == Opcode::kWhile) {
          loops[id.value] = 1;
          loop_of[i.computation_attr(Attr::kBody).id().value] = i.id();
        }
        i.ForEachCallee([&](Computation callee) { loops[id.value] |= loops[callee.id().value]; });
      }
    }
  }
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_MODULE_MEMORY_STATE_H_
