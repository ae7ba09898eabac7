// SPDX-License-Identifier: Apache-2.0
// Times of programs on the exact engine, against targets and against XLA's own evaluator.
//
//   hlokit_bench_interpreter [FLAGS] FILE.hlo...
//     --rounds=N           runs of each program (default 5)
//     --seed=N             of the synthetic arguments and constants (default 1)
//     --num-threads=N      default 1
//     --max-seconds=X      a program whose first run takes longer is skipped in the others (default 25)
//     --speedup=N          also: elapsed times on one and on N threads, interleaved, and their ratio; and how evenly
//                          work is shared: processor time of all threads over that of the first one, which takes part
//                          in all of it. On a loaded machine the latter is more reliable.
//     --targets=FILE       a table with the columns name and target_ms; exit code 1 if a target is missed
//     --xla-times=FILE     a table with the columns name, evaluator_default_ms and evaluator_fast_path_ms
//     --calibration=FILE   the file compressed by `gzip -6` for the column gzip6_of_calibration_ms of that table: it is
//                          timed here too, and XLA's times are scaled to this machine
//
// Tables are tab-separated; their rows are named as the files without ".hlo". A time is that of one evaluation of a
// prepared module, without parsing and preparation: processor time for one thread, elapsed time for several. Rounds
// interleave the programs; the output shows medians. "ns_step" is the time per executed instruction. "times_faster" is
// XLA's time over ours; the geometric means are over the rows for which the table has a number.
#include <time.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "check/arguments/argument_generator.h"
#include "interp/exact/evaluator.h"
#include "io/files/read_file.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"

namespace hlokit {
namespace {

struct Flags {
  int rounds = 5;
  int speedup = 0;  // threads to compare with; 0: none
  std::string targets;
  std::string xla_times;
  std::string calibration;
  interp::EvaluatorOptions options;
  std::vector<std::string> files;
};

struct Program {
  std::string name;
  std::string error;  // reason for not measuring
  std::unique_ptr<Module> module;
  std::unique_ptr<interp::Evaluator> evaluator;
  std::vector<Literal> arguments;
  std::vector<double> times;
  int64_t steps = 0;  // instructions per run
  // For the speed-up: on one thread and on several.
  std::unique_ptr<interp::Evaluator> compared[2];
  std::vector<double> elapsed[2];
  std::vector<double> shares;
};

bool ReadFlags(int argc, char** argv, Flags* flags) {
  flags->options.num_threads = 1;
  flags->options.seed = 1;
  flags->options.fill_elided = FillKind::kRandom;
  flags->options.limits.max_seconds = 25;
  const std::vector<bench::Flag> table = {
      {"--rounds", [&](const char* value) { flags->rounds = std::max(1, std::atoi(value)); }},
      {"--speedup", [&](const char* value) { flags->speedup = std::max(2, std::atoi(value)); }},
      {"--seed", [&](const char* value) { flags->options.seed = std::strtoull(value, nullptr, 10); }},
      {"--num-threads", [&](const char* value) { flags->options.num_threads = std::atoi(value); }},
      {"--max-seconds", [&](const char* value) { flags->options.limits.max_seconds = std::atof(value); }},
      {"--targets", [&](const char* value) { flags->targets = value; }},
      {"--xla-times", [&](const char* value) { flags->xla_times = value; }},
      {"--calibration", [&](const char* value) { flags->calibration = value; }},
  };
  if (!bench::ReadFlags(argc, argv, table, &flags->files)) return false;
  return !flags->files.empty();
}

void Load(const std::string& file, const Flags& flags, Program* program) {
  program->name = bench::ProgramName(file);
  const absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
  if (!source.ok()) {
    program->error = std::string(source.status().message());
    return;
  }
  DiagnosticSink sink;
  program->module = ParseModule(*source, {}, &sink);
  if (program->module != nullptr && !sink.has_errors()) VerifyModule(*program->module, {}, &sink);
  if (!sink.has_errors()) program->evaluator = interp::Evaluator::Prepare(*program->module, flags.options, &sink);
  if (program->evaluator == nullptr) {
    program->error = sink.diagnostics().empty() ? "error" : sink.diagnostics()[0].message;
    return;
  }
  for (int i = 0; i < 2 && flags.speedup > 0; ++i) {
    interp::EvaluatorOptions options = flags.options;
    options.num_threads = i == 0 ? 1 : flags.speedup;
    program->compared[i] = interp::Evaluator::Prepare(*program->module, options, &sink);
  }
  program->arguments = interp::MakeFakeArguments(*program->module, flags.options.seed);
}

double ElapsedMilliseconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double ProcessorSeconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void RunOnce(const Flags& flags, Program* program) {
  if (!program->error.empty()) return;
  DiagnosticSink sink;
  bool ok = false;
  const auto start = std::chrono::steady_clock::now();
  double ms = bench::MillisecondsOf([&] { ok = program->evaluator->Run(program->arguments, &sink).has_value(); });
  if (flags.options.num_threads != 1) ms = ElapsedMilliseconds(start);
  if (!ok) {
    program->error = sink.diagnostics().empty() ? "error" : sink.diagnostics()[0].message;
    return;
  }
  program->times.push_back(ms);
  program->steps = program->evaluator->statistics().steps;
  for (int i = 0; i < 2 && flags.speedup > 0; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double mine = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID), all = ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID);
    program->compared[i]->Run(program->arguments, &sink);
    program->elapsed[i].push_back(ElapsedMilliseconds(begin));
    if (i == 1) {
      program->shares.push_back((ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID) - all) /
                                (ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID) - mine));
    }
  }
}

// A geometric mean of ratios.
class Mean {
 public:
  void Add(double ratio) {
    log_sum_ += std::log(ratio);
    ++count_;
  }
  int count() const { return count_; }
  double value() const { return count_ == 0 ? 0 : std::exp(log_sum_ / count_); }

 private:
  double log_sum_ = 0;
  int count_ = 0;
};

// Prints a line. Returns false if the program misses its target.
bool Report(const Program& program, const bench::Table& targets, const bench::Table& xla, double scale,
            Mean* by_default, Mean* by_fast_path) {
  const double target = targets.Number(program.name, "target_ms");
  std::printf("%-58s ", program.name.c_str());
  if (!program.error.empty()) {
    std::printf("%s\n", program.error.substr(0, 100).c_str());
    return target == 0;
  }
  const double ours = bench::Median(program.times);
  std::printf("%11.3f %9.0f ", ours, ours * 1e6 / static_cast<double>(std::max<int64_t>(program.steps, 1)));
  if (target > 0) {
    std::printf("%9.1f %-6s", target, ours <= target ? "ok" : "MISSED");
  } else {
    std::printf("%9s %-6s", "", "");
  }
  if (xla.HasRow(program.name)) {
    for (const auto& [column, mean] :
         {std::pair{"evaluator_default_ms", by_default}, std::pair{"evaluator_fast_path_ms", by_fast_path}}) {
      const double theirs = xla.Number(program.name, column) * scale;
      if (theirs == 0) {
        std::printf("  %-23.23s", xla.Text(program.name, column).c_str());
        continue;
      }
      std::printf("  %11.3f %11.2f", theirs, theirs / ours);
      mean->Add(theirs / ours);
    }
  }
  std::printf("\n");
  return target == 0 || ours <= target;
}

void ReportSpeedup(const Flags& flags, const std::vector<Program>& programs) {
  std::printf("\nelapsed time on 1 and on %d threads\n%-58s %11s %11s %7s %7s\n", flags.speedup, "program", "one_ms",
              "several_ms", "ratio", "shared");
  for (const Program& program : programs) {
    if (program.elapsed[1].empty()) continue;
    const double one = bench::Median(program.elapsed[0]);
    const double several = bench::Median(program.elapsed[1]);
    std::printf("%-58s %11.3f %11.3f %7.2f %7.2f\n", program.name.c_str(), one, several, one / several,
                bench::Median(program.shares));
  }
}

int Run(int argc, char** argv) {
  Flags flags;
  if (!ReadFlags(argc, argv, &flags)) {
    std::fprintf(stderr,
                 "usage: %s [--rounds=N] [--seed=N] [--num-threads=N] [--speedup=N] [--max-seconds=X] "
                 "[--targets=FILE] [--xla-times=FILE] [--calibration=FILE] FILE.hlo...\n",
                 argv[0]);
    return 2;
  }
  std::vector<Program> programs(flags.files.size());
  for (size_t i = 0; i < programs.size(); ++i) Load(flags.files[i], flags, &programs[i]);
  std::vector<double> gzip;
  for (int round = 0; round < flags.rounds; ++round) {
    if (!flags.calibration.empty()) gzip.push_back(bench::GzipMilliseconds(flags.calibration));
    for (Program& program : programs) RunOnce(flags, &program);
  }

  const bench::Table targets(flags.targets);
  const bench::Table xla(flags.xla_times);
  const double gzip_ms = bench::Median(gzip);
  std::printf("%d rounds, %d thread%s, %s time", flags.rounds, flags.options.num_threads,
              flags.options.num_threads == 1 ? "" : "s", flags.options.num_threads == 1 ? "processor" : "elapsed");
  if (gzip_ms > 0) std::printf(", gzip of the calibration file %.1f ms: XLA's times are scaled by its own", gzip_ms);
  std::printf("\n%-58s %11s %9s %9s %-6s  %11s %11s  %11s %11s\n", "program", "ours_ms", "ns_step", "target", "",
              "xla_ms", "times_fast", "xla_fast_ms", "times_fast");
  bool ok = true;
  Mean by_default, by_fast_path;
  for (const Program& program : programs) {
    const double xla_gzip_ms = xla.Number(program.name, "gzip6_of_calibration_ms");
    const double scale = gzip_ms > 0 && xla_gzip_ms > 0 ? gzip_ms / xla_gzip_ms : 1;
    ok &= Report(program, targets, xla, scale, &by_default, &by_fast_path);
  }
  if (by_default.count() > 0) {
    std::printf(
        "geometric means: %.1f times faster than XLA's evaluator (%d programs), %.1f times than its fast path (%d)\n",
        by_default.value(), by_default.count(), by_fast_path.value(), by_fast_path.count());
  }
  if (flags.speedup > 0) ReportSpeedup(flags, programs);
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
