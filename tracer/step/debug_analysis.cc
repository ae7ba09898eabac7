// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/debug_analysis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/memory.h"

namespace hlokit::lazy {
namespace {

using runtime::MetricData;

constexpr int kReportWidth = 80;

// Writes lines with a prefix.
class Block {
 public:
  explicit Block(std::string_view prefix) : prefix_(prefix) {}
  Block& Line(std::string_view text) {
    StrAppend(&out_, "\n", prefix_, text);
    return *this;
  }
  Block& Rule(char c) { return Line(std::string(kReportWidth, c)); }
  std::string Take() { return std::move(out_); }

 private:
  std::string_view prefix_;
  std::string out_;
};

std::string Gigabytes(int64_t bytes) { return StrCat(FormatFixed(static_cast<double>(bytes) / (1 << 30), 6), " GB"); }

// Returns the most frequent origin of the executions that `counts` accepts: "; most often item of aten::sum at
// f@x.py:3 (5 of 8)".
template <typename Counts>
std::string MostOften(const ExecutionLog& log, Counts counts) {
  std::map<std::string, int64_t> places;
  int64_t all = 0;
  for (const ExecutionRecord& e : log.executions()) {
    if (!counts(e)) continue;
    ++all;
    const std::string place = LocationOf(e.frames);
    ++places[StrCat(ToString(e.cause), " of ", e.root, place.empty() ? "" : StrCat(" at ", place))];
  }
  const auto most =
      std::max_element(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == places.end()) return "";
  return StrCat("; most often ", most->first, " (", most->second, " of ", all, ")");
}

}  // namespace

std::string AnalysisBlock(AnalysisKind kind, const ExecutionRecord& execution, int max_frames) {
  const bool compiled = kind == AnalysisKind::kCompilation;
  Block block(compiled                                     ? "Compilation Analysis: "
              : kind == AnalysisKind::kUnexpectedExecution ? "Unexpected Execution Analysis: "
                                                           : "Execution Analysis: ");
  block.Rule('=').Line(compiled ? "Compilation Cause" : "Execution Cause");
  block.Line(StrCat("  ", Describe(execution.cause))).Line("Graph Info: ");
  if (!execution.name.empty()) block.Line(StrCat("  Graph Name: ", execution.name));
  block.Line(StrCat("  Graph Hash: ", ToString(execution.graph)));
  block.Line(StrCat("  Number of Graph Inputs: ", execution.inputs));
  block.Line(StrCat("  Number of Graph Outputs: ", execution.outputs));
  block.Line("Python Frame Triggered Execution: ");
  int shown = 0;
  for (const SourceFrame& frame : execution.frames) {
    if (shown++ == max_frames) {
      block.Line("  ..........");
      break;
    }
    block.Line(StrCat("  ", frame.function, " (", frame.file, ":", frame.line, ")"));
  }
  return block.Rule('-').Rule('=').Take();
}

std::string PostCompilationBlock(const Module& module) {
  std::string input = "Unknown  GB", output = input, aliased = input, temporary = input;
  if (const absl::StatusOr<MemoryAnalysis> analysis = MemoryAnalysis::Create(module); analysis.ok()) {
    const MemoryUse& use = analysis->OfModule();
    int64_t results = 0, donated = 0;
    for (const LiveBuffer& buffer : use.buffers) results += buffer.kind == BufferKind::kResult ? buffer.bytes : 0;
    const Computation entry = module.entry();
    for (const BufferDonor& donor : module.header().buffer_donor) {
      if (donor.parameter >= entry.parameter_count()) continue;
      const Shape shape = entry.parameter(donor.parameter).shape();
      const absl::Span<const int64_t> index = module.context().list(donor.parameter_index);
      donated += BufferBytes(index.empty() ? shape : shape.element(index[0]));
    }
    input = Gigabytes(use.argument_bytes);
    output = Gigabytes(results);
    aliased = Gigabytes(donated);
    temporary = Gigabytes(std::max<int64_t>(0, use.peak_bytes_beyond_arguments - results));
  }
  PrintOptions lossless = PrintOptions::Lossless();
  lossless.print_metadata = false;
  Block block("Post Compilation Analysis: ");
  block.Rule('=');
  block.Line(StrCat("Graph input size: ", input)).Line(StrCat("Graph output size: ", output));
  block.Line(StrCat("Aliased Input size: ", aliased)).Line(StrCat("Intermediate tensor size: ", temporary));
  block.Line(StrCat("Compiled program size: ", Gigabytes(static_cast<int64_t>(ToString(module, lossless).size()))));
  return StrCat("\nComputation hash: ", ToString(Fingerprint(module)), "\n", block.Rule('-').Rule('=').Take());
}

std::vector<std::string> AutoAnalysis::AfterStep(const runtime::Metrics& metrics, const ExecutionLog& log,
                                                 int64_t steps) {
  constexpr int64_t kWarmUpSteps = 10;
  constexpr double kTooFrequent = 0.5;  // per step
  constexpr double kSlowCompileNs = 300e9, kSlowExecuteNs = 30e9;
  std::vector<std::string> lines;
  const auto give = [&](const std::string& what, const std::string& text) {
    if (given_.insert(what).second) lines.push_back(StrCat("pt-xla-profiler: ", text));
  };
  const auto frequent = [&](std::string_view name, int64_t warm_up, const auto& where) {
    const std::optional<MetricData> m = metrics.metric(name);
    if (!m || steps <= warm_up || given_.contains(std::string(name))) return;
    if (static_cast<double>(m->total_samples) <= kTooFrequent * static_cast<double>(steps)) return;
    give(std::string(name),
         StrCat(name, " too frequent: ", m->total_samples, " counts during ", steps, " steps", where()));
  };
  frequent("CompileTime", kWarmUpSteps, [&] {
    return MostOften(log,
                     [](const ExecutionRecord& e) { return e.program == ExecutionRecord::ProgramOrigin::kCompiled; });
  });
  frequent("TransferFromDeviceTime", 0, [&] {
    return MostOften(
        log, [](const ExecutionRecord& e) { return e.cause == SyncReason::kValue || e.cause == SyncReason::kItem; });
  });
  const auto slow = [&](std::string_view name, double limit) {
    const std::optional<MetricData> m = metrics.metric(name);
    double longest = 0;
    if (m) {
      for (const runtime::MetricSample& sample : m->samples) longest = std::max(longest, sample.value);
    }
    if (longest <= limit) return;
    give(StrCat(name, " slow"), StrCat(name, " too slow: longest instance took ", runtime::FormatTime(longest)));
  };
  // The share of the time between batches that the program waits for them.
  if (const std::optional<MetricData> m = metrics.metric("LoaderWaitTime"); m && steps > kWarmUpSteps) {
    double waited = 0;
    for (size_t i = 1; i < m->samples.size(); ++i) waited += m->samples[i].value;
    const auto passed = static_cast<double>(m->samples.back().time_ns - m->samples.front().time_ns);
    if (waited > kTooFrequent * passed) {
      give("LoaderWaitTime", StrCat("LoaderWaitTime too long: ", runtime::FormatTime(m->accumulator),
                                    " of waiting for batches during ", steps, " steps"));
    }
  }
  slow("CompileTime", kSlowCompileNs);
  slow("ExecuteTime", kSlowExecuteNs);
  std::string ops;
  bool fresh = false;
  for (const std::string& name : metrics.counter_names()) {
    if (!name.starts_with("aten::") || name == "aten::_local_scalar_dense") continue;
    StrAppend(&ops, ops.empty() ? "" : ", ", name);
    fresh |= given_.insert(name).second;
  }
  if (fresh) {
    lines.push_back(StrCat("pt-xla-profiler: Op(s) not lowered: ", ops));
  }
  return lines;
}

}  // namespace hlokit::lazy
