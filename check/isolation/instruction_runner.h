// SPDX-License-Identifier: Apache-2.0
// Runs single instructions of a module, or parts of it, on given values.
#ifndef HLOKIT_CHECK_ISOLATION_INSTRUCTION_RUNNER_H_
#define HLOKIT_CHECK_ISOLATION_INSTRUCTION_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/program/engine_table.h"
#include "interp/reference/evaluator.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "passes/query/extract.h"

namespace hlokit::interp {

// Whether an instruction can run on the values of its operands alone, and if not, why.
enum class Runnable : uint8_t {
  kYes,
  kNothing,      // it computes nothing: parameters, constants, tuples; what a call, loop or conditional runs is run by
                 // itself
  kDevices,      // its value depends on other devices, or on which one runs it
  kSideEffects,  // it has side effects, is a part of an asynchronous operation, or reads or returns a token
  kDynamic,      // sizes of its dimensions are not in the values of its operands
};
std::string_view ToString(Runnable runnable);

// Returns copies of the leaves of a value, as an ExecutionObserver receives them.
std::vector<Literal> LeavesOf(Shape shape, absl::Span<const std::byte* const> data);

// Returns an estimate of the elements that the reference evaluator visits in one execution of an instruction. Loops
// count as one iteration.
double WorkOf(Instruction instruction);

// One run at a time. The module must outlive it unchanged.
class InstructionRunner {
 public:
  // The options apply to each run of an instruction; it is observed by nobody, and runs on one device. In engines with
  // a form of code for single instructions (EngineRow::prepare_alone) it has that if `alone`, and is otherwise prepared
  // as the small program that it is.
  InstructionRunner(const Module& module, EngineKind engine, const EvaluatorOptions& options, bool alone = false);

  // Classifies an instruction. A loop, call or conditional is kNothing.
  Runnable Classify(Instruction instruction) const;
  // Classifies an instruction that a part has: loops, calls and conditionals run in it.
  Runnable ClassifyInPart(Instruction instruction) const;

  // Evaluates an instruction on the leaves of its operands, one after another. Requires: it is Runnable::kYes.
  absl::StatusOr<std::vector<Literal>> Run(Instruction instruction, absl::Span<const Literal> operands);
  // Evaluates a part of the module on the leaves of its inputs, one after another.
  // `engine`, if not null, keeps what is prepared for further runs of this part: null before the first.
  absl::StatusOr<std::vector<Literal>> RunPart(const query::Part& part, absl::Span<const Literal> inputs,
                                               std::unique_ptr<Engine>* engine = nullptr);

 private:
  // An instruction that runs repeatedly.
  struct Prepared {
    std::unique_ptr<query::Part> part;
    std::unique_ptr<Engine> engine;
    std::vector<size_t> leaves;  // of the inputs: leaf of the operands, by leaf of the parameters
  };
  absl::StatusOr<Prepared> Prepare(Instruction instruction) const;
  std::unique_ptr<Engine> PrepareModule(const Module& module, DiagnosticSink* sink) const;

  const Module& module_;
  const EngineKind engine_;
  const bool alone_;
  EvaluatorOptions options_;
  std::vector<Runnable> computations_;                // by ComputationId: kYes if all of it can run
  std::unique_ptr<reference::Evaluator> plain_;       // if the engine defines the values
  absl::flat_hash_map<uint32_t, Prepared> prepared_;  // by instruction id
};

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_INSTRUCTION_RUNNER_H_
