// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/flag_conflicts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "ir/core/str_cat.h"
#include "tools/cli/flags/given_flag.h"

namespace hlokit::run {
namespace {

// What an invocation is for.
using Purposes = uint32_t;
constexpr Purposes kRun = 1;        // results, with or without an estimate before
constexpr Purposes kBisection = 2;  // --bisect-passes
constexpr Purposes kReplay = 4;
constexpr Purposes kIsolation = 8;
constexpr Purposes kEstimate = 16;  // --timing-only
constexpr Purposes kSweep = 32;
constexpr Purposes kValues = kRun | kBisection | kReplay | kIsolation;

// A flag that has an effect for some purposes only.
struct PurposeRow {
  std::string_view flag;
  Purposes purposes;
  std::string_view hint = "";
};
constexpr PurposeRow kPurposeRows[] = {
    {"--args", kRun | kIsolation},
    {"--args-npy", kRun | kIsolation},
    {"--output", kRun | kReplay | kIsolation},
    {"--results-npy", kRun},
    {"--expect", kRun},
    {"--compare", kRun | kIsolation},
    {"--dump-snapshot", kRun},
    {"--tolerance", kValues},
    {"--abs-error-bound", kValues},
    {"--rel-error-bound", kValues},
    {"--bisect-passes", kBisection},
    {"--replay", kReplay},
    {"--isolate", kIsolation},
    {"--isolate-json", kReplay | kIsolation | kRun},
    {"--isolate-fusions", kReplay | kIsolation | kRun},
    {"--isolate-max-work", kReplay | kIsolation | kRun},
    {"--isolate-distinct", kReplay | kIsolation | kRun},
    {"--isolate-max-seconds", kReplay | kIsolation | kRun},
    {"--max-executions", kReplay | kIsolation | kRun},
    {"--print-values", kRun},
    {"--dump-values", kRun},
    {"--debug-nans", kRun},
    {"--profile", kRun},
    {"--profile-json", kRun},
    {"--repeat", kRun},
    {"--host-io", kRun},
    {"--results-by-device", kRun},
    {"--padding", kRun},
    {"--engine", kRun | kReplay | kIsolation},
    {"--explain-engine", kRun | kIsolation},
    {"--dump-compiled", kRun | kIsolation},
    {"--passes", kValues, "; --pipeline is for the estimate"},
    {"--mixed-precision", kValues},
    {"--seed", kValues | kEstimate},
    {"--print-results", kValues | kEstimate},
    {"--progress", kValues | kEstimate},
    {"--num-threads", kValues | kEstimate},
    {"--max-bytes", kValues | kEstimate},
    {"--max-steps", kValues | kEstimate},
    {"--max-loop-trips", kValues | kEstimate, "; --default-trip-count is for loops that cannot be counted"},
    {"--max-seconds", kValues | kEstimate},
    {"--timeline", kValues | kEstimate},
    {"--xplane", kValues | kEstimate},
    {"--report", kValues | kEstimate},
    {"--host", kValues | kEstimate},
    {"--memory", kValues | kEstimate},
    {"--advise", kValues | kEstimate},
    {"--top", kValues | kEstimate},
    {"--remarks", kValues | kEstimate},
    {"--remarks-output", kValues | kEstimate},
    {"--fusion-steps", kValues | kEstimate},
};

// A flag that has an effect with one of some others only.
struct RequirementRow {
  std::string_view flag;
  std::array<std::string_view, 3> any_of;
};
constexpr RequirementRow kRequirementRows[] = {
    {"--isolate-json", {"--isolate", "--replay"}},
    {"--isolate-fusions", {"--isolate", "--replay"}},
    {"--isolate-max-work", {"--isolate", "--replay"}},
    {"--isolate-distinct", {"--isolate", "--replay"}},
    {"--isolate-max-seconds", {"--isolate", "--replay"}},
    {"--max-executions", {"--isolate", "--replay", "--dump-values"}},
    {"--print-values-max-elements", {"--print-values"}},
    {"--print-values-max-count", {"--print-values"}},
    {"--mpi-timeout", {"--mpi"}},
    {"--timeline-events", {"--timeline", "--xplane", "--report"}},
    {"--timeline-devices", {"--timeline", "--xplane"}},
    {"--variation-seed", {"--jitter", "--straggler"}},
};

struct Purpose {
  Purposes bit;
  std::string_view flag;
};

Purpose PurposeOf(const Flags& flags) {
  if (!flags.simulation.sweep.empty()) return {kSweep, "--sweep"};
  if (flags.simulation.timing_only) return {kEstimate, "--timing-only"};
  if (!flags.bisect_passes.empty()) return {kBisection, "--bisect-passes"};
  if (!flags.replay.empty()) return {kReplay, "--replay"};
  if (flags.isolate) return {kIsolation, "--isolate"};
  return {kRun, ""};
}

bool IsGiven(const CLI::App& app, std::string_view flag) { return cli::IsGiven(*app.get_option(std::string(flag))); }

std::string Or(const RequirementRow& row) {
  std::string text(row.any_of[0]);
  for (size_t k = 1; k < row.any_of.size() && !row.any_of[k].empty(); ++k) {
    const bool last = k + 1 == row.any_of.size() || row.any_of[k + 1].empty();
    StrAppend(&text, last ? " or " : ", ", row.any_of[k]);
  }
  return text;
}

}  // namespace

std::string FindFlagConflict(const CLI::App& app, const Flags& flags) {
  const Purpose purpose = PurposeOf(flags);
  for (const PurposeRow& row : kPurposeRows) {
    if ((row.purposes & purpose.bit) != 0 || !IsGiven(app, row.flag)) continue;
    std::string_view hint = row.hint;
    if (row.flag == "--output") {
      hint = purpose.bit == kBisection ? "; --bisect-output names the file of the module"
                                       : "; --report-output names the file of the report";
    }
    return StrCat(row.flag, " excludes ", purpose.flag, hint);
  }
  for (const RequirementRow& row : kRequirementRows) {
    if (!IsGiven(app, row.flag)) continue;
    const auto given = [&](std::string_view flag) { return !flag.empty() && IsGiven(app, flag); };
    if (std::none_of(row.any_of.begin(), row.any_of.end(), given)) {
      return StrCat(row.flag, " requires ", Or(row));
    }
  }
  return "";
}

}  // namespace hlokit::run
