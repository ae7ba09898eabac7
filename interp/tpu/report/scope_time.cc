// SPDX-License-Identifier: Apache-2.0
#include "interp/tpu/report/scope_time.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "passes/analysis/cost.h"

namespace hlokit::tpu {

namespace {

// Collects the operations of a kernel by scope, with fusions opened one level.
void Collect(Instruction instruction, const CostAnalysis& costs, std::map<std::string_view, double>* weights) {
  const auto add = [&](Instruction i) {
    const Cost& cost = costs.Of(i);
    const double work = static_cast<double>(cost.flops) + static_cast<double>(cost.transcendentals) +
                        static_cast<double>(cost.bytes()) / 16 + 1;
    (*weights)[ScopeOf(i)] += work;
  };
  if (instruction.opcode() != Opcode::kFusion) {
    add(instruction);
    return;
  }
  bool named = false;
  instruction.ForEachCallee([&](Computation fused) {
    for (Instruction i : fused.instructions()) {
      if (i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kConstant || ScopeOf(i).empty()) continue;
      named = true;
      add(i);
    }
  });
  if (!named) add(instruction);
}

}  // namespace

std::vector<ScopeTime> ScopeTimes(const ReportInput& input, const KernelPlan& plan) {
  const CostAnalysis costs(input.module);
  std::map<std::string, ScopeTime> scopes;
  for (size_t c = 0; c < plan.computations().size(); ++c) {
    const ComputationPlan& computation = plan.computations()[c];
    const ComputationTime& time = input.simulation.computations[c];
    if (time.runs == 0) continue;
    for (size_t s = 0; s < computation.steps.size(); ++s) {
      const ScheduleUnit& step = computation.steps[s];
      if (step.kind == ScheduleUnitKind::kCall || step.kind == ScheduleUnitKind::kLoop || time.steps[s].duration <= 0)
        continue;
      std::map<std::string_view, double> weights;
      Collect(input.module.instruction(step.root), costs, &weights);
      // Unnamed constants and broadcasts have no share if named operations are present.
      if (weights.size() > 1) weights.erase(std::string_view());
      double sum = 0;
      for (const auto& entry : weights) sum += entry.second;
      const double seconds = time.steps[s].duration * time.runs;
      for (const auto& [scope, weight] : weights) {
        ScopeTime& t = scopes[std::string(scope)];
        const double part = seconds * weight / sum;
        (time.steps[s].on_core ? t.seconds : t.concurrent_seconds) += part;
        t.kernels += time.runs;
        if (weights.size() > 1 && time.steps[s].on_core) t.mixed_kernel_seconds += part;
      }
    }
  }
  std::vector<ScopeTime> result;
  for (auto& [scope, t] : scopes) {
    t.scope = scope;
    result.push_back(std::move(t));
  }
  return result;
}

}  // namespace hlokit::tpu
