// SPDX-License-Identifier: Apache-2.0
#include "check/isolation/isolated_run.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "check/isolation/recorded_values.h"
#include "interp/interface/engine.h"

namespace hlokit::interp {
namespace {

// Runs the module and lets the observer see the values. After an error, which is in the sink, returns what `ended`
// does: whether the observer has ended the run.
bool Observe(EngineKind engine, const Module& module, EvaluatorOptions options, ObservationRequest request,
             ExecutionObserver* observer, absl::Span<const Literal> arguments, const std::function<bool()>& ended,
             DiagnosticSink* sink) {
  options.observation = std::move(request);
  options.observer = observer;
  DiagnosticSink errors;
  const std::unique_ptr<Engine> prepared = PrepareEngine(engine, module, options, &errors);
  const bool ran = prepared != nullptr && prepared->Run(arguments, &errors).has_value();
  if (!ran && ended()) return true;
  for (const Diagnostic& d : errors.diagnostics()) sink->Report(d);
  return ran;
}

absl::Status RunFailed() { return absl::AbortedError("the run failed"); }

ReplayOptions ReplayOptionsOf(EngineKind engine, const IsolationOptions& options) {
  ReplayOptions replay;
  replay.engine = engine;
  replay.isolation = options;
  replay.poll = [&run = options.run] {
    if (run.cancel != nullptr && run.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted");
    }
    if (run.limits.begin && run.limits.IsOutOfTime(*run.limits.begin)) {
      return absl::DeadlineExceededError(run.limits.OutOfTimeMessage("running the instructions"));
    }
    return absl::OkStatus();
  };
  return replay;
}

// Completes a run whose labels are set by running the instructions of `module` on recorded values.
absl::StatusOr<IsolatedRun> WithReplay(IsolatedRun isolated, const Module& module, const RecordedValues& values,
                                       EngineKind engine, const IsolationOptions& options) {
  absl::StatusOr<IsolationResult> result =
      Replay(module, *isolated.recorded, values, isolated.counterparts, ReplayOptionsOf(engine, options));
  if (!result.ok()) return result.status();
  isolated.result = *std::move(result);
  return isolated;
}

}  // namespace

std::string_view IsolatedRun::CounterpartName(Instruction instruction) const {
  if (recorded == nullptr) return "";
  const InstructionId id = counterparts.of[instruction.id().value];
  if (!id.valid()) return "";
  const std::string_view name = recorded->instruction(id).name();
  return name == instruction.name() ? "" : name;
}

absl::StatusOr<IsolatedRun> IsolateInEngines(const Module& module, EngineKind engine, const IsolationOptions& options,
                                             absl::Span<const Literal> arguments, DiagnosticSink* sink) {
  EngineIsolation isolation(module, engine, options);
  if (!Observe(
          EngineIsolation::ObservedEngine(engine), module, options.run, isolation.Request(), &isolation, arguments,
          [&isolation] { return isolation.is_out_of_time(); }, sink)) {
    return RunFailed();
  }
  const EngineRow& row = RowOf(EngineIsolation::HeldEngine(engine));
  IsolatedRun isolated;
  isolated.mode = "engines";
  isolated.actual = row.name;
  isolated.expected = RowOf(row.compared_with).name;
  isolated.result = isolation.Finish();
  return isolated;
}

absl::StatusOr<IsolatedRun> IsolateInModules(const Module& module, const Module& other, EngineKind engine,
                                             const IsolationOptions& options, absl::Span<const Literal> arguments,
                                             DiagnosticSink* sink) {
  IsolatedRun isolated = {"modules", "after", "before", &module, FindCounterparts(module, other), {}};
  ValueRecorder recorder(module, options.max_executions, options.run.limits.max_bytes);
  ObservationRequest request;
  request.instructions = NeededValues(module, isolated.counterparts);
  if (!Observe(
          engine, module, options.run, std::move(request), &recorder, arguments, [] { return false; }, sink)) {
    return RunFailed();
  }
  return WithReplay(std::move(isolated), other, recorder, engine, options);
}

absl::StatusOr<IsolatedRun> IsolateRecorded(const Module& module, const ValueDirectory& directory, EngineKind engine,
                                            const IsolationOptions& options) {
  const Module& recorded = directory.module();
  IsolatedRun isolated = {"replay", "now", "recorded", &recorded, FindCounterparts(recorded, module), {}};
  return WithReplay(std::move(isolated), module, directory, engine, options);
}

}  // namespace hlokit::interp
