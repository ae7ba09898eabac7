// SPDX-License-Identifier: Apache-2.0
// Compiles a program for simulated devices.
#ifndef HLOKIT_SIMULATOR_TIMING_COMPILE_H_
#define HLOKIT_SIMULATOR_TIMING_COMPILE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module_fwd.h"
#include "passes/core/pass.h"
#include "passes/core/pass_instrumentation.h"
#include "passes/target/tpu_target.h"
#include "simulator/timing/simulator.h"

namespace hlokit::tpu {

// Returns the pass context that describes the devices on which `module` is simulated.
PassContext PassContextFor(const SimulationOptions& options, const Module& module);

// Returns true if the module has a schedule, but no TPU compiler made it: no layout has tiles or is in memory on the
// chip. Compilers for CPUs and GPUs write such modules.
bool IsCompiledForOtherDevice(const Module& module);
inline constexpr std::string_view kCompiledAgain =
    "compiled for another device, as no layout has tiles: its schedule and fusions are removed, and it is compiled for "
    "this TPU";

// Warns of a program for one device whose shardings are for several.
void WarnOfShardings(const Module& module, DiagnosticSink* warnings);

// Removes what the compiler of another device did: the schedule, control edges, fusions, and bitcasts, which depend on
// layouts.
absl::Status RemoveCompilation(Module* module);

// Runs the pipeline, e.g. "tpu", over a module that has no schedule, or one for another device, which is removed.
// Leaves other scheduled modules unchanged, and all if there is no pipeline.
struct CompileObservers {
  absl::Span<PassInstrumentation* const> instruments;
  DiagnosticSink* warnings = nullptr;  // gets those of the passes; may be null
  RemarkCollector* remarks = nullptr;  // gets those of the passes; may be null
};
absl::Status Compile(const SimulationOptions& options, std::string_view pipeline, Module* module,
                     const CompileObservers& observers = {});

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_TIMING_COMPILE_H_
