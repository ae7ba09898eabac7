// SPDX-License-Identifier: Apache-2.0
// Names of generated code for the profiler `perf`: lines of the file /tmp/perf-PID.map, which it reads for code that no
// file of the process contains. Written if the environment variable HLOKIT_PERF_MAP is 1.
#ifndef HLOKIT_INTERP_COMPILED_CODE_PERF_MAP_H_
#define HLOKIT_INTERP_COMPILED_CODE_PERF_MAP_H_

#include <cstddef>

#include "interp/compiled/programs/loop_program.h"

namespace hlokit::interp::compiled {

// Names the code of a loop by its operations, "loop Multiply Add Tanh". Thread-safe.
void AddToPerfMap(const LoopProgram& program, const void* code, size_t bytes);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_PERF_MAP_H_
