// SPDX-License-Identifier: Apache-2.0
// Makes the CompiledComputation of one computation, instruction by instruction. Each opcode has a function of kernels.h
// that looks at the instruction and either describes its result as a view of values that exist, or adds a step with a
// kernel.
#ifndef HLOKIT_INTERP_EXACT_COMPILED_COMPUTATION_BUILDER_H_
#define HLOKIT_INTERP_EXACT_COMPILED_COMPUTATION_BUILDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "interp/exact/collective.h"
#include "interp/exact/program.h"
#include "interp/exact/view.h"
#include "ir/core/arena.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class ProgramBuilder;
class ScalarFunction;

// What is known of an asynchronous operation after one instruction of its chain.
struct AsyncChain {
  CompiledComputation* callee = nullptr;
  std::vector<View> arguments;               // bound so far, dense
  std::optional<std::vector<View>> results;  // once all are bound
};

class CompiledComputationBuilder {
 public:
  CompiledComputationBuilder(ProgramBuilder& program, CompiledComputation* routine);

  // Builds the whole routine: the live instructions of the computation in an order that respects operands and control
  // dependences. False if there was an error, which has been reported.
  bool Build();

  // ---- For the functions of kernels.h ----

  ProgramBuilder& program() { return program_; }
  Instruction instruction() const { return current_; }
  // Of the result: as declared, or with the types in which the instruction computes (SetResults converts then).
  Shape shape() const { return result_shape_; }
  // Array operand i, in the type in which the instruction computes.
  const View& operand(int64_t i) const {
    return operands_.empty() ? leaves(current_.operand(i))[0] : operands_[static_cast<size_t>(i)];
  }
  // All leaves of an operand's (or any earlier instruction's) value.
  absl::Span<const View> leaves(Instruction instruction) const;

  // Reports why the instruction cannot be evaluated.
  void Fail(std::string message);
  // Reports "expected EXPECTED; found OPCODE of (shapes of the operands) with result SHAPE".
  void FailMismatch(std::string_view expected);
  void Warn(std::string message);
  // Makes the run fail with this message if it comes to the instruction.
  void EmitTrap(std::string message);
  // Room in the routine for the strides of a view.
  const int64_t* NewStrides(absl::Span<const int64_t> strides, absl::Span<const int64_t> dims);

  // The same elements, dense: `view` itself, or the result of a copy (one copy per view, however often it is asked
  // for).
  View MakeDense(const View& view);
  // Appends the leaves of an operand, dense.
  void AppendDense(Instruction operand, std::vector<View>* views);

  // The result of the instruction is a view, or consists of these leaves.
  void SetResult(const View& view) { SetResults({&view, 1}); }
  void SetResults(absl::Span<const View> views);
  // The result is element `index` of an operand's tuple.
  void AliasResult(Instruction tuple, int64_t index);
  // Of the starts and updates of this routine so far, by instruction id.
  absl::flat_hash_map<uint32_t, AsyncChain>& async_chains() { return async_chains_; }
  // For views with dimensions that no instruction has.
  ShapeTable& program_shapes();

  // Adds a step whose results are the leaves of the instruction. `reuse` lists (operand, result) pairs: the kernel
  // works in place if it is given the operand's bytes as the result's. `elementwise`: it reads each element of each
  // operand before it writes the same element of the result, so other operands may be the same value.
  Thunk& Emit(Kernel kernel, std::unique_ptr<ThunkParams> plan, absl::Span<const View> operands,
              absl::Span<const InPlaceReuse> reuse = {}, bool elementwise = false);
  // The same with (0, 0), (1, 1), ... up to `count` for `reuse`.
  Thunk& EmitInPlace(Kernel kernel, std::unique_ptr<ThunkParams> plan, absl::Span<const View> operands, size_t count);
  // Adds a step with results of other shapes; returns the views of the results.
  std::vector<View> EmitTo(Kernel kernel, std::unique_ptr<ThunkParams> plan, absl::Span<const View> operands,
                           absl::Span<const Shape> results, absl::Span<const InPlaceReuse> reuse = {},
                           bool elementwise = false);
  // A step that calls `callee`, with results of these shapes. Operands must be dense.
  std::vector<View> EmitCall(CompiledComputation* callee, absl::Span<const View> operands,
                             absl::Span<const Shape> results);
  // A step at which devices meet, with results of these shapes. Operands must be dense.
  std::vector<View> EmitCollective(std::unique_ptr<CollectivePlan> plan, absl::Span<const View> operands,
                                   absl::Span<const Shape> results);
  // A step of another kind. Operands must be dense.
  Thunk& EmitControl(ThunkKind kind, std::unique_ptr<ThunkParams> plan, absl::Span<const View> operands);

  // A slot with contents that outlive all runs.
  View Constant(Shape shape, const std::byte* data);
  // An array of zeros, or another leaf without contents.
  View Zeros(Shape shape);

  void PrepareParameter();
  void PrepareConstant();

 private:
  bool Visit(Instruction root);
  bool Prepare(Instruction instruction);
  // Shows the value of the instruction at hand, whose slots begin at `first_slot` unless it is made of earlier ones.
  void EmitObservation(uint32_t first_slot);
  uint32_t NewSlots(absl::Span<const Shape> leaves);
  Thunk& AddThunk(absl::Span<const View> operands);
  bool CheckLeaves(Instruction instruction);
  // Finds operand() and shape() for an instruction of mixed types; see mixed_precision.h. False after an error.
  bool FitTypes();
  std::vector<View> AsDeclared(absl::Span<const View> views);
  // Moves steps that need not run in every call to the front.
  void HoistInvariantThunks();
  // Fills releases and end_releases and keeps the InPlaceReuse entries that hold.
  void ComputeLastUses();

  struct PendingReuse {
    uint32_t step;
    InPlaceReuse reuse;
  };

  ProgramBuilder& program_;
  CompiledComputation* routine_;
  Instruction current_;
  Shape result_shape_;
  std::vector<View> operands_;  // of current_ where they were converted; else empty
  std::vector<View> views_;     // of all instructions, each a run
  absl::flat_hash_map<std::tuple<uint32_t, const int64_t*, int64_t>, View> dense_copies_;  // by slot, strides, offset
  absl::flat_hash_map<const ShapeRecord*, std::vector<uint32_t>> element_begins_;  // leaf where each element begins
  absl::flat_hash_map<uint32_t, AsyncChain> async_chains_;
  std::vector<PendingReuse> reuses_;
  std::vector<size_t> parameter_begins_;  // first leaf of each parameter in CompiledComputation::parameters
  bool failed_ = false;
};

// Leaves of `shape` that a run holds in slots; buffers count as the array they hold.
void AppendLeaves(Shape shape, std::vector<Shape>* leaves);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_COMPILED_COMPUTATION_BUILDER_H_
