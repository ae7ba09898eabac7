// SPDX-License-Identifier: Apache-2.0
// Finds the instructions to blame for different results: each is run by itself, on the values that its operands had in
// a run, so that the errors of one do not reach those after it.
#ifndef HLOKIT_CHECK_ISOLATION_ISOLATION_H_
#define HLOKIT_CHECK_ISOLATION_ISOLATION_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "check/comparison/value_comparison.h"
#include "check/equivalence/equivalence_check.h"
#include "check/isolation/fast_tolerance.h"
#include "check/isolation/instruction_runner.h"
#include "interp/interface/execution_observer.h"
#include "interp/program/engine_table.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

struct IsolationOptions {
  EvaluatorOptions run;  // limits and modes of each run of an instruction
  // Fusions are run whole; otherwise the instructions in them.
  bool whole_fusions = false;
  // Unset: between engines and for recorded values of the same module EngineTolerance, otherwise Tolerance::OfPass(0).
  std::optional<Tolerance> tolerance;
  int64_t max_executions = std::numeric_limits<int64_t>::max();  // of each instruction: the first ones
  double max_work = 1e9;                                         // of one execution (WorkOf)
  // Of instructions that are equal but for the values of their operands, the first that runs stands for all.
  bool distinct = false;
  // Seconds after which nothing more is compared: in engines from the beginning of the run, which ends then; in modules
  // from the end of the recorded run.
  double max_seconds = std::numeric_limits<double>::infinity();
};

// An instruction whose values differ.
struct IsolatedDifference {
  Instruction instruction;
  int64_t executions = 0;       // that were compared
  int64_t different = 0;        // of these
  int64_t worst_execution = 1;  // from 1
  ValueDifference worst;        // of that execution; nothing if there is an error
  std::string error;            // of the run of the instruction, if it failed
};

// Why an executed instruction was not compared.
enum class Omission : uint8_t {
  kDevices,
  kSideEffects,
  kDynamic,
  kWork,
  kNotRecorded,
  kNoCounterpart,
  kRepeated,  // IsolationOptions::distinct
  kTime,      // IsolationOptions::max_seconds
};
inline constexpr size_t kOmissions = 8;
// Returns "depends on devices", "more work than the limit", ...
std::string_view ToString(Omission omission);

struct IsolationResult {
  int64_t instructions = 0;                     // that were compared,
  int64_t executions = 0;                       // and how often in all
  std::array<int64_t, kOmissions> omitted{};    // instructions that were not compared, by reason
  int64_t intermediate = 0;                     // instructions that differ, but not what is computed from them
  std::vector<IsolatedDifference> differences;  // worst first: errors, then by distance in ulps, then in module order
  bool equal() const { return differences.empty(); }
};

// Collects the outcome of comparisons.
class IsolationTally {
 public:
  explicit IsolationTally(const Module& module) : module_(module), rows_(module.instruction_id_bound(), -1) {}

  void Omit(Instruction instruction, Omission why);
  // Returns true if the instruction was compared or omitted.
  bool Has(Instruction instruction) const;
  // Compares one execution. Returns true if it matches.
  bool Compare(Instruction instruction, int64_t execution, absl::Span<const Literal> actual,
               absl::Span<const Literal> expected, const std::function<ErrorSpec(const Literal&)>& tolerance_of);
  void Fail(Instruction instruction, int64_t execution, std::string error);
  // Forgets the differences of an instruction: they do not matter.
  void Absolve(Instruction instruction);
  IsolationResult Finish();

 private:
  IsolatedDifference& RowOf(Instruction instruction);

  const Module& module_;
  std::vector<int64_t> rows_;  // by instruction id; -1: none
  std::vector<IsolatedDifference> all_;
  std::vector<uint8_t> omitted_;  // by instruction id, 1 + Omission
  std::vector<uint8_t> absolved_;
};

// What limits how much is compared: the options `distinct` and `max_seconds`.
class IsolationBudget {
 public:
  explicit IsolationBudget(const IsolationOptions& options)
      : distinct_(options.distinct), max_seconds_(options.max_seconds), begin_(std::chrono::steady_clock::now()) {}

  // Returns true if the time is over. It is over then for good.
  bool IsOver();
  // Returns true if a part (query::ExtractPart) is to be compared: it is the first of its kind, or all are.
  bool Admits(const Module& part);

 private:
  const bool distinct_;
  const double max_seconds_;
  const std::chrono::steady_clock::time_point begin_;
  bool over_ = false;
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> seen_;  // fingerprints
};

// Observes a run of one engine and runs each instruction on its operands in another one: those of a row of the table
// and of EngineRow::compared_with. Holds the values of one instruction at a time. In the result `actual` is of the
// engine that is held to the other, HeldEngine.
class EngineIsolation : public ExecutionObserver {
 public:
  // `engine` is the one that is asked about.
  EngineIsolation(const Module& module, EngineKind engine, const IsolationOptions& options);

  // The engine of the observed run: the one that is asked about, unless it has other code for single instructions.
  static EngineKind ObservedEngine(EngineKind engine) {
    return RowOf(engine).prepare_alone != nullptr ? RowOf(engine).compared_with : engine;
  }
  // The engine that is held to the one that it is compared with. Of one that defines the values, and the engine that it
  // is compared with, the second, whichever was asked about.
  static EngineKind HeldEngine(EngineKind engine) {
    return RowOf(engine).defines_values ? RowOf(engine).compared_with : engine;
  }

  // What to observe.
  ObservationRequest Request() const;
  absl::Status OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override;
  // Returns true if the run was ended because the time was over: it then has an error.
  bool is_out_of_time() const { return out_of_time_; }
  IsolationResult Finish();

 private:
  const Module& module_;
  const EngineKind engine_;
  const IsolationOptions options_;
  InstructionRunner runner_;
  FastTolerance fast_tolerance_;
  IsolationTally tally_;
  IsolationBudget budget_;
  std::vector<int64_t> executions_;  // by instruction id
  std::vector<bool> repeated_;       // by instruction id: not of the first of its kind
  bool out_of_time_ = false;
};

// Returns, by computation id, whether its instructions are run by themselves: not in fusions that are run whole, and
// not in functions of elements.
std::vector<bool> IsolatedComputations(const Module& module, bool whole_fusions);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_ISOLATION_H_
