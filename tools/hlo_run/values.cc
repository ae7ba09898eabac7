// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/values.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "check/arguments/argument_generator.h"
#include "interp/observers/value_summary.h"
#include "io/arrays/arguments.h"
#include "io/arrays/array_file.h"
#include "io/arrays/npy.h"
#include "ir/core/str_cat.h"
#include "tools/cli/output_file.h"
#include "tools/hlo_run/array_values.h"

namespace hlokit::run {
namespace {

std::optional<std::vector<Literal>> ReadNpyDirectory(const std::string& directory, absl::Span<const Shape> shapes,
                                                     ShapeTable* table, cli::DiagnosticReporter* diagnostics) {
  std::vector<Literal> values;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].IsArray()) {
      values.push_back(Literal::Zeros(shapes[i]));
      continue;
    }
    std::optional<Literal> value = ReadNpyFile(StrCat(directory, "/arg", i, ".npy"), shapes[i], table, diagnostics);
    if (!value) return std::nullopt;
    values.push_back(*std::move(value));
  }
  return values;
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

std::vector<Shape> ForEachDevice(const std::vector<Shape>& shapes, int64_t devices) {
  std::vector<Shape> all;
  for (int64_t d = 0; d < devices; ++d) all.insert(all.end(), shapes.begin(), shapes.end());
  return all;
}

// Reads arguments from text. A file with the arguments of one device applies to all devices.
std::optional<std::vector<Literal>> ReadTextArguments(const std::string& path, const std::vector<Shape>& shapes,
                                                      const interp::DeviceRange& devices, const Module& module,
                                                      cli::DiagnosticReporter* diagnostics) {
  if (devices.all == 1) return ReadTextFile(path, shapes, module, "argument", diagnostics);
  const std::vector<cli::InputPart> parts = diagnostics->Read(path);
  if (parts.empty()) return std::nullopt;
  DiagnosticSink none;
  std::optional<std::vector<Literal>> one =
      interp::ReadArguments(*parts[0].source, shapes, &module.context(), &none, "argument");
  if (one) {
    std::vector<Literal> all;
    for (int64_t d = 0; d < devices.count; ++d) all.insert(all.end(), one->begin(), one->end());
    return all;
  }
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> all =
      interp::ReadArguments(*parts[0].source, ForEachDevice(shapes, devices.all), &module.context(), &sink, "argument");
  diagnostics->Show(sink, *parts[0].source);
  if (!all) return all;
  const auto begin = all->begin() + devices.first * static_cast<int64_t>(shapes.size());
  return std::vector<Literal>(begin, begin + devices.count * static_cast<int64_t>(shapes.size()));
}

std::optional<std::vector<Literal>> ReadNpyArguments(const std::string& directory, const std::vector<Shape>& shapes,
                                                     ShapeTable* table, const interp::DeviceRange& devices,
                                                     cli::DiagnosticReporter* diagnostics) {
  std::vector<Literal> all;
  for (int64_t d = devices.first; d < devices.first + devices.count; ++d) {
    const std::string own = StrCat(directory, "/device", d);
    std::error_code error;
    const bool has_own = std::filesystem::is_directory(own, error);
    std::optional<std::vector<Literal>> values =
        ReadNpyDirectory(has_own ? own : directory, shapes, table, diagnostics);
    if (!values) return std::nullopt;
    for (Literal& value : *values) all.push_back(std::move(value));
  }
  return all;
}

std::optional<std::vector<Literal>> MakeArguments(const interp::EvaluatorOptions& options, const Module& module,
                                                  const interp::DeviceRange& devices,
                                                  cli::DiagnosticReporter* diagnostics) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  interp::GeneratorOptions generator;
  generator.num_threads = options.num_threads;
  generator.max_bytes = options.limits.max_bytes / std::max<int64_t>(devices.count, 1);
  generator.poll = [&] {
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("interrupted while arguments were made");
    }
    if (!options.limits.IsOutOfTime(start)) return absl::OkStatus();
    return absl::DeadlineExceededError(options.limits.OutOfTimeMessage("making the arguments"));
  };
  std::vector<Literal> all;
  for (int64_t d = devices.first; d < devices.first + devices.count; ++d) {
    absl::StatusOr<std::vector<Literal>> values =
        interp::MakeFakeArguments(module, options.seed + (static_cast<uint64_t>(d) << 48), generator);
    if (!values.ok()) {
      diagnostics->ShowError("", std::string(values.status().message()), cli::kRejected);
      return std::nullopt;
    }
    for (Literal& value : *values) all.push_back(std::move(value));
  }
  return all;
}

}  // namespace

std::optional<std::vector<Literal>> ReadExpectedResults(const std::string& path, absl::Span<const Shape> shapes,
                                                        int64_t devices, const Module& module,
                                                        cli::DiagnosticReporter* diagnostics) {
  if (!interp::ArrayFormatOf(path)) return ReadTextFile(path, shapes, module, "result", diagnostics);
  const absl::Span<const Shape> one = shapes.first(shapes.size() / static_cast<size_t>(devices));
  return ReadArrayValues(path, ResultNames(one.size()), one, &module.context().shapes, {devices, 0, devices}, "result",
                         diagnostics);
}

std::optional<std::vector<Literal>> ReadRunArguments(const Flags& flags, const interp::EvaluatorOptions& options,
                                                     const Module& module, const interp::Executable& executable,
                                                     cli::DiagnosticReporter* diagnostics) {
  const std::vector<Shape>& shapes = executable.argument_shapes();
  ShapeTable* const table = &module.context().shapes;
  const interp::DeviceRange devices = executable.argument_range();
  if (executable.takes_parts()) {
    const interp::Division& division = *executable.division();
    const interp::DeviceRange own = executable.own_devices();
    if (flags.args.empty()) return ReadNpyParts(flags.args_npy, division, own, diagnostics);
    return ReadArrayParts(flags.args, ArgumentNames(module), division, own, "argument", diagnostics);
  }
  if (interp::ArrayFormatOf(flags.args)) {
    return ReadArrayValues(flags.args, ArgumentNames(module), shapes, table, devices, "argument", diagnostics);
  }
  if (!flags.args.empty()) return ReadTextArguments(flags.args, shapes, devices, module, diagnostics);
  if (!flags.args_npy.empty()) return ReadNpyArguments(flags.args_npy, shapes, table, devices, diagnostics);
  if (flags.seed || shapes.empty()) return MakeArguments(options, module, devices, diagnostics);
  ShowMissingArguments(flags, static_cast<int64_t>(shapes.size()), diagnostics);
  return std::nullopt;
}

void ShowMissingArguments(const Flags& flags, int64_t count, cli::DiagnosticReporter* diagnostics) {
  const std::string message =
      StrCat("the program has ", count, count == 1 ? " argument" : " arguments",
             ": specify --args=FILE, --args-npy=DIR or --seed=N",
             flags.simulation.device.empty() ? "" : ", or --timing-only to estimate its time without running it");
  diagnostics->Fail(static_cast<cli::ExitCode>(cli::UsageError("hlo-run", message)));
}

bool WriteResults(const Flags& flags, absl::Span<const Literal> results, absl::Span<const Shape> shapes,
                  int64_t devices, cli::DiagnosticReporter* diagnostics) {
  const int64_t partitions = flags.options.num_partitions;
  const size_t each = results.size() / static_cast<size_t>(devices);
  if (!flags.results_npy.empty() && !WriteNpyDirectory(flags.results_npy, results, diagnostics)) return false;
  if (!flags.print_results && flags.output == "-") return true;
  if (interp::ArrayFormatOf(flags.output)) return WriteArrayValues(flags.output, results, devices, diagnostics);
  return cli::WriteOutputFile(flags.output, diagnostics, [&](TextWriter& out) {
    for (int64_t d = 0; d < devices; ++d) {
      if (devices > 1) out << StrCat("// replica ", d / partitions, ", partition ", d % partitions, "\n");
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
  SourceRange range;
  const uint32_t offset = root.record().source_offset;
  if (offset != InstructionRecord::kNoSourceOffset) range = {offset, static_cast<uint32_t>(root.name().size())};
  sink->Warning(
      DiagnosticKind::kEvaluation, range,
      StrCat("the results of these synthetic arguments have ", nans, " NaN and ", infinities, " infinite values"),
      "--debug-nans shows the instruction that produces the first of them");
}

}  // namespace hlokit::run
