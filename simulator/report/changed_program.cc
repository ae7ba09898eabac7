// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/changed_program.h"

#include "ir/verify/verifier.h"
#include "simulator/report/simulated_module.h"
#include "simulator/timing/compile.h"

namespace hlokit::tpu {

ChangedProgram CompileAndSimulate(const ReportInput& input, Module changed, const SimulationOptions& options) {
  // Passes leave a module that they cannot compile unchanged. A schedule of a pipeline that assigns no tiles is as good
  // as that of the program.
  if (!changed.header().is_scheduled || !IsCompiledForOtherDevice(input.module)) {
    Compile(options, input.pipeline, &changed).IgnoreError();
  }
  const SimulatedModule simulated(changed, options);
  return {simulated.simulation, simulated.memory};
}

bool IsValid(const Module& module) {
  DiagnosticSink sink(1);
  VerifyModule(module, VerifierOptions(), &sink);
  return !sink.has_errors();
}

}  // namespace hlokit::tpu
