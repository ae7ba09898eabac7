// SPDX-License-Identifier: Apache-2.0
// Checks that passes preserve values: runs the module before and after them on synthetic arguments.
#ifndef HLOKIT_CHECK_EQUIVALENCE_EQUIVALENCE_CHECK_H_
#define HLOKIT_CHECK_EQUIVALENCE_EQUIVALENCE_CHECK_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "check/comparison/value_comparison.h"
#include "check/equivalence/partition_tracker.h"
#include "interp/interface/execution_observer.h"
#include "ir/types/literal.h"
#include "passes/core/pass_instrumentation.h"
#include "passes/instrumentation/dependent_results.h"

namespace hlokit::interp {

// Returns the distance of 1 and the next larger value of the type, or of the parts of complex numbers; 0 for integers.
double EpsilonOf(ElementType type);

// The tolerance of a pass: bounds for each element type. Integers and pred must always be equal.
class Tolerance {
 public:
  // For passes that declare the tolerance `declared` (PassInfo), 0 if they declare none: rounding errors of 4 ulps of
  // f64 and f32, 2 of f16 and bf16, 1 of narrower types; and a relative and an absolute error of `declared`, but at
  // least as many epsilons of the type.
  static Tolerance OfPass(double declared);
  // The same for all floating-point and complex types.
  static Tolerance OfAllTypes(const ErrorSpec& spec);
  // Parses "X", a relative error for all types; an ErrorSpec ("rel:1e-3,abs:1e-6"); and `;` between those of types, as
  // in "f32=1e-4;bf16=rel:1e-2,abs:1e-2;1e-3", where the one without a type is for all others.
  static absl::StatusOr<Tolerance> Parse(std::string_view text);

  ErrorSpec Of(ElementType type) const;

 private:
  std::optional<double> declared_;
  std::optional<ErrorSpec> others_;
  std::vector<std::pair<ElementType, ErrorSpec>> types_;
};

// Returns a description of the largest difference between results that is not within the tolerance, or "".
std::string CompareResults(absl::Span<const Literal> before, absl::Span<const Literal> after,
                           const Tolerance& tolerance);

struct EquivalenceOptions {
  // Arguments come in `inputs` sets, generated from seed, seed + 1, ... (MakeFakeArguments), which depend only on
  // shapes.
  int64_t inputs = 1;
  uint64_t seed = 0;
  // One more set, in which half of the elements are NaN, infinities, zeros of either sign, denormals and the largest
  // and smallest numbers of the type (FillSpecial).
  bool special_values = false;
  // Values of parameters by name, which those of the same shape have instead in all sets but that one. May be null.
  std::shared_ptr<const std::map<std::string, Literal, std::less<>>> given;
  std::optional<Tolerance> tolerance;                       // by default that of the passes so far
  double max_seconds = 60;                                  // of one run
  std::string_view max_seconds_flag = "--run-max-seconds";  // names that limit in messages
  int64_t max_steps = std::numeric_limits<int64_t>::max();  // of one run: instructions
};

// The results of a module for each set of arguments, those of one device after another.
using ResultSets = std::vector<std::vector<Literal>>;

// Runs a module on as many replicas and partitions as its header has; if `partitions` follows it, a whole program on
// one partition, and a partitioned one with the arguments and results of the whole (padding is NaN in the first set,
// then the largest number, then zero). The observer, if any, sees the values that `request` selects.
absl::StatusOr<ResultSets> EvaluateOnFakeArguments(const Module& module, const EquivalenceOptions& options,
                                                   const PartitionTracker* partitions = nullptr,
                                                   const ObservationRequest& request = {},
                                                   ExecutionObserver* observer = nullptr);

// Returns the values of the entry's instructions in a run on the first set of arguments, by instruction: small arrays;
// others, and all if the module has several devices or cannot be run, are empty literals.
std::vector<Literal> RecordEntryValues(const Module& module, const EquivalenceOptions& options);

// Evaluates the module before the first pass and after each pass that changed it, on as many replicas and partitions as
// its header has, and compares the results. A program with shardings that is not partitioned runs on one partition
// until a pass partitions it. Results that depend on opcodes that a pass redefines may change once, after that pass; of
// the special values, those that depend on a sort in which NaN has no place may always change. Summary says so.
class EquivalenceCheck : public PassInstrumentation {
 public:
  explicit EquivalenceCheck(EquivalenceOptions options) : options_(std::move(options)) {}

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

  // Returns what was compared, in a line without a newline.
  std::string Summary() const;
  // Returns which results were not compared, and why: "1 of 2 results not compared: depends on rng". "": all were.
  std::string Uncompared() const;

 private:
  std::string NameOfSet(size_t set) const;
  bool IsSpecial(size_t set) const { return static_cast<int64_t>(set) >= options_.inputs; }

  EquivalenceOptions options_;
  double declared_ = 0;  // largest tolerance of the passes that ran
  bool evaluated_ = false;
  std::optional<PartitionTracker> partitions_;
  UncomparedResults redefined_;      // by the current pass
  UncomparedResults all_redefined_;  // by the passes that changed the module
  UncomparedResults unordered_;      // of special values
  ResultSets results_;
  int64_t passes_ = 0, compared_ = 0;  // passes that ran, and that changed the module
  ValueDifference largest_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_EQUIVALENCE_EQUIVALENCE_CHECK_H_
