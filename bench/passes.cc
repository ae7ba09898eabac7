// SPDX-License-Identifier: Apache-2.0
// Times of passes, relative to XLA's, which are given relative to `gzip -6` of the same file; and their strength:
// instructions after `simplify` and bytes after `default`, relative to XLA's pipelines.
//
//   hlokit_bench_passes [--rounds=N] [--times=XLA-TIMES.tsv] [--strength=XLA-PASSES.tsv] FILE.hlo…
//
// Tables have a header line and a row for each file, named as the file without ".hlo". Times: gzip6_ms, cost_ms,
// pass_NAME_ms, pipeline_simplify_ms, pass_fusion_after_simplify_ms. Strength: simplify_instructions, fused_bytes.
// Times are processor times, medians of the rounds, which interleave all measurements; each pass runs on a fresh clone.
// The last lines are geometric means over the files in the tables, with their goals.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "io/files/read_file.h"
#include "parser/formats/parser.h"
#include "passes/analysis/cost.h"
#include "passes/core/pipeline.h"

namespace hlokit {
namespace {

struct Flags {
  int rounds = 3;
  std::string times, strength;
  std::vector<std::string> files;
};

struct Mean {
  double logs = 0;
  int count = 0;
  int at_most = 0;  // ratios that are at most 1
  double worst = 0;
  void Add(double ratio) {
    logs += std::log(ratio);
    ++count;
    at_most += ratio <= 1;
    worst = std::max(worst, ratio);
  }
  double value() const { return count == 0 ? 0 : std::exp(logs / count); }
};

struct Measurement {
  const char* what;
  const char* column;    // of the times
  const char* pipeline;  // null: the cost analysis
  bool simplified;       // runs on the result of `simplify`
  double goal;           // times faster than XLA, on average; 0: none
  Mean faster = {};
};

// Runs `text` on the module and returns the milliseconds, without parsing; negative, with a message, on errors.
double RunPipeline(const char* text, Module* module) {
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
  absl::Status status = pipeline.status();
  double milliseconds = 0;
  if (pipeline.ok()) {
    milliseconds = bench::MillisecondsOf([&] { status = pipeline->Run(*module).status(); });
  }
  if (status.ok()) return milliseconds;
  std::fprintf(stderr, "%s: %s\n", text, std::string(status.message()).c_str());
  return -1;
}

int Run(const Flags& flags) {
  const bench::Table times(flags.times), strength(flags.strength);
  Measurement measurements[] = {
      {"cost", "cost_ms", nullptr, false, 5},
      {"dce", "pass_dce_ms", "dce", false, 5},
      {"cse", "pass_cse_ms", "cse", false, 5},
      {"algsimp", "pass_algsimp_ms", "algsimp", false, 0},
      {"simplify", "pipeline_simplify_ms", "simplify", false, 10},
      {"fusion", "pass_fusion_after_simplify_ms", "fusion", true, 7},
  };
  Mean instructions, bytes;
  for (const std::string& file : flags.files) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
    DiagnosticSink sink;
    const std::unique_ptr<Module> module = source.ok() ? ParseModule(*source, {}, &sink) : nullptr;
    if (module == nullptr) {
      std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
      return 1;
    }
    const std::string name = bench::ProgramName(file);
    Module simplified = module->Clone();
    if (RunPipeline("simplify", &simplified) < 0) return 1;
    std::vector<double> gzip;
    std::vector<std::vector<double>> ours(std::size(measurements));
    for (int round = 0; round < flags.rounds; ++round) {
      gzip.push_back(bench::GzipMilliseconds(file));
      for (size_t m = 0; m < std::size(measurements); ++m) {
        Module clone = measurements[m].simplified ? simplified.Clone() : module->Clone();
        ours[m].push_back(measurements[m].pipeline == nullptr
                              ? bench::MillisecondsOf([&] { CostAnalysis costs(clone); })
                              : RunPipeline(measurements[m].pipeline, &clone));
        if (ours[m].back() < 0) return 1;
      }
    }
    std::printf("%s\n", name.c_str());
    const double gzip_ms = bench::Median(gzip), xla_gzip_ms = times.Number(name, "gzip6_ms");
    for (size_t m = 0; m < std::size(measurements); ++m) {
      const double ms = bench::Median(ours[m]);
      std::printf("  %-10s %10.3f ms", measurements[m].what, ms);
      const double xla_ms = times.Number(name, measurements[m].column);
      if (gzip_ms > 0 && xla_gzip_ms > 0 && xla_ms > 0 && ms > 0) {
        const double faster = (xla_ms / xla_gzip_ms) / (ms / gzip_ms);
        measurements[m].faster.Add(faster);
        std::printf("  %8.2f times faster", faster);
      }
      std::printf("\n");
    }
    const auto left = static_cast<double>(simplified.instruction_count());
    if (RunPipeline("fuse", &simplified) < 0) return 1;
    const double moved = CostAnalysis(simplified).SumsOf(simplified.entry()).bytes;
    std::printf("  instructions after simplify %.0f", left);
    if (const double xla = strength.Number(name, "simplify_instructions"); xla > 0) {
      instructions.Add(left / xla);
      std::printf("  %.4f of XLA's", left / xla);
    }
    std::printf("\n  bytes after fuse %.9g", moved);
    if (const double xla = strength.Number(name, "fused_bytes"); xla > 0) {
      bytes.Add(moved / xla);
      std::printf("  %.4f of XLA's", moved / xla);
    }
    std::printf("\n");
  }
  std::printf("\ngeometric means over the files with a figure of XLA's\n");
  for (const Measurement& m : measurements) {
    std::printf("  %-10s %8.2f times faster  (%d files)", m.what, m.faster.value(), m.faster.count);
    if (m.goal > 0) std::printf("  goal %g", m.goal);
    std::printf("\n");
  }
  std::printf("  instructions after simplify %.4f of XLA's, at most as many in %d of %d, %.4f at the worst\n",
              instructions.value(), instructions.at_most, instructions.count, instructions.worst);
  std::printf("  bytes after fuse %.4f of XLA's, at most as many in %d of %d, %.4f at the worst\n", bytes.value(),
              bytes.at_most, bytes.count, bytes.worst);
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int k = 1; k < argc; ++k) {
    const std::string_view arg = argv[k];
    if (arg.starts_with("--rounds=")) {
      flags.rounds = std::max(1, std::atoi(argv[k] + 9));
    } else if (arg.starts_with("--times=")) {
      flags.times = arg.substr(8);
    } else if (arg.starts_with("--strength=")) {
      flags.strength = arg.substr(11);
    } else {
      flags.files.emplace_back(arg);
    }
  }
  if (flags.files.empty()) {
    std::fprintf(stderr, "usage: hlokit_bench_passes [--rounds=N] [--times=TSV] [--strength=TSV] FILE.hlo...\n");
    return 2;
  }
  return Run(flags);
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Main(argc, argv); }
