// SPDX-License-Identifier: Apache-2.0
// The command line of hlo-run.
#ifndef HLOKIT_TOOLS_HLO_RUN_FLAGS_H_
#define HLOKIT_TOOLS_HLO_RUN_FLAGS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "check/comparison/value_comparison.h"
#include "interp/interface/evaluator_options.h"
#include "interp/observers/value_trace.h"
#include "interp/program/engine_table.h"
#include "interp/program/sharded_arrays.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/engine_flags.h"
#include "tools/hlo_run/simulation.h"

namespace hlokit::run {

struct Flags {
  std::string path = "-";
  bool verify = true;
  cli::InputOptions input;
  bool sweeps_size = false;  // the values of simulation.sweep are sizes of the program
  interp::EngineKind engine = interp::EngineKind::kExact;
  // Passes before the run, of programs that the fast engine runs by default; see interp/program/compile.h.
  std::optional<std::string> passes;
  cli::EngineFlags engine_flags;
  int64_t repeat = 1;
  interp::EvaluatorOptions options;
  bool replicas_given = false, partitions_given = false;
  bool devices_given() const { return replicas_given || partitions_given; }
  // Of a program that --partitions divides.
  bool results_by_device = false;
  interp::PaddingFill padding = interp::PaddingFill::kZero;
  bool padding_given = false;

  // Arguments: at most one of these.
  std::string args;
  std::string args_npy;
  std::optional<uint64_t> seed;

  // Results.
  bool print_results = true;
  std::string output = "-";
  std::string results_npy;
  std::string expect;
  std::string compare;
  std::string dump_snapshot;
  interp::ErrorSpec tolerance;
  bool tolerance_given = false;

  // Search for the pass that changes the results, instead of a run.
  std::string bisect_passes;
  std::string bisect_output;
  bool bisect_reduce = false;

  // Search for instructions whose values differ, instead of a run.
  bool isolate = false;
  std::string isolate_passes;
  std::string isolate_json;
  bool isolate_fusions = false;
  int64_t isolate_max_work = 1'000'000'000;
  bool isolate_distinct = false;
  double isolate_max_seconds = 0;  // 0: no limit
  std::string replay;
  int64_t max_executions = std::numeric_limits<int64_t>::max();  // of each instruction; also of dumped values

  std::string host_io;

  // Runs as several processes.
  bool mpi = false;
  double mpi_timeout = 30;

  // Observation of the run.
  std::string trace;
  interp::ValueTraceOptions trace_options;
  std::string dump_values;
  std::string dump_values_match;
  int64_t dump_values_max_bytes = int64_t{4} << 30;
  bool stop_at_nan = false;
  bool profile = false;
  std::string profile_json;
  bool progress = true;

  SimulationFlags simulation;
};

// Parses and checks the command line. Returns an exit code if the tool is done.
std::optional<int> ParseFlags(int argc, char** argv, Flags* flags);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_FLAGS_H_
