// SPDX-License-Identifier: Apache-2.0
// Checks the SPMD partitioner on recorded programs: values, and collectives as good as XLA's or better.
//
//   spmd_suite DIR [--floors=FILE] [--max-cost=N] [--filter=TEXT] [--print] [--dump=NAME]
//
// DIR has programs NAME.hlo and expectations NAME.facts (a README in DIR has the format). Each is partitioned,
// verified, and run on simulated devices with each kind of padding, if its values are determined; the results are
// compared with those of the whole program. One that needs more than N flops and bytes is made smaller for that, and
// left out if it stays larger than four times N. Expectations of collectives are met,
// beaten (as many bytes or fewer) or missed. FILE has lines `COUNT MINIMUM`; each count must reach its minimum. --print
// lists every case that fails or misses, --dump prints one partitioned program. Ends with `N passed, N failed`, by
// counts of FILE.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "check/equivalence/partition_check.h"
#include "ir/core/str_cat.h"
#include "ir/core/text_writer.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"
#include "tests/properties/smaller_module.h"
#include "tests/properties/spmd_expectations.h"
#include "tests/properties/verified.h"

namespace hlokit::properties {
namespace {

struct SuiteFlags {
  std::string folder, floors, filter, dump;
  int64_t max_cost = 50'000'000;
  bool print = false;
};

// The passes of a run. Options of XLA that the partitioner does not have are defaults of its.
// `small`: the program is smaller than what the options are meant for, so dots become loops whatever their size.
std::string PipelineOf(const SpmdRun& run, int64_t partitions, bool small = false) {
  constexpr std::string_view kThreshold = "threshold-for-windowed-einsum-mib";
  std::string before, options = StrCat("partitions=", partitions);
  if (small) StrAppend(&options, ",", kThreshold, "=0");
  const PassInfo* const partitioner = PassRegistry::Get().Find("spmd-partitioner");
  size_t begin = 0;
  while (begin < run.options.size()) {
    const size_t end = std::min(run.options.find(' ', begin), run.options.size());
    std::string option = run.options.substr(begin, end - begin);
    begin = end + 1;
    if (option == "propagate=true") {
      StrAppend(&before, "sharding-propagation{is-spmd=true,to-output=true,to-parameters=true},");
    }
    if (option == "rng_expander=true") before = StrCat("rng-expander,", before);
    // The options of the pipeline for GPUs that are the partitioner's.
    constexpr std::string_view kPipeline = "xla_gpu_", kBytes = "operand_bytes_threshold_for_windowed_einsum";
    if (option.starts_with(kPipeline)) option.erase(0, kPipeline.size());
    if (option.starts_with(kBytes)) option.replace(0, kBytes.size(), "total_bytes_windowed_einsum_threshold");
    const size_t equal = std::min(option.find('='), option.size());
    std::replace(option.begin(), option.begin() + static_cast<std::ptrdiff_t>(equal), '_', '-');
    if (const size_t limit = option.find("INT64_MAX"); limit != option.npos) {
      option.replace(limit, option.size(), std::to_string(std::numeric_limits<int64_t>::max()));
    }
    if (partitioner == nullptr) continue;
    for (const OptionInfo& known : partitioner->options) {
      if (known.name != option.substr(0, equal) || (small && known.name == kThreshold)) continue;
      StrAppend(&options, ",", option);
    }
  }
  return StrCat(before, "spmd-partitioner{", options, "}");
}

class Suite {
 public:
  explicit Suite(const SuiteFlags& flags) : flags_(flags) {}

  void Check(const SpmdCase& one) {
    for (size_t r = 0; r < one.runs.size(); ++r) {
      label_ = one.runs.size() == 1 ? one.name : StrCat(one.name, " run ", r + 1);
      CheckRun(one, one.runs[r]);
    }
  }

  // Prints the counts, and compares them with the minima. Returns the exit code.
  int Report() const {
    const auto at = [&](const char* key) { return counts_.contains(key) ? counts_.at(key) : 0; };
    std::printf("%d runs: %d partitioned and valid\n", at("runs"), at("valid"));
    std::printf("values: %d right, %d wrong, %d larger than the limit\n", at("values"), at("wrong"), at("large"));
    std::printf("collectives: %d met, %d beaten, %d missed; %.1f %% met or beaten\n", at("met"), at("beaten"),
                at("missed"), 100.0 * (at("met") + at("beaten")) / std::max(at("runs"), 1));
    if (flags_.floors.empty()) return at("wrong") == 0 ? 0 : 1;
    int passed = 0, failed = 0;
    if (at("wrong") != 0) {
      ++failed;
      std::printf("FAILED: wrong values\n");
    }
    std::ifstream file(flags_.floors);
    for (std::string line; std::getline(file, line);) {
      const size_t space = line.find(' ');
      if (line.empty() || line[0] == '#' || space == line.npos) continue;
      const std::string key = line.substr(0, space);
      const int minimum = std::atoi(line.c_str() + space);
      const int count = key == "met-or-beaten" ? at("met") + at("beaten") : at(key.c_str());
      if (count >= minimum) {
        ++passed;
      } else {
        ++failed;
        std::printf("FAILED: %s: %d, must be at least %d\n", key.c_str(), count, minimum);
      }
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
  }

 private:
  void Say(std::string_view kind, std::string_view what) {
    if (!flags_.print) return;
    std::printf("%s\t%s\t%s\n", std::string(kind).c_str(), label_.c_str(), std::string(what).c_str());
  }

  void CheckRun(const SpmdCase& one, const SpmdRun& run) {
    ++counts_["runs"];
    absl::StatusOr<std::unique_ptr<Module>> whole = ParseModuleText(one.text);
    if (!whole.ok()) return Say("unread", std::string(whole.status().message()));
    (*whole)->header().num_partitions = one.partitions;
    Module partitioned = (*whole)->Clone();
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(PipelineOf(run, one.partitions));
    if (!pipeline.ok()) {
      std::fprintf(stderr, "%s\n", std::string(pipeline.status().message()).c_str());
      std::exit(2);
    }
    const auto result = pipeline->Run(partitioned, WithEvaluator());
    if (!run.error.empty()) {
      const bool expected = !result.ok() && std::string(result.status().message()).find(run.error) != std::string::npos;
      ++counts_[expected ? "met" : "missed"];
      if (expected) ++counts_["valid"];
      if (!expected) Say("missed", StrCat("no error: ", run.error));
      return;
    }
    if (!result.ok()) {
      ++counts_["missed"];
      return Say("rejected", std::string(result.status().message()));
    }
    if (flags_.dump == one.name) Print(partitioned);
    if (const std::string problem = Problems(partitioned); !problem.empty()) {
      ++counts_["missed"];
      return Say("invalid", problem);
    }
    ++counts_["valid"];
    if (one.values) CheckValues(one, run, **whole, partitioned);
    const SpmdOutcome outcome = CheckFacts(run, **whole, partitioned);
    ++counts_[outcome.met ? "met" : outcome.beaten ? "beaten" : "missed"];
    if (outcome.met || outcome.beaten) return;
    std::string text = StrCat(outcome.bytes, " bytes, expected ", outcome.expected_bytes);
    for (const std::string& fact : outcome.missed) StrAppend(&text, "; not ", fact);
    Say("missed", text);
  }

  void CheckValues(const SpmdCase& one, const SpmdRun& run, const Module& whole, const Module& partitioned) {
    Module program = whole.Clone();
    Module parts = partitioned.Clone();
    if (one.flops + one.bytes > flags_.max_cost) {
      const auto limit = static_cast<double>(flags_.max_cost);
      MakeSmaller(&program, one.partitions, limit);
      if (WorkOf(program) > 4 * limit) {
        ++counts_["large"];
        return Say("large", StrCat(static_cast<int64_t>(WorkOf(program))));
      }
      const CollectiveUses uses = FindCollectives(partitioned, false);
      parts = program.Clone();
      absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(PipelineOf(run, one.partitions, uses.contains("while")));
      absl::Status status = pipeline.status();
      if (status.ok()) status = pipeline->Run(parts, WithEvaluator()).status();
      const std::string problem = status.ok() ? Problems(parts) : std::string(status.message());
      if (!problem.empty()) {
        ++counts_["wrong"];
        return Say("invalid when smaller", problem);
      }
    }
    // Propagation changes the shardings of parameters and results.
    if (run.options.find("propagate=true") != std::string::npos) {
      absl::StatusOr<Pipeline> pipeline =
          Pipeline::Parse("sharding-propagation{is-spmd=true,to-output=true,to-parameters=true}");
      if (!pipeline.ok() || !pipeline->Run(program).ok()) return;
    }
    interp::PartitionCheckOptions options;
    options.limits.max_bytes = int64_t{1} << 30;
    const absl::StatusOr<interp::PartitionCheck> check =
        interp::PartitionCheck::Prepare(program, one.partitions, options);
    if (!check.ok()) {
      ++counts_["not comparable"];
      return Say("not comparable", std::string(check.status().message()));
    }
    for (interp::PaddingFill fill : interp::kPaddingFills) {
      const absl::Status status = check->Compare(parts, fill);
      if (status.ok()) continue;
      ++counts_["wrong"];
      return Say("wrong", StrCat("padding ", ToString(fill), ": ", std::string(status.message())));
    }
    ++counts_["values"];
  }

  static void Print(const Module& module) {
    std::string text;
    {
      TextWriter out(&text);
      PrintModule(out, module, PrintOptions());
    }
    std::printf("%s\n", text.c_str());
  }

  const SuiteFlags& flags_;
  std::map<std::string, int> counts_;
  std::string label_;
};

int Run(int argc, char** argv) {
  SuiteFlags flags;
  for (int k = 1; k < argc; ++k) {
    const std::string_view flag = argv[k];
    const auto value = [&](std::string_view name, std::string* to) {
      if (flag.starts_with(name)) *to = flag.substr(name.size());
      return flag.starts_with(name);
    };
    std::string number;
    if (flag == "--print") {
      flags.print = true;
    } else if (value("--max-cost=", &number)) {
      flags.max_cost = std::atoll(number.c_str());
    } else if (!value("--floors=", &flags.floors) && !value("--filter=", &flags.filter) &&
               !value("--dump=", &flags.dump)) {
      flags.folder = flag;
    }
  }
  std::vector<std::string> bases;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(flags.folder, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".facts" || path.filename().string().find(flags.filter) == std::string::npos) continue;
    bases.push_back(std::filesystem::path(path).replace_extension());
  }
  if (error || bases.empty()) {
    std::fprintf(stderr,
                 "usage: spmd_suite DIR [--floors=FILE] [--max-cost=N] [--filter=TEXT] [--print] [--dump=NAME]\n");
    return 2;
  }
  std::sort(bases.begin(), bases.end());
  Suite suite(flags);
  for (const std::string& base : bases) suite.Check(ReadSpmdCase(base));
  return suite.Report();
}

}  // namespace
}  // namespace hlokit::properties

int main(int argc, char** argv) { return hlokit::properties::Run(argc, argv); }
