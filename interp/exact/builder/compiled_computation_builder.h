// SPDX-License-Identifier: Apache-2.0
// Builds the CompiledComputation of one computation, instruction by instruction. Each opcode has a function of
// kernels.h that either represents the result as a view of existing values, or adds a thunk with a kernel.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_COMPILED_COMPUTATION_BUILDER_H_
#define HLOKIT_INTERP_EXACT_BUILDER_COMPILED_COMPUTATION_BUILDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "interp/exact/builder/collective.h"
#include "interp/exact/builder/kernel_provider.h"
#include "interp/exact/program/exact_fwd.h"
#include "interp/exact/program/program.h"
#include "interp/exact/program/view.h"
#include "ir/core/arena.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// The leaves of one value, mostly a single array.
using ViewList = absl::InlinedVector<View, 2>;

// State of an asynchronous operation after one instruction of its chain.
struct AsyncChain {
  CompiledComputation* callee = nullptr;
  std::vector<View> arguments;      // bound so far, dense
  std::optional<ViewList> results;  // set once all are bound
};

class CompiledComputationBuilder {
 public:
  CompiledComputationBuilder(ProgramBuilder& program, CompiledComputation* compiled);

  // Builds the compiled computation from the live instructions in an order that respects operands and control
  // dependences. Returns false after an error, which has been reported.
  bool Build();

  // ---- For the functions of kernels.h ----

  ProgramBuilder& program() { return program_; }
  Instruction instruction() const { return current_; }
  Computation computation() const { return compiled_->computation; }
  // Returns the result shape: as declared, or with the types in which the instruction computes (SetResults converts).
  Shape shape() const { return result_shape_; }
  // Returns array operand i in the type in which the instruction computes.
  const View& operand(int64_t i) const {
    return operands_.empty() ? leaves(current_.operand(i))[0] : operands_[static_cast<size_t>(i)];
  }
  // Returns all leaves of the value of an operand or earlier instruction.
  absl::Span<const View> leaves(Instruction instruction) const;

  // Reports that the instruction cannot be evaluated, and why.
  void Fail(std::string message);
  // Reports "expected EXPECTED; found OPCODE of (shapes of the operands) with result SHAPE".
  void FailMismatch(std::string_view expected);
  void Warn(std::string message);
  // Emits a trap: the run fails with this message if it reaches the instruction.
  void EmitTrap(std::string message);
  // Allocates the strides of a view in the compiled computation.
  const int64_t* NewStrides(absl::Span<const int64_t> strides, absl::Span<const int64_t> dims);

  // Returns a dense view of the same elements: `view` itself, or a copy. Copies are cached per view.
  View MakeDense(const View& view);
  // Appends dense leaves of an operand.
  void AppendDense(Instruction operand, std::vector<View>* views);

  // Sets the result to a view, or to these leaves.
  void SetResult(const View& view) { SetResults({&view, 1}); }
  void SetResults(absl::Span<const View> views);
  // Sets the result to element `index` of an operand's tuple.
  void AliasResult(Instruction tuple, int64_t index);
  // Returns the asynchronous starts and updates built so far, by instruction id.
  absl::flat_hash_map<uint32_t, AsyncChain>& async_chains() { return async_chains_; }
  // Returns the shape table for views with shapes that no instruction has.
  ShapeTable& program_shapes();

  // Emits a thunk whose results are the leaves of the instruction. `reuse`: (operand, result) pairs that the kernel can
  // compute in place. `elementwise`: the kernel reads each element of each operand before it writes the same element of
  // the result, so that other operands may be the same value.
  Thunk& Emit(Kernel kernel, std::unique_ptr<ThunkParams> params, absl::Span<const View> operands,
              absl::Span<const InPlaceReuse> reuse = {}, bool elementwise = false);
  // Emits a thunk with `reuse` = (0, 0), (1, 1), ... up to `count`.
  Thunk& EmitInPlace(Kernel kernel, std::unique_ptr<ThunkParams> params, absl::Span<const View> operands, size_t count);
  // Emits a thunk with results of the given shapes and returns their views.
  ViewList EmitTo(Kernel kernel, std::unique_ptr<ThunkParams> params, absl::Span<const View> operands,
                  absl::Span<const Shape> results, absl::Span<const InPlaceReuse> reuse = {}, bool elementwise = false);
  // Emits a call of `callee` with results of these shapes. Requires: dense operands.
  ViewList EmitCall(CompiledComputation* callee, absl::Span<const View> operands, absl::Span<const Shape> results);
  // Emits a collective with results of these shapes. Requires: dense operands.
  ViewList EmitCollective(std::unique_ptr<CollectiveParams> params, absl::Span<const View> operands,
                          absl::Span<const Shape> results);
  // Emits a thunk of another kind. `more`: shapes of results that are not leaves of the instruction. Requires: dense
  // operands.
  Thunk& EmitControl(ThunkKind kind, std::unique_ptr<ThunkParams> params, absl::Span<const View> operands,
                     absl::Span<const Shape> more = {});
  // Lets the thunk emitted last leave the body of a loop that does not change its operand. Requires: one operand and
  // one result.
  void LeaveLoops() { compiled_->thunks.back().leaves_loops = true; }
  // Emits a thunk that left the body of a loop, whose operand is `leaf` of the loop's state.
  View EmitMoved(const MovedThunk& moved, View leaf);
  // Returns true if the array is an element of the state of a loop whose body, which is this computation, returns it as
  // it is.
  bool IsUnchangedInLoop(const View& view) const;

  // Returns a slot whose contents outlive all runs.
  View Constant(Shape shape, const std::byte* data);
  // Returns the first element of a view of a constant; null for other views.
  const std::byte* ConstantData(const View& view) const {
    const std::byte* const data = compiled_->slots[view.slot].constant;
    return data == nullptr ? nullptr : data + view.offset;
  }
  // Keeps memory as long as the program.
  void Own(std::shared_ptr<void> memory);
  // Returns an array of zeros, or a leaf without contents.
  View Zeros(Shape shape);

  // For KernelProvider::PrepareGroup: makes a member of the group the instruction whose results are set.
  void set_instruction(Instruction member) {
    current_ = member;
    result_shape_ = member.shape();
    operands_.clear();
  }

  void PrepareParameter();
  void PrepareConstant();

 private:
  bool Visit(Instruction root);
  // Asks the kernel provider for groups of the live instructions.
  void MakeGroups();
  // Prepares an instruction or, if it is a member of a group, the group.
  bool PrepareVisited(Instruction instruction);
  bool Prepare(Instruction instruction);
  bool IsObserved(Instruction instruction) const;
  // Returns true if the instruction is prepared.
  bool HasViews(Instruction instruction) const;
  // Emits an observation of the current instruction's value. Its slots begin at `first_slot` unless the value consists
  // of earlier ones.
  void EmitObservation(uint32_t first_slot);
  // Emits an observation of a group that is prepared, if one of its members is to be shown with it.
  void ObserveGroup(const InstructionGroup& group);
  // Emits a thunk that shows values and operands.
  ObserveParams& EmitObservation(absl::Span<const View> values, absl::Span<const View> operands);
  uint32_t NewSlots(absl::Span<const Shape> leaves);
  Thunk& AddThunk(absl::Span<const View> operands);
  bool CheckLeaves(Instruction instruction);
  // Converts operand() and shape() of a mixed-precision instruction; see mixed_precision.h. Returns false after an
  // error.
  bool FitTypes();
  ViewList AsDeclared(absl::Span<const View> views);
  // Removes thunks that leave the loop, and passes their results on in the loop's state.
  void MoveThunksOut();
  // Moves call-invariant thunks to the front.
  void HoistInvariantThunks();
  // Computes releases and end_releases, and drops InPlaceReuse entries that are not valid.
  void ComputeLastUses();
  // Marks the large results of the entry computation, which are computed in the memory of literals.
  void MarkResults();

  struct VisitEntry {
    Instruction instruction;
    size_t next_dependency;
  };
  struct PendingReuse {
    uint32_t thunk;
    InPlaceReuse reuse;
  };

  ProgramBuilder& program_;
  CompiledComputation* compiled_;
  Instruction current_;
  Shape result_shape_;
  std::vector<View> operands_;         // operands of current_ if converted, else empty
  std::vector<Shape> operand_shapes_;  // scratch of FitTypes
  std::vector<VisitEntry> visits_;     // the stack of Visit
  // Of the kernel provider; dependencies[i]: operands and control predecessors of the group's members from outside.
  std::vector<InstructionGroup> groups_;
  std::vector<std::vector<Instruction>> dependencies_;
  absl::flat_hash_map<uint32_t, uint32_t> group_of_;  // by instruction id
  std::vector<View> views_;                           // of all instructions, contiguous for each
  // By slot, strides, offset and shape.
  absl::flat_hash_map<std::tuple<uint32_t, const int64_t*, int64_t, const ShapeRecord*>, View> dense_copies_;
  absl::flat_hash_map<Dims, const int64_t*> strides_;                              // of NewStrides
  absl::flat_hash_map<const ShapeRecord*, std::vector<uint32_t>> element_begins_;  // first leaf of each element
  absl::flat_hash_map<uint32_t, AsyncChain> async_chains_;
  std::vector<PendingReuse> reuses_;
  std::vector<size_t> parameter_begins_;  // first leaf of each parameter in CompiledComputation::parameters
  bool failed_ = false;
};

// Appends the leaves of `shape` that a run stores in slots. A buffer counts as its array.
void AppendLeaves(Shape shape, std::vector<Shape>* leaves);

// Returns the bytes of the value of a leaf; -1 if they overflow or are not bounded.
int64_t BytesOfLeaf(Shape leaf);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_COMPILED_COMPUTATION_BUILDER_H_
