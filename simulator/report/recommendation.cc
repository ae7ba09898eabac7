// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/recommendation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "passes/core/pipeline.h"
#include "passes/rewrite/type_conversion.h"
#include "passes/target/matrix_cost.h"
#include "passes/target/op_class.h"
#include "simulator/report/breakdown.h"
#include "simulator/report/changed_program.h"
#include "simulator/report/device_report.h"
#include "simulator/report/memory_advice.h"
#include "simulator/report/more_partitions.h"
#include "simulator/report/number_text.h"
#include "simulator/timing/compile.h"

namespace hlokit::tpu {

namespace {

constexpr double kMinRelativeGain = 0.01;  // as a fraction of the step time
constexpr double kMaxSizeReduction = 0.1;  // largest fraction of a size by which a smaller one is tried
constexpr size_t kMaxCandidateSizes = 3;   // number of sizes tried
constexpr size_t kFetchSteps = 40;         // simulated steps with a fetch in every tenth

std::string FormatPercent(double part, double whole) { return Percent(part, whole) + " %"; }

std::string Time(double seconds) {
  if (seconds >= 1) return StrCat(FormatFixed(seconds, 2), " s");
  if (seconds >= 1e-3) return StrCat(FormatFixed(seconds * 1e3, 2), " ms");
  return StrCat(FormatFixed(seconds * 1e6, 1), " us");
}

double StepOf(const Simulation& simulation, const HostModel& host) {
  return SimulateHost(host, simulation.device_seconds).step_seconds;
}

class Recommender {
 public:
  Recommender(const ReportInput& input, const HostModel& host)
      : input_(input), host_(host), now_(SimulateHost(host, input.simulation.device_seconds)) {}

  std::vector<Recommendation> Collect() {
    Memory();
    UseIdleChips();
    LowerPrecision();
    TryBf16();
    TryTileMultiples();
    CombineCollectives();
    AvoidStragglers();
    HostPhases();
    std::stable_sort(result_.begin(), result_.end(), [](const Recommendation& a, const Recommendation& b) {
      const bool memory_a = a.bytes_before > 0;
      const bool memory_b = b.bytes_before > 0;
      if (memory_a != memory_b) return memory_a;
      return !memory_a && a.before - a.after > b.before - b.after;
    });
    return std::move(result_);
  }

 private:
  void Add(Recommendation advice) {
    advice.before = now_.step_seconds;
    if (advice.after > advice.before * (1 - kMinRelativeGain)) return;
    result_.push_back(std::move(advice));
  }

  // Returns the program that recommendations change: the source before compilation, if known.
  const Module& source() const { return SourceModuleOf(input_); }
  double SimulateChanged(Module changed) const {
    return StepOf(CompileAndSimulate(input_, std::move(changed), input_.options).simulation, host_);
  }

  // Adds the changes that lower the peak of HBM.
  void Memory() {
    for (MemoryAdvice& memory : MemoryAdvices(input_)) {
      Recommendation advice;
      advice.title = std::move(memory.title);
      advice.evidence = std::move(memory.evidence);
      advice.action = std::move(memory.action);
      advice.changed = std::move(memory.changed);
      advice.before = now_.step_seconds;
      advice.after = SimulateHost(host_, memory.device_seconds).step_seconds;
      advice.bytes_before = input_.memory.peak_bytes;
      advice.bytes_after = memory.peak_bytes;
      advice.fits_after = memory.fits();
      result_.push_back(std::move(advice));
    }
  }

  // Divides a program with shardings among all devices of the target.
  void UseIdleChips() {
    const DeviceUse use = DeviceUseOf(input_.options, input_.simulation);
    if (!use.has_idle() || use.devices % use.used_devices != 0) return;
    Module changed = source().Clone();
    if (!MultiplyPartitions(&changed, use.devices / use.used_devices)) return;
    Recommendation advice;
    advice.title = StrCat("Partition it over all ", use.chips, " chips");
    advice.evidence = IdleNote(use);
    advice.action = "Make the slowest axis of the mesh longer.";
    advice.changed = StrCat("the program with shardings for ", use.devices, " devices");
    advice.after = SimulateChanged(std::move(changed));
    Add(std::move(advice));
  }

  void LowerPrecision() {
    Module changed = source().Clone();
    int64_t products = 0;
    for (Computation computation : source().computations()) {
      for (Instruction i : computation.instructions()) {
        if (ClassOf(i.opcode()) != OpClass::kProduct) continue;
        const absl::Span<const int64_t> precisions = i.list_attr(Attr::kOperandPrecision);
        if (std::none_of(precisions.begin(), precisions.end(), [](int64_t p) {
              return p == static_cast<int64_t>(Precision::kHigh) || p == static_cast<int64_t>(Precision::kHighest);
            })) {
          continue;
        }
        changed.RemoveAttr(i.id(), Attr::kOperandPrecision);
        ++products;
      }
    }
    if (products == 0) return;
    Recommendation advice;
    advice.title = "Compute matmuls in one bf16 pass";
    advice.evidence = StrCat(Counted(products, "matmul requires", "matmuls require"),
                             " high or highest operand precision: three or six passes over the matrix units.");
    advice.action = "Use default precision where the accuracy allows it.";
    advice.changed = "the program without operand_precision";
    advice.after = SimulateChanged(std::move(changed));
    Add(std::move(advice));
  }

  // Tries the program with bf16 in place of f32: half the bytes.
  void TryBf16() {
    int64_t products = 0;
    for (Computation computation : source().computations()) {
      for (Instruction i : computation.instructions()) {
        if (ClassOf(i.opcode()) != OpClass::kProduct) continue;
        for (Instruction operand : i.operands()) {
          if (operand.shape().element_type() != ElementType::kF32) continue;
          ++products;
          break;
        }
      }
    }
    if (products == 0) return;
    Module changed = source().Clone();
    ConvertFloatTypes(&changed, {ElementType::kF32}, ElementType::kBF16);
    Recommendation advice;
    advice.title = "Compute in bf16";
    advice.evidence = StrCat(Counted(products, "matmul has", "matmuls have"),
                             " f32 operands, which take twice the bytes of bf16 in HBM, in vector "
                             "memory and on the links.");
    advice.action = "Use mixed precision (autocast, a bf16 policy), with f32 for long accumulations.";
    advice.changed = "the program with every f32 array as bf16";
    advice.after = SimulateChanged(std::move(changed));
    Add(std::move(advice));
  }

  // Tries dimensions a little above a multiple of the matrix unit, which pad a whole tile, reduced to that multiple.
  void TryTileMultiples() {
    const DeviceDescription& machine = input_.options.machine;
    const int64_t tile = static_cast<int64_t>(machine.mxu_size);
    struct Size {
      int64_t products = 0;
      double padded = 0;  // seconds of the matrix units, without trip counts
      double whole = 0;
    };
    std::map<int64_t, Size> sizes;
    for (Computation computation : source().computations()) {
      for (Instruction i : computation.instructions()) {
        if (ClassOf(i.opcode()) != OpClass::kProduct) continue;
        const MatmulShape product = MatmulShapeOf(machine, i);
        for (double MatmulShape::*side : {&MatmulShape::n, &MatmulShape::k}) {
          const int64_t size = static_cast<int64_t>(product.*side);
          const int64_t below = size / tile * tile;
          if (below == 0 || below == size ||
              static_cast<double>(size - below) > kMaxSizeReduction * static_cast<double>(size)) {
            continue;
          }
          MatmulShape smaller = product;
          smaller.*side = static_cast<double>(below);
          const double now = TimeOf(machine, product, true, true).mxu;
          const double part = static_cast<double>(size) / static_cast<double>(below);
          Size& s = sizes[size];
          ++s.products;
          s.whole += now;
          s.padded += std::max(0.0, now - part * TimeOf(machine, smaller, true, true).mxu);
        }
      }
    }
    std::vector<std::pair<int64_t, Size>> order(sizes.begin(), sizes.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second.padded > b.second.padded; });
    for (size_t k = 0; k < std::min(order.size(), kMaxCandidateSizes); ++k) {
      const auto& [size, s] = order[k];
      const int64_t below = size / tile * tile;
      Module changed = source().Clone();
      ReplaceDimensionSizes(&changed, size, below);
      if (!IsValid(changed)) continue;
      const double less = static_cast<double>(size - below) / static_cast<double>(size);
      Recommendation advice;
      advice.title = StrCat("Choose ", below, " instead of ", size);
      advice.evidence = StrCat(Counted(s.products, "matmul has", "matmuls have"), " a dimension of ", size,
                               ", which the matrix units of ", tile, " by ", tile, " pad to ", below + tile, ": ",
                               FormatPercent(s.padded, s.whole), " of their time is padding.");
      advice.action = StrCat("Make the size a multiple of ", tile, " (", below, ": ", FormatPercent(less, 1),
                             " less, or ", below + tile, " for the same time).");
      advice.changed = StrCat("the program with ", below, " for each dimension of ", size);
      advice.after = SimulateChanged(std::move(changed));
      // The gain must exceed the reduction of work.
      if (advice.after < now_.step_seconds * (1 - less) * (1 - kMinRelativeGain)) Add(std::move(advice));
    }
  }

  // Removes the slowest devices to measure what they cost.
  void AvoidStragglers() {
    const PerformanceVariation& variation = input_.options.variation;
    if (variation.stragglers.empty()) return;
    SimulationOptions options = input_.options;
    options.variation.stragglers.clear();
    const KernelPlan plan(input_.module);
    const int64_t count = static_cast<int64_t>(variation.stragglers.size());
    Recommendation advice;
    advice.title = count == 1 ? "Replace the slow device" : "Replace the slow devices";
    advice.evidence = StrCat(Counted(count, "device computes", "devices compute"), " longer than the other ",
                             input_.simulation.devices.devices - count, ", which stall at each collective.");
    advice.action = "Find what slows it (heat, a failing chip, another process on its host), or leave its host out.";
    advice.changed = "the program on devices of which none is slow";
    advice.after = StepOf(Simulate(input_.module, plan, options), host_);
    Add(std::move(advice));
  }

  void CombineCollectives() {
    int64_t collectives = 0;
    double seconds = 0;
    for (const OpRow& row : input_.simulation.rows) {
      if (row.kind != ScheduleUnitKind::kCollective) continue;
      ++collectives;
      seconds += row.seconds;
    }
    if (collectives < 2) return;
    // A compiled module gets a new schedule: a combined collective starts once its last operand is ready.
    Module changed = source().Clone();
    const bool compiled = changed.header().is_scheduled;
    changed.header().is_scheduled = false;
    absl::StatusOr<Pipeline> pipeline =
        Pipeline::Parse(StrCat("all-reduce-combiner,all-gather-combiner,reduce-scatter-combiner,dce",
                               compiled ? ",async-collective-creator,latency-hiding-scheduler" : ""));
    if (!pipeline.ok()) return;
    const int64_t before = CountCollectives(changed);
    const PipelineOptions passes = {.context = PassContextFor(input_.options, changed)};
    if (!pipeline->Run(changed, passes).ok() || CountCollectives(changed) == before) return;
    Recommendation advice;
    advice.title = "Merge small collectives";
    advice.evidence =
        StrCat(collectives, " collectives take ", Time(seconds), " of the links, each with its own hops.");
    advice.action = "Combine gradients into buckets, or raise the combiner thresholds of the compiler.";
    advice.changed = "the program after the collective combiners";
    advice.after = SimulateChanged(std::move(changed));
    Add(std::move(advice));
  }

  static int64_t CountCollectives(const Module& module) {
    int64_t count = 0;
    for (Computation c : module.computations()) {
      for (Instruction i : c.instructions()) count += HasTrait(i.opcode(), kCollective);
    }
    return count;
  }

  // Returns what the steady steps did in a phase, and where: " Most of it: forward at model.py:12.", or "".
  std::string Places(HostPhase phase) const {
    std::map<std::pair<std::string, std::string>, std::pair<double, int64_t>> places;
    for (size_t k = now_.steady_from; k < host_.steps.size(); ++k) {
      for (const HostCause& cause : host_.steps[k].causes) {
        if (cause.phase != phase || (cause.what.empty() && cause.source.empty())) continue;
        std::pair<double, int64_t>& sum = places[{cause.what, cause.source}];
        sum.first += cause.seconds;
        sum.second += cause.count;
      }
    }
    if (places.empty()) return "";
    const auto most = std::max_element(places.begin(), places.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto& [what, source] = most->first;
    const std::string_view verb =
        phase == HostPhase::kCompile ? " It differs from the graph before in: " : " Most of it: ";
    return StrCat(what.empty() ? "" : verb, what, what.empty() ? " It is" : ",", source.empty() ? "" : " at ", source,
                  ".");
  }

  // Tries the host model with one change.
  void Host(HostPhase phase, std::string title, std::string action, std::string changed,
            const std::function<void(HostModel*)>& change) {
    const double gap = now_.SteadyGap(phase);
    if (gap < kMinRelativeGain * now_.step_seconds) return;
    HostModel plan = host_;
    change(&plan);
    Recommendation advice;
    advice.title = std::move(title);
    advice.evidence = StrCat("The device is idle for ", Time(gap), " a step (", FormatPercent(gap, now_.step_seconds),
                             "), waiting for: ", ToString(phase), ".", Places(phase));
    advice.action = std::move(action);
    if (phase == HostPhase::kCompile) advice.flag = "--explain-recompiles";
    advice.changed = std::move(changed);
    advice.after = SimulateHost(plan, input_.simulation.device_seconds).step_seconds;
    Add(std::move(advice));
  }

  // Tries fewer fetches. A step that waits for a value also keeps the host from running ahead, which appears in the
  // gaps of other phases.
  void TryFewerFetches() {
    size_t waiting = 0;
    for (size_t k = now_.steady_from; k < host_.steps.size(); ++k) waiting += host_.steps[k].waits ? 1 : 0;
    if (waiting == 0 || now_.steady_from >= host_.steps.size()) return;
    // Enough steps for the steady state to contain multiples of ten.
    HostModel plan = host_;
    const size_t first = now_.steady_from;
    const size_t period = host_.steps.size() - first;
    while (plan.steps.size() < kFetchSteps)
      plan.steps.push_back(host_.steps[first + (plan.steps.size() - first) % period]);
    for (size_t k = 0; k < plan.steps.size(); ++k) {
      if (k % 10 == 9) continue;
      plan.steps[k].waits = false;
      plan.steps[k].fetch = 0;
    }
    Recommendation advice;
    advice.title = "Fetch values less often";
    advice.evidence =
        StrCat(static_cast<int64_t>(waiting), " of ", static_cast<int64_t>(period),
               " steps wait for a value: the device is idle for ", Time(now_.SteadyGap(HostPhase::kFetch)),
               " a step while it is copied, and the host cannot prepare the next step in the meantime.",
               Places(HostPhase::kFetch));
    advice.action = "Log the loss every tenth step, or with a step of delay.";
    advice.changed = "the host that waits for a value in every tenth step only";
    advice.after = SimulateHost(plan, input_.simulation.device_seconds).step_seconds;
    Add(std::move(advice));
  }

  // Tries the host without the waits of ops that have no lowering: they fetch their arguments, compute on the host and
  // send the results back, and end the graph.
  void AvoidFallbacks() {
    std::map<std::pair<std::string, std::string>, int64_t> ops;
    for (size_t k = now_.steady_from; k < host_.steps.size(); ++k) {
      for (const HostCause& cause : host_.steps[k].causes) {
        if (cause.phase == HostPhase::kFetch && !cause.what.empty()) ops[{cause.what, cause.source}] += cause.count;
      }
    }
    if (ops.empty()) return;
    HostModel plan = host_;
    for (HostStep& step : plan.steps) {
      bool others = false;
      for (const HostCause& cause : step.causes) others |= cause.phase == HostPhase::kFetch && cause.what.empty();
      if (!others) {
        step.waits = false;
        step.fetch = 0;
        step.graphs = 1;
      }
    }
    std::string places;
    for (const auto& [place, count] : ops) {
      StrAppend(&places, places.empty() ? "" : ", ", place.first, place.second.empty() ? "" : " at ", place.second);
    }
    Recommendation advice;
    advice.title = "Avoid ops without a lowering";
    advice.evidence = StrCat("In each step the program waits for arguments of ops that run on the host: ", places,
                             ". Each ends the graph, and the device is idle until the result is sent back.");
    advice.action =
        "Use ops with static shapes (masks and where instead of nonzero and masked_select), or move them out of "
        "the loop.";
    advice.changed = "the host that runs the step as one graph and does not wait for these arguments";
    advice.after = SimulateHost(plan, input_.simulation.device_seconds).step_seconds;
    Add(std::move(advice));
  }

  void HostPhases() {
    const auto each = [](const std::function<void(HostStep*)>& change) {
      return [change](HostModel* plan) {
        for (HostStep& step : plan->steps) change(&step);
      };
    };
    Host(HostPhase::kTrace, "Record the step once",
         "Capture the step as one graph (torch_xla.compile, dynamo, jax.jit) instead of recording it in every step.",
         "the host without recording after the first step", [](HostModel* plan) {
           for (size_t k = 1; k < plan->steps.size(); ++k) plan->steps[k].trace = plan->steps[k].marker = 0;
         });
    // The first steps of any run compile.
    if (HasSteadyState(host_)) {
      Host(HostPhase::kCompile, "Stop compiling in the loop",
           "Find what changes from step to step: shapes, numbers in the graph, extra fetches.",
           "the host with all graphs known after the first step", [](HostModel* plan) {
             for (size_t k = 1; k < plan->steps.size(); ++k) plan->steps[k].compile = 0;
           });
    }
    if (host_.prefetch == 0) {
      const auto ahead = [](HostModel* plan) { plan->prefetch = 2; };
      Host(HostPhase::kInput, "Load batches ahead", "Prepare batches on a separate thread (MpDeviceLoader, prefetch).",
           "the host with a loader two batches ahead", ahead);
      Host(HostPhase::kTransfer, "Send batches ahead", "Send batches to the device while the previous step runs.",
           "the host with a loader two batches ahead", ahead);
    } else {
      Host(HostPhase::kInput, "Make the input pipeline faster",
           "More workers, less decoding on the host, cached or pre-processed data.",
           "the host with batches made in half the time", each([](HostStep* step) { step->input /= 2; }));
      Host(HostPhase::kTransfer, "Send fewer bytes", "Send narrower types and expand them on the device.",
           "the host with half the bytes to send", each([](HostStep* step) { step->transfer /= 2; }));
    }
    AvoidFallbacks();
    TryFewerFetches();
    int64_t graphs = 1;
    for (const HostStep& step : host_.steps) graphs = std::max(graphs, step.graphs);
    if (graphs > 1) {
      Host(HostPhase::kExecute, "Run the step as one graph",
           "Remove what breaks the step into several graphs: fetches, fallbacks, graph breaks.",
           "the host with one execution a step", each([](HostStep* step) { step->graphs = 1; }));
    } else {
      Host(HostPhase::kExecute, "Run several steps in one execution",
           "Put the loop over steps on the device (lax.scan, fori_loop) or make the batch larger.",
           "the host with a tenth of a call a step", each([](HostStep* step) { step->execute /= 10; }));
    }
  }

  const ReportInput& input_;
  const HostModel& host_;
  const HostTimeline now_;
  std::vector<Recommendation> result_;
};

Resource BoundOfStep(const Simulation& simulation, const HostTimeline& host) {
  return host.step_seconds > simulation.device_seconds * (1 + kMinRelativeGain) ? Resource::kHost : simulation.bound;
}

}  // namespace

std::vector<Recommendation> Recommend(const ReportInput& input, const HostModel& host) {
  return Recommender(input, host).Collect();
}

std::vector<Sensitivity> SensitivityAnalysis(const ReportInput& input, const HostModel& host) {
  struct Change {
    std::string_view resource;
    double DeviceDescription::*member;
    double factor;
  };
  static constexpr Change kChanges[] = {{"matrix units", &DeviceDescription::mxu_rows_per_cycle, 2},
                                        {"vector units", &DeviceDescription::vpu_alus, 2},
                                        {"vector memory", &DeviceDescription::vmem_rate, 2},
                                        {"HBM", &DeviceDescription::hbm_rate, 2},
                                        {"links between chips", &DeviceDescription::ici_rate, 2},
                                        {"start of kernels", &DeviceDescription::kernel_overhead, 0.5}};
  std::vector<Sensitivity> result;
  for (const Change& change : kChanges) {
    SimulationOptions options = input.options;
    options.machine.*change.member *= change.factor;
    const Simulation simulation = CompileAndSimulate(input, SourceModuleOf(input).Clone(), options).simulation;
    const HostTimeline time = SimulateHost(host, simulation.device_seconds);
    result.push_back({std::string(change.resource), time.step_seconds, BoundOfStep(simulation, time)});
  }
  HostModel faster = host;
  for (HostStep& step : faster.steps) {
    for (double HostStep::*member : {&HostStep::input, &HostStep::transfer, &HostStep::trace, &HostStep::marker,
                                     &HostStep::compile, &HostStep::execute, &HostStep::fetch, &HostStep::other}) {
      step.*member /= 2;
    }
  }
  const HostTimeline time = SimulateHost(faster, input.simulation.device_seconds);
  result.push_back({"host", time.step_seconds, BoundOfStep(input.simulation, time)});
  return result;
}

std::vector<TargetComparison> CompareTargets(const ReportInput& input, const HostModel& host) {
  const int64_t devices = DeviceUseOf(input.options, input.simulation).used_devices;
  std::vector<TargetComparison> result;
  for (std::string_view name : BuiltinDeviceDescriptions()) {
    std::optional<DeviceDescription> machine = BuiltinDeviceDescription(name);
    if (!machine) continue;
    SimulationOptions options = input.options;
    const int64_t per_chip = machine->devices_per_chip();
    options.topology = TopologyFor(*machine, (devices + per_chip - 1) / per_chip);
    options.machine = *std::move(machine);
    const auto [simulation, memory] = CompileAndSimulate(input, SourceModuleOf(input).Clone(), options);
    const HostTimeline time = SimulateHost(host, simulation.device_seconds);
    result.push_back({std::string(name), ToString(options.topology), time.step_seconds, BoundOfStep(simulation, time),
                      memory.peak_bytes, memory.limit_bytes});
  }
  return result;
}

}  // namespace hlokit::tpu
