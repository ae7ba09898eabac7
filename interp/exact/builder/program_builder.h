// SPDX-License-Identifier: Apache-2.0
// Prepares an entry computation: a CompiledComputation for each computation it reaches, callees first.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_PROGRAM_BUILDER_H_
#define HLOKIT_INTERP_EXACT_BUILDER_PROGRAM_BUILDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "interp/custom_calls/custom_calls.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/program/program.h"
#include "interp/exact/program/view.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/arena.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/graph/side_effects.h"

namespace hlokit::interp {

// Those of the runs; num_threads is at least 1.
struct PrepareOptions : EvaluatorOptions {
  KernelProvider* kernels = nullptr;  // null: all kernels are exact
  // Collectives that start end at their done.
  bool among_processes() const { return world != nullptr; }
};

// The prepared form of a module.
struct PreparedProgram {
  const Module* module = nullptr;
  Arena arena;                                   // strides
  std::vector<std::unique_ptr<Literal>> filled;  // values of elided constants
  std::vector<std::shared_ptr<void>> owned;      // memory of other constants
  std::vector<std::unique_ptr<CompiledComputation>> computations;
  std::vector<std::unique_ptr<ScalarFunction>> functions;
  CompiledComputation* entry = nullptr;
};

class ProgramBuilder {
 public:
  ProgramBuilder(const Module& module, const PrepareOptions& options, DiagnosticSink* sink, PreparedProgram* program);

  // Prepares `entry` and its callees.
  bool Build(Computation entry);

  // ---- For CompiledComputationBuilder ----

  const Module& module() const { return module_; }
  const PrepareOptions& options() const { return options_; }
  DiagnosticSink& sink() { return *sink_; }
  PreparedProgram& program() { return *program_; }
  // Returns the prepared callee; null if there is none (in a module that was not verified).
  CompiledComputation* CompiledComputationOf(Computation computation) const;
  // Returns the callee as a function of scalars; null if its parameters or results are not scalars.
  ScalarFunction* FunctionOf(Computation computation) const;
  // Returns the callee as a function of scalars of these types, which it converts from and to floating-point types of
  // its own; null if others differ.
  const ScalarFunction* FunctionOf(Computation computation, absl::Span<const ElementType> parameters,
                                   absl::Span<const ElementType> results);
  const SideEffects& effects() const { return effects_; }
  // Returns true if an instruction calls it, so that it may run many times.
  bool is_called(Computation computation) const { return called_[computation.id().value] > 0; }
  // Returns true for the body of one loop that nothing else calls, nor its condition.
  bool is_body_of_one_loop(Computation computation) const { return body_of_one_loop_[computation.id().value]; }
  // Returns the contents of a constant, with elided ones filled as the options specify; null after an error.
  const std::byte* ConstantData(Instruction instruction, LiteralId literal);
  void Error(DiagnosticKind kind, Instruction at, std::string message);

  // Returns the first view of each instruction in the current CompiledComputationBuilder.
  std::vector<uint32_t>& first_view() { return first_view_; }
  // Returns the number of leaves of a value of this shape in a run. (Shape::leaf_count counts an empty tuple as one.)
  // Requires: CountLeaves, which returns false if the shape has too many leaves to traverse.
  int64_t LeafCount(Shape shape) { return shape.IsTuple() ? leaf_counts_[shape.record()] : 1; }
  bool CountLeaves(Shape shape);
  // Adds to the total number of views. Returns false beyond a limit, since tuples may share leaves without bound.
  bool CountViews(int64_t n);

 private:
  const Module& module_;
  const PrepareOptions& options_;
  DiagnosticSink* sink_;
  PreparedProgram* program_;
  std::vector<uint32_t> called_;                               // number of calls by computation id
  std::vector<bool> body_of_one_loop_;                         // by computation id
  std::vector<CompiledComputation*> compiled_computation_of_;  // by computation id
  std::vector<ScalarFunction*> function_of_;                   // by computation id
  const SideEffects effects_;
  std::vector<uint32_t> first_view_;                              // by instruction id
  absl::flat_hash_map<uint32_t, const std::byte*> filled_;        // by literal id
  absl::flat_hash_map<const ShapeRecord*, int64_t> leaf_counts_;  // of tuples
  int64_t views_ = 0;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_PROGRAM_BUILDER_H_
