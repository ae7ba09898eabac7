// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/isolation.h"

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "check/isolation/isolation.h"
#include "check/isolation/recorded_values.h"
#include "check/isolation/replay.h"
#include "check/isolation/value_directory.h"
#include "interp/exact/instruction_evaluator.h"
#include "interp/observers/value_summary.h"
#include "ir/core/double_text.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/text/printer.h"
#include "passes/core/pipeline.h"
#include "simulator/report/report.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text/text_lines.h"

namespace hlokit::run {
namespace {

// Rows of the text; the JSON has all.
constexpr size_t kMaxListed = 50;

// What is compared with what.
struct Comparison {
  std::string_view mode;             // of the JSON: engines, modules, replay
  std::string actual, expected;      // labels of the two values
  const Module* recorded = nullptr;  // another module, if its instructions are the counterparts
  const interp::Counterparts* counterparts = nullptr;
};

interp::IsolationOptions OptionsOf(const Flags& flags, const interp::EvaluatorOptions& run) {
  interp::IsolationOptions options;
  options.run = run;
  options.whole_fusions = flags.isolate_fusions;
  if (flags.tolerance_given) options.tolerance = interp::Tolerance::OfAllTypes(flags.tolerance);
  options.max_executions = flags.max_executions;
  options.max_work = static_cast<double>(flags.isolate_max_work);
  options.distinct = flags.isolate_distinct;
  if (flags.isolate_max_seconds > 0) options.max_seconds = flags.isolate_max_seconds;
  return options;
}

std::string Count(int64_t n, std::string_view noun) { return StrCat(n, " ", noun, n == 1 ? "" : "s"); }

std::string ElementOf(const interp::IsolatedDifference& d) {
  const std::vector<Shape> leaves = Leaves(d.instruction.shape());
  const Shape leaf = leaves[d.worst.leaf];
  std::string text = leaves.size() > 1 ? StrCat("leaf ", d.worst.leaf, leaf.rank() > 0 ? ", " : "") : "";
  if (leaf.rank() > 0) StrAppend(&text, "element ", interp::IndexToString(leaf, d.worst.element));
  return text.empty() ? "value" : text;
}

std::string DistanceOf(const interp::IsolatedDifference& d) {
  if (!(d.worst.absolute < std::numeric_limits<double>::infinity())) return "no finite distance";
  return StrCat(FormatDouble(d.worst.ulp, 4), " ulp, ", FormatDouble(d.worst.absolute, 4));
}

// Returns the counterpart if it has another name; "" otherwise.
std::string_view CounterpartName(const Comparison& comparison, Instruction i) {
  if (comparison.counterparts == nullptr) return "";
  const InstructionId id = comparison.counterparts->of[i.id().value];
  if (!id.valid()) return "";
  const std::string_view name = comparison.recorded->instruction(id).name();
  return name == i.name() ? "" : name;
}

void PrintRow(TextWriter& out, const Comparison& comparison, const IsolatedModule& input, const cli::TextLines& lines,
              const interp::IsolatedDifference& d) {
  const Instruction i = d.instruction;
  out << StrCat(i.name(), " = ", ToString(i.shape(), /*with_layout=*/false), " ", i.opcode_text());
  if (const int64_t line = lines.Of(i); line > 0) out << StrCat(", ", input.source.name(), ":", line);
  if (const std::string_view name = CounterpartName(comparison, i); !name.empty()) {
    out << StrCat(", ", comparison.expected, ": ", name);
  }
  out << "\n  ";
  if (!d.error.empty()) {
    out << StrCat("error: ", d.error);
  } else {
    out << StrCat(ElementOf(d), ": ", comparison.actual, " ", d.worst.actual, ", ", comparison.expected, " ",
                  d.worst.expected, " (", DistanceOf(d), ")");
    if (d.worst.elements > 1) out << StrCat("; ", d.worst.different, " of ", d.worst.elements, " elements");
  }
  if (d.executions > 1) {
    out << StrCat("; in execution ", d.worst_execution, "; ", d.different, " of ", d.executions, " executions differ");
  }
  out << "\n";
  const std::string source = tpu::SourceOf(i);
  const std::string_view scope = tpu::ScopeOf(i);
  if (source.empty() && scope.empty()) return;
  out << StrCat("  ", source, source.empty() || scope.empty() ? "" : ", ", scope.empty() ? "" : StrCat("scope ", scope),
                "\n");
}

void PrintResult(TextWriter& out, const Comparison& comparison, const IsolatedModule& input,
                 const interp::IsolationResult& result) {
  const std::string found = !result.equal()          ? StrCat(result.differences.size(), " differ")
                            : result.executions == 0 ? "nothing was compared"
                                                     : "none differs";
  out << StrCat(Count(result.instructions, "instruction"), " ran in ", Count(result.executions, "execution"), ", ",
                comparison.actual, " against ", comparison.expected, ": ", found, "\n");
  std::string omitted;
  for (size_t k = 0; k < interp::kOmissions; ++k) {
    if (result.omitted[k] == 0) continue;
    StrAppend(&omitted, omitted.empty() ? "not run: " : "; ", result.omitted[k], " (",
              interp::ToString(static_cast<interp::Omission>(k)), ")");
  }
  if (!omitted.empty()) out << omitted << "\n";
  if (result.intermediate > 0) {
    out << StrCat(Count(result.intermediate, "intermediate value"), " differ, but not what is computed from them\n");
  }
  const cli::TextLines lines(input.source.text());
  for (size_t k = 0; k < std::min(result.differences.size(), kMaxListed); ++k) {
    PrintRow(out, comparison, input, lines, result.differences[k]);
  }
  if (result.differences.size() > kMaxListed) out << StrCat("(", result.differences.size() - kMaxListed, " more)\n");
}

void WriteRow(const Comparison& comparison, const cli::TextLines& lines, const interp::IsolatedDifference& d,
              JsonWriter* json) {
  const Instruction i = d.instruction;
  json->BeginObject()
      .Member("instruction", i.name())
      .Member("computation", i.parent().name())
      .Member("opcode", i.opcode_text())
      .Member("shape", ToString(i.shape(), /*with_layout=*/false))
      .Member("line", lines.Of(i))
      .Member("source", tpu::SourceOf(i))
      .Member("scope", tpu::ScopeOf(i));
  if (const std::string_view name = CounterpartName(comparison, i); !name.empty()) json->Member("counterpart", name);
  json->Member("executions", d.executions)
      .Member("different_executions", d.different)
      .Member("worst_execution", d.worst_execution);
  if (!d.error.empty()) {
    json->Member("error", d.error).EndObject();
    return;
  }
  json->Member("elements", d.worst.elements)
      .Member("different_elements", d.worst.different)
      .Member("leaf", static_cast<int64_t>(d.worst.leaf))
      .Member("element", d.worst.element)
      .Member("actual", d.worst.actual)
      .Member("expected", d.worst.expected)
      .Member("ulps", d.worst.ulp)
      .Member("absolute", d.worst.absolute)
      .Member("relative", d.worst.relative)
      .EndObject();
}

void WriteResult(TextWriter& out, const Comparison& comparison, const IsolatedModule& input,
                 const interp::IsolationResult& result) {
  JsonWriter json(&out);
  json.BeginObject()
      .Member("module", input.module.name())
      .Member("mode", comparison.mode)
      .Member("actual", comparison.actual)
      .Member("expected", comparison.expected)
      .Member("instructions", result.instructions)
      .Member("executions", result.executions)
      .Member("intermediate", result.intermediate);
  json.Key("omitted").BeginArray();
  for (size_t k = 0; k < interp::kOmissions; ++k) {
    if (result.omitted[k] == 0) continue;
    json.BeginObject()
        .Member("reason", interp::ToString(static_cast<interp::Omission>(k)))
        .Member("instructions", result.omitted[k])
        .EndObject();
  }
  json.EndArray();
  json.Key("differences").BeginArray();
  const cli::TextLines lines(input.source.text());
  for (const interp::IsolatedDifference& d : result.differences) WriteRow(comparison, lines, d, &json);
  json.EndArray().EndObject();
}

void Report(const Flags& flags, const Comparison& comparison, const IsolatedModule& input,
            const interp::IsolationResult& result, cli::DiagnosticReporter* diagnostics) {
  const bool written = cli::WriteOutputFile(flags.output, diagnostics,
                                            [&](TextWriter& out) { PrintResult(out, comparison, input, result); });
  if (!written) return;
  if (!flags.isolate_json.empty()) {
    cli::WriteOutputFile(flags.isolate_json, diagnostics,
                         [&](TextWriter& out) { WriteResult(out, comparison, input, result); });
  }
  if (!result.equal()) diagnostics->Fail(cli::kRejected);
}

// Runs the module and lets the observer see the values. Returns false after an error, which is printed, unless the
// observer has ended the run.
bool Observe(interp::EngineKind kind, const IsolatedModule& input, interp::EvaluatorOptions options,
             interp::ObservationRequest request, interp::ExecutionObserver* observer,
             absl::Span<const Literal> arguments, const std::function<bool()>& ended,
             cli::DiagnosticReporter* diagnostics) {
  options.observation = std::move(request);
  options.observer = observer;
  DiagnosticSink sink;
  const std::unique_ptr<interp::Engine> engine = interp::PrepareEngine(kind, input.module, options, &sink);
  const bool ran = engine != nullptr && engine->Run(arguments, &sink).has_value();
  if (!ran && ended()) return true;
  diagnostics->Show(sink, input.source);
  if (!ran) diagnostics->Fail(cli::kRejected);
  return ran;
}

interp::ReplayOptions ReplayOptionsOf(const Flags& flags, const interp::EvaluatorOptions& options) {
  interp::ReplayOptions replay;
  replay.engine = flags.engine;
  replay.isolation = OptionsOf(flags, options);
  replay.poll = [&options] {
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted");
    }
    if (options.limits.begin && options.limits.IsOutOfTime(*options.limits.begin)) {
      return absl::DeadlineExceededError(options.limits.OutOfTimeMessage("running the instructions"));
    }
    return absl::OkStatus();
  };
  return replay;
}

}  // namespace

void IsolateInEngines(const Flags& flags, const IsolatedModule& input, const interp::EvaluatorOptions& options,
                      absl::Span<const Literal> arguments, cli::DiagnosticReporter* diagnostics) {
  interp::EngineIsolation isolation(input.module, flags.engine, OptionsOf(flags, options));
  if (!Observe(
          interp::EngineIsolation::ObservedEngine(flags.engine), input, options, isolation.Request(), &isolation,
          arguments, [&isolation] { return isolation.is_out_of_time(); }, diagnostics)) {
    return;
  }
  const interp::EngineRow& row = interp::RowOf(interp::EngineIsolation::HeldEngine(flags.engine));
  const std::string_view expected = interp::RowOf(row.compared_with).name;
  Report(flags, {"engines", std::string(row.name), std::string(expected)}, input, isolation.Finish(), diagnostics);
}

void IsolateInModules(const Flags& flags, const IsolatedModule& input, const IsolatedModule& other,
                      const interp::EvaluatorOptions& options, absl::Span<const Literal> arguments,
                      cli::DiagnosticReporter* diagnostics) {
  const interp::Counterparts counterparts = interp::FindCounterparts(input.module, other.module);
  interp::ValueRecorder recorder(input.module, flags.max_executions, options.limits.max_bytes);
  interp::ObservationRequest request;
  request.instructions = interp::NeededValues(input.module, counterparts);
  if (!Observe(
          flags.engine, input, options, std::move(request), &recorder, arguments, [] { return false; }, diagnostics))
    return;
  const absl::StatusOr<interp::IsolationResult> result =
      interp::Replay(other.module, input.module, recorder, counterparts, ReplayOptionsOf(flags, options));
  if (!result.ok()) {
    diagnostics->ShowError(flags.path, std::string(result.status().message()), cli::kRejected);
    return;
  }
  const Comparison comparison = {"modules", "after", "before", &input.module, &counterparts};
  Report(flags, comparison, other, *result, diagnostics);
}

bool ApplyIsolatePasses(const Flags& flags, const Module& module, std::unique_ptr<Module>* changed,
                        cli::DiagnosticReporter* diagnostics) {
  auto after = std::make_unique<Module>(module.Clone());
  PipelineOptions options;
  options.context = interp::EvaluatingContext();
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(flags.isolate_passes);
  absl::Status status = pipeline.status();
  if (pipeline.ok()) status = pipeline->Run(*after, options).status();
  if (!status.ok()) {
    diagnostics->ShowError(flags.path, std::string(status.message()), cli::kRejected);
    return false;
  }
  *changed = std::move(after);
  return true;
}

void ReplayDirectory(const Flags& flags, const IsolatedModule& input, const interp::EvaluatorOptions& options,
                     cli::DiagnosticReporter* diagnostics) {
  const absl::StatusOr<std::unique_ptr<interp::ValueDirectory>> directory =
      interp::ValueDirectory::Open(flags.replay, input.module.shared_context());
  if (!directory.ok()) {
    const cli::ExitCode code = absl::IsNotFound(directory.status()) ? cli::kUsage : cli::kRejected;
    diagnostics->ShowError("", std::string(directory.status().message()), code);
    return;
  }
  const Module& recorded = (*directory)->module();
  const interp::Counterparts counterparts = interp::FindCounterparts(recorded, input.module);
  const absl::StatusOr<interp::IsolationResult> result =
      interp::Replay(input.module, recorded, **directory, counterparts, ReplayOptionsOf(flags, options));
  if (!result.ok()) {
    diagnostics->ShowError("", std::string(result.status().message()), cli::kRejected);
    return;
  }
  const Comparison comparison = {"replay", "now", "recorded", &recorded, &counterparts};
  Report(flags, comparison, input, *result, diagnostics);
}

}  // namespace hlokit::run
