// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/run_observers.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "ir/core/json_writer.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "tools/cli/output_file.h"

namespace hlokit::run {
namespace {

// Rows of each table of the text; the JSON has all.
constexpr size_t kMaxRows = 25;

std::vector<bool> Matches(const Module& module, const std::string& pattern) {
  const re2::RE2 regex(pattern, re2::RE2::Quiet);
  std::vector<bool> matches(module.instruction_id_bound(), false);
  for (Computation computation : module.computations()) {
    for (Instruction i : computation.instructions()) {
      matches[i.id().value] = re2::RE2::PartialMatch(re2::StringPiece(i.name().data(), i.name().size()), regex);
    }
  }
  return matches;
}

// Adds the instructions of one set, by id, to another.
void Add(const std::vector<bool>& some, std::vector<bool>* all) {
  all->resize(std::max(all->size(), some.size()), false);
  for (size_t i = 0; i < some.size(); ++i) {
    if (some[i]) (*all)[i] = true;
  }
}

using LoopMembers = std::map<uint32_t, std::vector<InstructionId>>;  // by the id of the last one

// Returns "loop of add.1, tanh.2" with the names of its instructions, abbreviated; empty if it is none of one.
std::string LoopText(const Module& module, const LoopMembers& loops, InstructionId last) {
  const auto at = loops.find(last.value);
  if (at == loops.end()) return "";
  constexpr size_t kMaxNames = 6;
  std::string text = "  loop of ";
  for (size_t i = 0; i < std::min(at->second.size(), kMaxNames); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", module.instruction(at->second[i]).name());
  }
  if (at->second.size() > kMaxNames) StrAppend(&text, " and ", at->second.size() - kMaxNames, " more");
  return text;
}

void PrintTable(TextWriter& out, std::string_view heading,
                const std::vector<interp::InstructionProfiler::Entry>& entries, double total,
                const std::function<std::string(const interp::InstructionProfiler::Entry&)>& note) {
  out << absl::StrFormat("%12s %7s %10s  %s\n", "ms", "%", "runs", heading);
  for (size_t i = 0; i < std::min(entries.size(), kMaxRows); ++i) {
    const interp::InstructionProfiler::Entry& e = entries[i];
    out << absl::StrFormat("%12.3f %6.1f%% %10d  %s%s\n", e.milliseconds, total > 0 ? e.milliseconds / total * 100 : 0,
                           e.runs, e.name, note(e));
  }
  if (entries.size() > kMaxRows) out << StrCat("             (", entries.size() - kMaxRows, " more)\n");
}

void WriteEntries(JsonWriter& json, std::string_view key, const Module& module,
                  const std::vector<interp::InstructionProfiler::Entry>& entries, bool by_opcode,
                  const LoopMembers& loops) {
  json.Key(key).BeginArray();
  for (const interp::InstructionProfiler::Entry& e : entries) {
    json.BeginObject();
    if (by_opcode) {
      json.Member("opcode", e.name).Member("instructions", e.instructions);
    } else {
      const Instruction instruction = module.instruction(e.instruction);
      json.Member("instruction", e.name)
          .Member("opcode", instruction.opcode_text())
          .Member("computation", instruction.parent().name())
          .Member("shape", std::string_view(ToString(instruction.shape(), /*with_layout=*/false)));
    }
    if (const auto loop = loops.find(e.instruction.value); !by_opcode && loop != loops.end()) {
      json.Key("loop").BeginArray();
      for (const InstructionId member : loop->second) json.Value(module.instruction(member).name());
      json.EndArray();
    }
    json.Member("runs", e.runs).Member("time_us", static_cast<int64_t>(e.milliseconds * 1e3)).EndObject();
  }
  json.EndArray();
}

}  // namespace

RunObservers::RunObservers(const Flags& flags, const Module& module)
    : flags_(flags), module_(module), stderr_([](std::string_view s) { std::fwrite(s.data(), 1, s.size(), stderr); }) {
  // The profiler comes first: an instruction's time ends before other observers see its value.
  if (flags.profile || !flags.profile_json.empty()) {
    profiler_ = std::make_unique<interp::InstructionProfiler>(module);
    observers_.Add(profiler_.get());
  }
  if (!flags.trace.empty()) {
    traced_ = Matches(module, flags.trace);
    if (std::find(traced_.begin(), traced_.end(), true) == traced_.end()) {
      stderr_ << "hlo-run: warning: --print-values=" << Printable(flags.trace) << " matches no instruction\n";
      stderr_.Flush();
    }
    trace_ = std::make_unique<interp::ValueTrace>(module, traced_, flags.trace_options, &stderr_);
    observers_.Add(trace_.get());
  }
  if (flags.stop_at_nan) {
    nonfinite_check_ = std::make_unique<interp::NonfiniteCheck>(module);
    observers_.Add(nonfinite_check_.get());
  }
}

bool RunObservers::OpenFiles(cli::DiagnosticReporter* diagnostics) {
  if (flags_.dump_values.empty()) return true;
  if (flags_.options.num_replicas * flags_.options.num_partitions != 1) {
    diagnostics->ShowError("--dump-values", "values are written of a run on one device", cli::kUsage);
    return false;
  }
  interp::ValueDirectoryOptions options;
  options.instructions = Matches(module_, flags_.dump_values_match);
  options.max_executions = flags_.max_executions;
  options.max_bytes = flags_.dump_values_max_bytes;
  dumped_ = options.instructions;
  if (std::find(dumped_.begin(), dumped_.end(), true) == dumped_.end()) {
    stderr_ << "hlo-run: warning: --dump-values-match=" << Printable(flags_.dump_values_match)
            << " matches no instruction\n";
    stderr_.Flush();
  }
  absl::StatusOr<std::unique_ptr<interp::ValueDirectoryWriter>> writer =
      interp::ValueDirectoryWriter::Create(flags_.dump_values, module_, options);
  if (!writer.ok()) {
    diagnostics->ShowOutputError(writer.status());
    return false;
  }
  values_ = *std::move(writer);
  observers_.Add(values_.get());
  return true;
}

bool RunObservers::CommitFiles(cli::DiagnosticReporter* diagnostics) {
  if (values_ == nullptr) return true;
  const absl::Status written = values_->Commit();
  if (!written.ok()) diagnostics->ShowOutputError(written);
  return written.ok();
}

void RunObservers::Attach(interp::EvaluatorOptions* options) {
  if (observers_.empty()) return;
  options->observer = &observers_;
  interp::ObservationRequest& observation = options->observation;
  observation.instructions = traced_;
  observation.computed_only = nonfinite_check_ != nullptr && trace_ == nullptr && values_ == nullptr;
  Add(dumped_, &observation.instructions);
  if (nonfinite_check_ != nullptr) interp::NonfiniteCheck::AddTo(module_, &observation);
}

bool RunObservers::Report(const interp::RunStatistics& statistics, const RunTimes& times,
                          const interp::CodeInspection* code, cli::DiagnosticReporter* diagnostics) {
  if (profiler_ == nullptr) return true;
  if (code != nullptr) loops_ = code->LoopMembers();
  if (flags_.profile) PrintProfile(statistics);
  return flags_.profile_json.empty() || WriteProfileJson(statistics, times, diagnostics);
}

void RunObservers::PrintProfile(const interp::RunStatistics& statistics) {
  const double total = profiler_->total_milliseconds();
  stderr_ << absl::StrFormat(
      "profile: %.3f ms, %d instructions executed, %d loop iterations, peak of %d bytes of values\n", total,
      statistics.steps, statistics.loop_iterations, statistics.peak_bytes);
  using Entry = interp::InstructionProfiler::Entry;
  PrintTable(stderr_, "opcode", profiler_->ByOpcode(), total, [](const Entry&) { return std::string(); });
  PrintTable(stderr_, "instruction", profiler_->ByInstruction(), total,
             [&](const Entry& e) { return LoopText(module_, loops_, e.instruction); });
  stderr_.Flush();
}

bool RunObservers::WriteProfileJson(const interp::RunStatistics& statistics, const RunTimes& times,
                                    cli::DiagnosticReporter* diagnostics) {
  return cli::WriteOutputFile(flags_.profile_json, diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    json.BeginObject()
        .Member("module", module_.name())
        .Member("total_us", static_cast<int64_t>(profiler_->total_milliseconds() * 1e3))
        .Member("instructions_run", statistics.steps)
        .Member("loop_iterations", statistics.loop_iterations)
        .Member("peak_bytes", statistics.peak_bytes)
        .Member("peak_live_bytes", statistics.peak_live_bytes)
        .Member("peak_held_bytes", statistics.peak_held_bytes)
        .Member("system_allocations", statistics.system_allocations)
        .Member("compile_seconds", times.compile_seconds)
        .Key("run_seconds")
        .BeginArray();
    for (double seconds : times.run_seconds) json.Value(seconds);
    json.EndArray();
    WriteEntries(json, "opcodes", module_, profiler_->ByOpcode(), /*by_opcode=*/true, loops_);
    WriteEntries(json, "instructions", module_, profiler_->ByInstruction(), /*by_opcode=*/false, loops_);
    json.EndObject();
  });
}

}  // namespace hlokit::run
