// SPDX-License-Identifier: Apache-2.0
// HBM that a program needs on a device: parameters, results and live temporaries, with padding, as the steps of the
// kernel plan run one after another.
//
// The live range of an array begins at the step that produces it and ends at its last use, through aliases and tuples.
// Loops and updates work in place on operands that have no later use; no other step reuses the memory of operands that
// die with it. Parameters live throughout unless the module donates or aliases them; results live until the end. Memory
// that a called computation needs beyond its operands counts at the call.
#ifndef HLOKIT_INTERP_TPU_MEMORY_MEMORY_PLAN_H_
#define HLOKIT_INTERP_TPU_MEMORY_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

#include "interp/tpu/program/kernel_plan.h"
#include "ir/graph/module.h"
#include "passes/target/device_description.h"

namespace hlokit::tpu {

struct LiveArray {
  InstructionId value;
  int64_t bytes = 0;           // with padding
  int64_t unpadded_bytes = 0;  // without padding
  bool parameter = false;
};

// A buffer of the entry computation; its bounds are steps of the plan.
struct LiveRange {
  InstructionId value;
  int64_t bytes = 0;
  uint32_t from = 0;      // the step that produces it
  uint32_t to = 0;        // its last use; past the end for results
  bool in_place = false;  // reuses memory that dies with its step
  bool scratch = false;   // callee memory, only while its step runs
};

// Memory of a step of the entry computation, in bytes with padding.
struct OpMemory {
  InstructionId name;
  int64_t allocation = 0;  // size of its results
  int64_t increase = 0;    // live bytes after it less live bytes before it
  int64_t self = 0;        // callee memory, only while it runs
};

struct MemoryPlan {
  int64_t parameter_bytes = 0;
  int64_t result_bytes = 0;  // results outside the memory of parameters
  int64_t peak_bytes = 0;
  int64_t padding_bytes = 0;           // at the peak, of the listed arrays
  InstructionId peak_at;               // the step of the entry computation at the peak
  std::vector<LiveArray> live;         // at the peak, in the innermost computation and its callers; largest first
  std::vector<int64_t> timeline;       // live bytes at each step of the entry's plan
  std::vector<LiveRange> persistent;   // parameters and constants, live throughout
  std::vector<LiveRange> live_ranges;  // by producing step; callee memory has a range of its own
  std::vector<OpMemory> ops;           // by step of the entry's plan
  int64_t heap_bytes = 0;              // heap size for these live ranges (heap_simulator.h)
  int64_t heap_peak_bytes = 0;         // peak of live bytes in the heap
  double limit_bytes = 0;              // HBM capacity of a device
  int64_t fragmentation_bytes() const { return heap_bytes - heap_peak_bytes; }
  bool fits() const { return static_cast<double>(peak_bytes) <= limit_bytes; }
};

// Computes the memory plan. `parts`: number of devices that share each array of an unpartitioned module.
MemoryPlan PlanMemory(const DeviceDescription& machine, const Module& module, const KernelPlan& plan, double parts);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_MEMORY_MEMORY_PLAN_H_
