// SPDX-License-Identifier: Apache-2.0
// HBM that a program needs on a device: parameters, constants, results and live temporaries, with padding, as the steps
// of the kernel plan run one after another.
//
// Buffers are those of buffer_assignment.h. Parameters and constants are live throughout; results until the end,
// in the memory of parameters that the module donates or aliases, where these are dead by then. Memory that a called
// computation needs beyond its operands and results counts at the call. The peak, the live ranges with their addresses
// and the timelines are one set of numbers: reports, profiles and buffer assignments all take them from here.
#ifndef HLOKIT_SIMULATOR_MEMORY_MEMORY_PLAN_H_
#define HLOKIT_SIMULATOR_MEMORY_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/target/device_description.h"
#include "simulator/memory/buffer_assignment.h"
#include "simulator/program/kernel_plan.h"

namespace hlokit::tpu {

struct LiveArray {
  InstructionId value;
  int64_t leaf = 0;            // of the shape of `value`
  int64_t bytes = 0;           // with padding
  int64_t unpadded_bytes = 0;  // without padding
  bool parameter = false;
};

// A buffer of the entry computation; its bounds are steps of the plan.
struct LiveRange {
  InstructionId value;
  int64_t leaf = 0;
  int64_t bytes = 0;
  uint32_t from = 0;     // the step that produces it
  uint32_t to = 0;       // its last use; past the end for results
  bool scratch = false;  // callee memory, only while its step runs
  int64_t offset = 0;    // address in the heap; of parameters and constants: from the start of the memory
};

// A result in the memory of a parameter.
struct AliasedResult {
  InstructionId value;
  int64_t leaf = 0;
  int64_t parameter = 0;
  int64_t bytes = 0;
};

// Memory of a step, in bytes with padding, as torch_tb_profiler defines the columns.
struct OpMemory {
  InstructionId name;
  int64_t allocation = 0;  // bytes allocated by the step and by the computations that it calls
  int64_t increase = 0;    // live bytes after it less live bytes before it
  int64_t self = 0;        // bytes allocated by the step itself
};

// Memory of a called computation beyond its parameters and results.
struct CalleeMemory {
  std::vector<int64_t> timeline;  // live bytes at each step
  std::vector<OpMemory> ops;      // by step
};

struct MemoryPlan {
  int64_t parameter_bytes = 0;         // parameters and constants
  int64_t result_bytes = 0;            // results outside the memory of parameters
  int64_t peak_bytes = 0;              // parameter_bytes + heap_peak_bytes
  int64_t padding_bytes = 0;           // at the peak, of the listed arrays
  InstructionId peak_at;               // the step of the entry computation at the peak
  std::vector<LiveArray> live;         // at the peak, in the innermost computation and its callers; largest first
  std::vector<int64_t> timeline;       // live bytes at each step of the entry's plan
  std::vector<LiveRange> persistent;   // parameters and constants, live throughout
  std::vector<LiveRange> live_ranges;  // by producing step; callee memory has a range of its own
  std::vector<AliasedResult> aliased;  // results in the memory of parameters
  std::vector<OpMemory> ops;           // by step of the entry's plan
  std::vector<CalleeMemory> callees;   // parallel to the plan's computations; empty for the entry
  int64_t heap_bytes = 0;              // heap size for these live ranges (heap_simulator.h)
  int64_t heap_peak_bytes = 0;         // peak of live bytes in the heap
  double limit_bytes = 0;              // HBM capacity of a device
  // Bytes that the heap needs in excess of its peak of live bytes.
  int64_t fragmentation_bytes() const { return heap_bytes - heap_peak_bytes; }
  bool fits() const { return static_cast<double>(peak_bytes) <= limit_bytes; }
};

// Computes the memory plan. `parts`: number of devices that share each array of an unpartitioned module.
MemoryPlan PlanMemory(const DeviceDescription& machine, const Module& module, const KernelPlan& plan, double parts);

// Returns the name of a leaf of an instruction's result: "fusion.3", or "fusion.3{1}" of a tuple.
std::string ArrayText(Instruction value, int64_t leaf);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_MEMORY_MEMORY_PLAN_H_
