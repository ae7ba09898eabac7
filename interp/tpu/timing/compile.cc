// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/timing/compile.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "interp/tpu/cost/kernel_plan.h"
#include "ir/core/str_cat.h"

namespace hlokit::tpu {

namespace {

constexpr uint32_t kCopies = 1u << 31;  // beside the links of axes and slices: what copies take turns on

}  // namespace

double PartsOf(const Module& module) {
  if (module.header().num_partitions <= 1) return 1;
  bool shardings = false;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective)) return 1;
      shardings |= i.has(Attr::kSharding);
    }
  }
  return shardings ? static_cast<double>(module.header().num_partitions) : 1;
}

absl::StatusOr<Pipeline> PipelineFor(const Machine& machine, std::string_view pipeline, double parts) {
  const double scoped = machine.vmem_scoped * static_cast<double>(machine.cores_per_device());
  const auto whole = [](double value) { return StrCat(static_cast<int64_t>(std::clamp(value, 1.0, 1e18))); };
  const OptionDefault defaults[] = {
      {"vmem-bytes", whole((machine.OnChipBytes() - scoped) * parts)},
      {"hbm-bytes", whole(machine.HbmBytes() * parts)},
      {"hbm-gbps", whole(machine.HbmRate() * machine.hbm_efficiency * parts / 1e9)},
      {"tflops", whole(machine.PeakFlops() * machine.mxu_efficiency * parts / 1e12)},
      {"ici-gbps", whole(2 * machine.ici_rate * machine.ici_efficiency / 1e9)},
  };
  return Pipeline::Parse(pipeline, PassRegistry::Get(), defaults);
}

PassEnvironment EnvironmentFor(const SimulationOptions& options) {
  PassEnvironment environment;
  environment.latencies = [alike = options](const Module& module) {
    SimulationOptions of_one = alike;
    of_one.variation = Variation();
    const KernelPlan plan(module);
    const Simulation simulation = Simulate(module, plan, of_one);
    std::vector<Latency> latencies(module.instruction_id_bound());
    for (size_t c = 0; c < simulation.computations.size(); ++c) {
      const ComputationTime& time = simulation.computations[c];
      for (size_t s = 0; s < time.steps.size(); ++s) {
        const Step& step = plan.computations()[c].steps[s];
        Latency& latency = latencies[step.name.value];
        latency.seconds = time.steps[s].duration;
        latency.links = step.kind == StepKind::kCopy ? kCopies : time.steps[s].lanes;
      }
    }
    return latencies;
  };
  return environment;
}

}  // namespace hlokit::tpu
