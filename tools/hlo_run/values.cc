// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/values.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "check/arguments/array_values.h"
#include "check/arguments/device_arguments.h"
#include "interp/observers/value_summary.h"
#include "io/arrays/arguments.h"
#include "io/arrays/array_file.h"
#include "io/arrays/npy.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"
#include "tools/cli/output_file.h"

namespace hlokit::run {
namespace {

// Prints what is wrong with files of arrays. Files that cannot be opened are usage errors, as for other inputs.
void ShowIssues(const std::vector<interp::FileIssue>& issues, cli::DiagnosticReporter* diagnostics) {
  using Kind = interp::FileIssue::Kind;
  for (const interp::FileIssue& issue : issues) {
    if (issue.kind == Kind::kWarning) {
      diagnostics->ShowWarning(issue.where, issue.message);
    } else {
      diagnostics->ShowError(issue.where, issue.message,
                             issue.kind == Kind::kUnreadable ? cli::kUsage : cli::kRejected);
    }
  }
}

bool WriteNpyDirectory(const std::string& directory, absl::Span<const Literal> results,
                       cli::DiagnosticReporter* diagnostics) {
  if (!cli::CreateDirectories(directory, diagnostics)) return false;
  for (size_t i = 0; i < results.size(); ++i) {
    const Literal& result = results[i];
    if (!result.shape().IsArray()) continue;
    const bool written =
        cli::WriteOutputFile(StrCat(directory, "/result", i, ".npy"), diagnostics, [&](TextWriter& out) {
          out << interp::NpyHeader(result.shape());
          out << std::string_view(reinterpret_cast<const char*>(result.data()), result.size_bytes());
        });
    if (!written) return false;
  }
  return true;
}

std::optional<std::vector<Literal>> ReadTextFile(const std::string& path, absl::Span<const Shape> shapes,
                                                 const Module& module, std::string_view noun,
                                                 cli::DiagnosticReporter* diagnostics) {
  const std::vector<cli::InputPart> parts = diagnostics->Read(path);
  if (parts.empty()) return std::nullopt;
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> values =
      interp::ReadArguments(*parts[0].source, shapes, &module.context(), &sink, noun);
  diagnostics->Show(sink, *parts[0].source);
  return values;
}

// Reads arguments from text. A file with the arguments of one device applies to all devices.
std::optional<std::vector<Literal>> ReadTextArguments(const std::string& path, const std::vector<Shape>& shapes,
                                                      const interp::DeviceRange& devices, const Module& module,
                                                      cli::DiagnosticReporter* diagnostics) {
  const std::vector<cli::InputPart> parts = diagnostics->Read(path);
  if (parts.empty()) return std::nullopt;
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> values =
      interp::ReadDeviceArguments(*parts[0].source, shapes, devices, &module.context(), &sink);
  diagnostics->Show(sink, *parts[0].source);
  return values;
}

std::optional<std::vector<Literal>> MakeArguments(const interp::EvaluatorOptions& options, const Module& module,
                                                  const interp::DeviceRange& devices,
                                                  cli::DiagnosticReporter* diagnostics) {
  absl::StatusOr<std::vector<Literal>> values = interp::MakeDeviceArguments(module, options, devices);
  if (values.ok()) return *std::move(values);
  diagnostics->ShowError("", std::string(values.status().message()), cli::kRejected);
  return std::nullopt;
}

// Reads arguments from the files of arrays that the flags name.
std::optional<std::vector<Literal>> ReadArrayArguments(const Flags& flags, const Module& module,
                                                       const interp::Executable& executable,
                                                       cli::DiagnosticReporter* diagnostics) {
  const std::vector<Shape>& shapes = executable.argument_shapes();
  ShapeTable* const table = &module.context().shapes;
  const bool in_file = !flags.args.empty();
  std::vector<interp::FileIssue> issues;
  std::optional<std::vector<Literal>> values;
  if (executable.takes_parts()) {
    const interp::Division& division = *executable.division();
    const interp::DeviceRange own = executable.own_devices();
    values = in_file
                 ? interp::ReadArrayParts(flags.args, interp::ArgumentNames(module), division, own, "argument", &issues)
                 : interp::ReadNpyParts(flags.args_npy, division, own, &issues);
  } else {
    const interp::DeviceRange devices = executable.argument_range();
    values = in_file ? interp::ReadArrayValues(flags.args, interp::ArgumentNames(module), shapes, table, devices,
                                               "argument", &issues)
                     : interp::ReadNpyValues(flags.args_npy, shapes, table, devices, &issues);
  }
  ShowIssues(issues, diagnostics);
  return values;
}

}  // namespace

std::optional<std::vector<Literal>> ReadExpectedResults(const std::string& path, absl::Span<const Shape> shapes,
                                                        int64_t devices, const Module& module,
                                                        cli::DiagnosticReporter* diagnostics) {
  if (!interp::ArrayFormatOf(path)) return ReadTextFile(path, shapes, module, "result", diagnostics);
  const absl::Span<const Shape> one = shapes.first(shapes.size() / static_cast<size_t>(devices));
  std::vector<interp::FileIssue> issues;
  std::optional<std::vector<Literal>> values = interp::ReadArrayValues(
      path, interp::ResultNames(one.size()), one, &module.context().shapes, {devices, 0, devices}, "result", &issues);
  ShowIssues(issues, diagnostics);
  return values;
}

std::optional<std::vector<Literal>> ReadRunArguments(const Flags& flags, const interp::EvaluatorOptions& options,
                                                     const Module& module, const interp::Executable& executable,
                                                     cli::DiagnosticReporter* diagnostics) {
  const std::vector<Shape>& shapes = executable.argument_shapes();
  const interp::DeviceRange devices = executable.argument_range();
  const bool in_directory = flags.args.empty() && !flags.args_npy.empty();
  if (executable.takes_parts() || in_directory || interp::ArrayFormatOf(flags.args)) {
    return ReadArrayArguments(flags, module, executable, diagnostics);
  }
  if (!flags.args.empty()) return ReadTextArguments(flags.args, shapes, devices, module, diagnostics);
  if (flags.seed || shapes.empty()) return MakeArguments(options, module, devices, diagnostics);
  ShowMissingArguments(flags, static_cast<int64_t>(shapes.size()), diagnostics);
  return std::nullopt;
}

void ShowMissingArguments(const Flags& flags, int64_t count, cli::DiagnosticReporter* diagnostics) {
  const std::string message =
      StrCat("the program has ", Counted(count, "argument"), ": specify --args=FILE, --args-npy=DIR or --seed=N",
             flags.simulation.device.empty() ? "" : ", or --timing-only to estimate its time without running it");
  diagnostics->Fail(static_cast<cli::ExitCode>(cli::UsageError("hlo-run", message)));
}

namespace {

// Writes {"whole": false, "replicas": 1, "partitions": 4, "devices": [{"replica": 0, "partition": 0, "results":
// [{"shape": "f32[2]", "text": "f32[2] {1, 2}"}]}]}; of a whole program there is one member of `devices`, without
// numbers.
void WriteResultsJson(const interp::EvaluatorOptions& options, absl::Span<const Literal> results,
                      absl::Span<const Shape> shapes, int64_t devices, bool whole, TextWriter* out) {
  const size_t each = results.size() / static_cast<size_t>(devices);
  JsonWriter json(out);
  json.BeginObject().Member("whole", whole).Member("replicas", options.num_replicas);
  json.Member("partitions", options.num_partitions).Key("devices").BeginArray();
  for (int64_t d = 0; d < devices; ++d) {
    json.BeginObject();
    if (!whole) json.Member("replica", d / options.num_partitions).Member("partition", d % options.num_partitions);
    json.Key("results").BeginArray();
    for (size_t k = 0; k < each; ++k) {
      std::string text;
      {
        TextWriter leaf(&text);
        const size_t one = k < shapes.size() ? 1 : 0;
        interp::PrintLeaves(leaf, results.subspan(static_cast<size_t>(d) * each + k, 1),
                            shapes.subspan(std::min(k, shapes.size()), one));
      }
      while (!text.empty() && text.back() == '\n') text.pop_back();
      json.BeginObject().Member("shape", ToString(results[static_cast<size_t>(d) * each + k].shape(), false));
      json.Member("text", text).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

bool WriteResults(const Flags& flags, const interp::EvaluatorOptions& options, absl::Span<const Literal> results,
                  absl::Span<const Shape> shapes, int64_t devices, bool whole, cli::DiagnosticReporter* diagnostics) {
  const int64_t partitions = options.num_partitions;
  const size_t each = results.size() / static_cast<size_t>(devices);
  if (!flags.results_npy.empty() && !WriteNpyDirectory(flags.results_npy, results, diagnostics)) return false;
  if (!flags.print_results && flags.output == "-") return true;
  if (interp::ArrayFormatOf(flags.output)) {
    const absl::Status written = interp::WriteArrayValues(flags.output, results, devices);
    if (!written.ok()) diagnostics->ShowOutputError(written);
    return written.ok();
  }
  return cli::WriteOutputFile(flags.output, diagnostics, [&](TextWriter& out) {
    if (std::string_view(flags.output).ends_with(".json")) {
      return WriteResultsJson(options, results, shapes, devices, whole, &out);
    }
    for (int64_t d = 0; d < devices; ++d) {
      if (devices > 1 || flags.results_by_device) {
        out << StrCat("// replica ", d / partitions, ", partition ", d % partitions, "\n");
      }
      interp::PrintLeaves(out, results.subspan(static_cast<size_t>(d) * each, each), shapes);
    }
  });
}

void WarnOfNonfinite(const Flags& flags, const Module& module, absl::Span<const Literal> results,
                     DiagnosticSink* sink) {
  if (!flags.seed || flags.stop_at_nan) return;
  int64_t nans = 0, infinities = 0;
  for (const Literal& result : results) {
    if (!result.shape().IsArray()) continue;
    const interp::ValueSummary summary = interp::Summarize(result.shape(), result.data());
    nans += summary.nans;
    infinities += summary.infinities;
  }
  if (nans == 0 && infinities == 0) return;
  const Instruction root = module.entry().root();
  sink->Warning(
      DiagnosticKind::kEvaluation, NameRange(root),
      StrCat("the results of these synthetic arguments have ", nans, " NaN and ", infinities, " infinite values"),
      "--debug-nans shows the instruction that produces the first of them");
}

}  // namespace hlokit::run
