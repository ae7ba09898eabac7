// SPDX-License-Identifier: Apache-2.0
// Estimates how long a TPU compiler takes, from the instructions that it reads and the kernels that it emits.
//
// PyTorch/XLA users' logs on TPUs: two graphs of 136,615 and 136,843 nodes took 209 and 270 s (pytorch/xla#1155, v3),
// graphs of 14 and 20 nodes 8 and 4 ms (#3339, #2757). A quarter of the time per instruction is attributed to the
// passes, the rest to code generation of kernels, with five instructions a kernel. A single compilation may differ by a
// factor of two: XLA's time grows faster than the number of instructions in some programs.
#ifndef HLOKIT_SIMULATOR_TIMING_COMPILE_TIME_H_
#define HLOKIT_SIMULATOR_TIMING_COMPILE_TIME_H_

#include <cstdint>
#include <string_view>

#include "ir/graph/module.h"
#include "simulator/program/kernel_plan.h"

namespace hlokit::tpu {

struct CompileTime {
  int64_t instructions = 0;  // of the program as it is compiled, in all computations
  int64_t kernels = 0;       // of the compiled program
  double seconds = 0;
};

// Source of the estimate, for readers.
inline constexpr std::string_view kCompileTimeSource =
    "4 ms + 0.44 ms an instruction + 6.6 ms a kernel, from compile times of PyTorch/XLA users on TPUs (pytorch/xla "
    "issues 1155, 2757, 3339)";

// `lowered`: the program before compilation; `plan`: of the compiled one.
CompileTime EstimateCompileTime(const Module& lowered, const KernelPlan& plan);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_COMPILE_TIME_H_
