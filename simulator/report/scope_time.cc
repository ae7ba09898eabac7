// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/scope_time.h"

#include <cstdint>
#include <map>
#include <utility>

#include "passes/analysis/cost.h"

namespace hlokit::tpu {

namespace {

using NameOf = std::string (*)(Instruction);

struct Weight {
  double work = 0;
  double flops = 0;
};

// Collects the operations of a kernel by name, with fusions opened one level.
void Collect(Instruction instruction, const CostAnalysis& costs, NameOf name_of,
             std::map<std::string, Weight>* weights) {
  const auto add = [&](Instruction i, std::string name) {
    const Cost& cost = costs.Of(i);
    const double flops = static_cast<double>(cost.flops) + static_cast<double>(cost.transcendentals);
    Weight& weight = (*weights)[std::move(name)];
    weight.work += flops + static_cast<double>(cost.bytes()) / 16 + 1;
    weight.flops += flops;
  };
  if (instruction.opcode() != Opcode::kFusion) {
    add(instruction, name_of(instruction));
    return;
  }
  bool named = false;
  instruction.ForEachCallee([&](Computation fused) {
    for (Instruction i : fused.instructions()) {
      if (HasTrait(i.opcode(), kLeaf)) continue;
      std::string name = name_of(i);
      if (name.empty()) continue;
      named = true;
      add(i, std::move(name));
    }
  });
  if (!named) add(instruction, name_of(instruction));
}

std::vector<AttributedTime> TimesBy(NameOf name_of, const ReportInput& input, const KernelPlan& plan) {
  const CostAnalysis costs(input.module);
  std::map<std::string, AttributedTime> times;
  for (size_t c = 0; c < plan.computations().size(); ++c) {
    const ComputationPlan& computation = plan.computations()[c];
    const ComputationTime& time = input.simulation.computations[c];
    if (time.runs == 0) continue;
    for (size_t s = 0; s < computation.steps.size(); ++s) {
      const ScheduleUnit& step = computation.steps[s];
      if (step.kind == ScheduleUnitKind::kCall || step.kind == ScheduleUnitKind::kLoop || time.steps[s].duration <= 0)
        continue;
      std::map<std::string, Weight> weights;
      Collect(input.module.instruction(step.root), costs, name_of, &weights);
      // Unnamed constants and broadcasts have no share if named operations are present.
      if (weights.size() > 1) weights.erase(std::string());
      Weight sum;
      for (const auto& entry : weights) {
        sum.work += entry.second.work;
        sum.flops += entry.second.flops;
      }
      const StepTime& t = time.steps[s];
      const double core = (t.on_core ? t.duration : t.kernel_time) * time.core_runs;
      const double beside = t.duration * (t.on_core ? time.runs - time.core_runs : time.runs);
      for (const auto& [name, weight] : weights) {
        AttributedTime& attributed = times[name];
        const double share = weight.work / sum.work;
        attributed.seconds += core * share;
        attributed.concurrent_seconds += beside * share;
        attributed.kernels += time.runs;
        if (weights.size() > 1) attributed.mixed_kernel_seconds += core * share;
        attributed.flops += t.flops * time.runs * (sum.flops > 0 ? weight.flops / sum.flops : share);
        attributed.hbm_bytes += t.hbm_bytes * time.runs * share;
      }
    }
  }
  std::vector<AttributedTime> result;
  for (auto& [name, t] : times) {
    t.name = name;
    result.push_back(std::move(t));
  }
  return result;
}

}  // namespace

std::vector<AttributedTime> ScopeTimes(const ReportInput& input, const KernelPlan& plan) {
  return TimesBy([](Instruction i) { return std::string(ScopeOf(i)); }, input, plan);
}

std::vector<AttributedTime> SourceTimes(const ReportInput& input, const KernelPlan& plan) {
  return TimesBy([](Instruction i) { return SourceOf(i); }, input, plan);
}

}  // namespace hlokit::tpu
