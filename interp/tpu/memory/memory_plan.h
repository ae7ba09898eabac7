// SPDX-License-Identifier: Apache-2.0
// What a program needs of a device's HBM: parameters, results and what is alive in between, with padding, as the steps
// of the kernel plan run one after another.
//
// An array is alive from the step that makes it to the last that uses it, through renames and tuples. A loop and an
// update work in place on the state they are given if nothing uses it after; the result of a step may take the place of
// an operand that dies with it only in those cases. Parameters live throughout unless the module donates or aliases
// them, results until the end. What a called computation needs beyond its operands counts where it is called.
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
  int64_t unpadded_bytes = 0;  // without
  bool parameter = false;
};

// A buffer of the entry computation, by steps of its plan.
struct LiveRange {
  InstructionId value;
  int64_t bytes = 0;
  uint32_t from = 0;      // the step that makes it
  uint32_t to = 0;        // the last that needs it; past the end: results
  bool in_place = false;  // it takes memory that dies with its step
  bool scratch = false;   // only while its step runs: what that calls
};

// Of a step of the entry computation, in bytes with padding.
struct OpMemory {
  InstructionId name;
  int64_t allocation = 0;  // its results take
  int64_t increase = 0;    // alive after it, less what was alive before
  int64_t self = 0;        // it needs only while it runs: what it calls
};

struct MemoryPlan {
  int64_t parameter_bytes = 0;
  int64_t result_bytes = 0;  // that no parameter's memory serves for
  int64_t peak_bytes = 0;
  int64_t padding_bytes = 0;           // at the peak, of the arrays listed
  InstructionId peak_at;               // the step of the entry computation that runs then
  std::vector<LiveArray> live;         // at the peak, in the innermost computation and its callers; largest first
  std::vector<int64_t> timeline;       // bytes alive at each step of the entry's plan
  std::vector<LiveRange> persistent;   // parameters and constants: there throughout
  std::vector<LiveRange> live_ranges;  // by step that makes them; what callees need beyond is a life of its own
  std::vector<OpMemory> ops;           // by step of the entry's plan
  int64_t heap_bytes = 0;              // that the lives take as they are placed (heap_simulator.h)
  int64_t heap_peak_bytes = 0;         // of them alive at a time
  double limit_bytes = 0;              // HBM of a device
  int64_t fragmentation_bytes() const { return heap_bytes - heap_peak_bytes; }
  bool fits() const { return static_cast<double>(peak_bytes) <= limit_bytes; }
};

// `parts`: devices that share each array of a module that has not been partitioned.
MemoryPlan PlanMemory(const DeviceDescription& machine, const Module& module, const KernelPlan& plan, double parts);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_MEMORY_MEMORY_PLAN_H_
