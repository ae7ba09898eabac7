// SPDX-License-Identifier: Apache-2.0
#include "check/bisection/pass_bisection.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "check/equivalence/partition_tracker.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "passes/instrumentation/dependent_results.h"

namespace hlokit::interp {
namespace {

// Runs the passes up to a number. Records those that changed the module.
class PassLimit : public PassInstrumentation {
 public:
  struct Run {
    int64_t number;
    std::string pass, group;
    int64_t rewrites;  // applications of rules in this run
  };

  // Of the last pass that runs only some applications of rules are done, unless `last_rewrites` is negative. Requires:
  // `context` is that of the pipeline.
  PassLimit(int64_t passes, int64_t last_rewrites, const Module& module, PassContext* context)
      : passes_(passes), last_rewrites_(last_rewrites), partitions_(module) {
    context->rewrites = &rewrites_;
  }

  bool ShouldRun(const PassRun& run) override { return passes_ < 0 || run.number <= passes_; }

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override {
    partitions_.RunBeforePass(module);
    rewrites_.applied = 0;
    if (run.number == passes_) {
      rewrites_.limit = last_rewrites_;
      before_ = module.Clone();
    }
    pending_ = UncomparedResults();
    pending_.Add(module, run.info.redefines);
    return absl::OkStatus();
  }

  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override {
    if (!changed) return absl::OkStatus();
    partitions_.RunAfterPass(module);
    redefined_.Add(pending_);
    declared_ = std::max(declared_, run.info.tolerance);
    changed_.push_back(
        {run.number, StrCat(run.info.name, run.pass.options().ToString()), std::string(run.place), rewrites_.applied});
    return absl::OkStatus();
  }

  const std::vector<Run>& changed() const { return changed_; }
  double declared() const { return declared_; }
  const UncomparedResults& redefined() const { return redefined_; }
  const RewriteLimit& rewrites() const { return rewrites_; }
  const PartitionTracker& partitions() const { return partitions_; }
  // The module before the last pass that was allowed to run.
  const std::optional<Module>& before() const { return before_; }

 private:
  int64_t passes_, last_rewrites_;
  RewriteLimit rewrites_;
  PartitionTracker partitions_;
  std::vector<Run> changed_;
  UncomparedResults pending_;    // by the current pass
  UncomparedResults redefined_;  // by those that changed the module
  double declared_ = 0;
  std::optional<Module> before_;
};

class Bisection {
 public:
  Bisection(const Module& module, std::string_view pipeline, const BisectionOptions& options)
      : module_(module), pipeline_(pipeline), options_(options) {}

  // Runs the module as it is.
  absl::Status Prepare() {
    absl::StatusOr<ResultSets> results = Evaluate(module_, PartitionTracker(module_), "before the passes");
    if (!results.ok()) {
      return absl::FailedPreconditionError(
          StrCat("cannot run the module before the passes: ", std::string(results.status().message())));
    }
    expected_ = *std::move(results);
    unordered_.Add(DependentResults(module_, SortsByPartialOrder), kUnorderedSort);
    return absl::OkStatus();
  }

  // Returns how the results differ after the first `passes` passes, of the last one with `rewrites` applications.
  absl::StatusOr<std::string> Difference(int64_t passes, int64_t rewrites, std::string_view what,
                                         std::optional<PassLimit>* limit) {
    Module module = module_.Clone();
    PipelineOptions options = options_.pipeline;
    limit->emplace(passes, rewrites, module, &options.context);
    absl::StatusOr<Pipeline> pipeline =
        Pipeline::Parse(pipeline_, options_.registry != nullptr ? *options_.registry : PassRegistry::Get());
    if (!pipeline.ok()) return pipeline.status();
    PassInstrumentation* const instruments[] = {&**limit};
    const absl::StatusOr<Pipeline::Result> result = pipeline->Run(module, options, instruments);
    if (!result.ok()) return result.status();
    if ((*limit)->changed().empty()) return std::string();
    const absl::StatusOr<ResultSets> results = Evaluate(module, (*limit)->partitions(), what);
    if (!results.ok()) return StrCat("the module cannot be run: ", std::string(results.status().message()));
    const Tolerance tolerance = options_.run.tolerance.value_or(Tolerance::OfPass((*limit)->declared()));
    for (size_t set = 0; set < results->size(); ++set) {
      std::vector<Literal> before = expected_[set];
      const std::vector<Literal>& after = (*results)[set];
      for (size_t k = 0; k < before.size() && k < after.size(); ++k) {
        const bool special = static_cast<int64_t>(set) >= options_.run.inputs;
        if ((*limit)->redefined().Contains(k) || (special && unordered_.Contains(k))) before[k] = after[k];
      }
      std::string difference = CompareResults(before, after, tolerance);
      if (!difference.empty()) return difference;
    }
    return std::string();
  }

  absl::StatusOr<BisectionResult> Run() {
    BisectionResult result;
    if (const absl::Status status = Prepare(); !status.ok()) return status;
    std::optional<PassLimit> limit;
    absl::StatusOr<std::string> difference = Difference(-1, -1, "after all passes", &limit);
    if (!difference.ok()) return difference.status();
    const std::vector<PassLimit::Run> runs = limit->changed();
    result.passes = static_cast<int64_t>(runs.size());
    result.runs = runs_;
    result.uncompared = limit->redefined().ToString();
    result.compared = !runs.empty() && !expected_[0].empty() && !limit->redefined().IsAll();
    result.differs = !difference->empty();
    if (!result.differs) return result;

    // The results are equal after `good` of the runs that change the module, and differ after `bad`.
    size_t good = 0, bad = runs.size();
    result.difference = *difference;
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      difference = Difference(runs[middle - 1].number, -1,
                              StrCat("after ", middle, " of ", runs.size(), " passes that change the module"), &limit);
      if (!difference.ok()) return difference.status();
      (difference->empty() ? good : bad) = middle;
      if (!difference->empty()) result.difference = *difference;
    }
    const PassLimit::Run& run = runs[bad - 1];
    result.number = run.number;
    result.pass = run.pass;
    result.group = run.group;
    result.rewrites = run.rewrites;

    // As above, for the applications of rules.
    int64_t applied = 0, too_many = run.rewrites;
    while (too_many - applied > 1) {
      const int64_t middle = applied + (too_many - applied) / 2;
      difference = Difference(run.number, middle,
                              StrCat("after ", middle, " of ", run.rewrites, " rewrites of ", run.pass), &limit);
      if (!difference.ok()) return difference.status();
      (difference->empty() ? applied : too_many) = middle;
    }
    difference = Difference(run.number, run.rewrites > 0 ? too_many : -1, StrCat("after ", run.pass), &limit);
    if (!difference.ok()) return difference.status();
    if (run.rewrites > 0 && !difference->empty()) {
      result.rewrite = too_many;
      result.rule = limit->rewrites().rule;
      result.instruction = limit->rewrites().instruction;
    }
    if (limit->before()) result.before = ToString(*limit->before(), PrintOptions::Lossless());
    result.runs = runs_;
    return result;
  }

 private:
  absl::StatusOr<ResultSets> Evaluate(const Module& module, const PartitionTracker& partitions, std::string_view what) {
    if (options_.progress) options_.progress(what);
    ++runs_;
    return EvaluateOnFakeArguments(module, options_.run, &partitions);
  }

  const Module& module_;
  std::string_view pipeline_;
  const BisectionOptions& options_;
  ResultSets expected_;
  UncomparedResults unordered_;  // of special values
  int64_t runs_ = 0;
};

}  // namespace

absl::StatusOr<BisectionResult> BisectPasses(const Module& module, std::string_view pipeline,
                                             const BisectionOptions& options) {
  return Bisection(module, pipeline, options).Run();
}

absl::StatusOr<std::string> DifferenceAfter(const Module& module, std::string_view pipeline,
                                            const BisectionOptions& options) {
  Bisection bisection(module, pipeline, options);
  if (const absl::Status status = bisection.Prepare(); !status.ok()) return status;
  std::optional<PassLimit> limit;
  return bisection.Difference(-1, -1, "after the passes", &limit);
}

}  // namespace hlokit::interp
