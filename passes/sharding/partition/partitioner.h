// SPDX-License-Identifier: Apache-2.0
// Partitions one computation after the other: each is written anew for one device, operands first, and the old ones are
// erased at the end. A value is known by the leaves of its shape; tuples are made only where an instruction needs one.
// Internal to this room.
//
//   partitioner.cc     values, shardings, what all handlers use; the handler of each opcode
//   by_rule.cc         operations that are divided along the factors of their sharding rule
//   indexed.cc         gather, scatter and dynamic slices
//   update_window.cc   dynamic-update-slices at constant places
//   windows.cc         windows along divided dimensions
//   scan.cc            scans
//   top_k.cc           selections of the first elements
//   gathered_reduce.cc reductions whose partial results are gathered
//   multi_slice.cc     custom-calls of several windows of one array
//   select_and_scatter.cc  select-and-scatter along divided dimensions
//   ragged_dot.cc      ragged dots with groups of a divided batch
//   retile.cc          moves between parts whose borders differ, and reshapes between them
//   windowed_dot.cc    dots as loops over parts that travel
//   local_op.cc        such an operation on one device: attributes of the sizes of a part, masks of padding
//   control_flow.cc    loops, conditionals, calls, tuples
//   sources.cc         parameters, constants, iotas, random numbers, infeed and outfeed, custom-calls
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_PARTITIONER_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_PARTITIONER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/sharding/partition/emitter.h"
#include "passes/sharding/partition/factor_choice.h"
#include "passes/sharding/partition/partition_remarks.h"
#include "passes/sharding/partition/partition_warnings.h"
#include "passes/sharding/partition/spmd_partitioner.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::spmd {

inline constexpr int64_t kMaxDevices = int64_t{1} << 20;  // groups list them

// The rows of opcode_partition_handlers.def.
enum class PartitionHandler : uint8_t {
  kByRule,      // along the factors of the sharding rule
  kWhole,       // all operands on every device, the result cut
  kUnchanged,   // of code for one device: operands and result as they are
  kForwarding,  // the first operand
  kBarrier,     // all leaves of the operand
  kCall,
  kConditional,
  kConstant,
  kCopy,
  kCustomCall,
  kGetTupleElement,
  kInfeed,
  kIota,
  kOutfeed,
  kParameter,
  kRng,
  kTuple,
  kWhile,
};

// One leaf of a value: an array, of which `id` is the part of this device; or a token.
struct Leaf {
  InstructionId id;
  Shape shape;  // whole
  TilingRef tiling = nullptr;
  Instruction source = Instruction();  // a constant or iota, of which any device can make any part; invalid: none
  int64_t owner = -1;                  // the device whose value counts; -1: all have it
};
using Value = absl::InlinedVector<Leaf, 1>;
using LeafTilings = std::vector<TilingRef>;

// A computation to be written for one device.
struct ComputationJob {
  ComputationId source, target;
  std::vector<LeafTilings> parameters;  // by parameter
  LeafTilings root;
};

class ModulePartitioner {
 public:
  ModulePartitioner(Module& module, const PartitionOptions& options)
      : module_(module), options_(options), state_(&module), warnings_(&module), remarks_(&module, options.remarks) {
    state_.records_reshards = remarks_.enabled();
  }

  absl::StatusOr<PartitionCounts> Run();

  ModuleState& state() { return state_; }
  Module& module() { return module_; }
  const PartitionOptions& options() const { return options_; }
  PartitionCounts& counts() { return counts_; }
  PartitionWarnings& warnings() { return warnings_; }
  PartitionRemarks& remarks() { return remarks_; }

  // Returns the computation that `source` becomes for parameters and root of these tilings. It is written later.
  ComputationId Variant(ComputationId source, std::vector<LeafTilings> parameters, LeafTilings root);
  // Returns the tilings of the leaves that the sharding of an instruction gives; nullopt if it has none.
  std::optional<LeafTilings> GivenTilings(Instruction i) { return GivenTilings(i, i.shape()); }
  // As if the instruction had this shape: an outfeed has the sharding of its operand, and of its leaves and more.
  std::optional<LeafTilings> GivenTilings(Instruction i, Shape shape);
  // Returns the device that alone has a leaf; nullopt if several have.
  std::optional<int64_t> OnlyDevice(Instruction i, size_t leaf) const;
  // Returns the device that alone has all of it.
  std::optional<int64_t> OnlyDevice(Instruction i) const;
  // Gives the new instruction the name of the old one, when that is gone.
  void TakeName(InstructionId to, Instruction from) { names_.emplace_back(to, module_.record(from.id()).name); }

 private:
  void EraseOld(const std::vector<ComputationId>& before);
  void UpdateEntryLayout();
  void EraseUnused(ComputationId computation);

  Module& module_;
  const PartitionOptions& options_;
  ModuleState state_;
  PartitionCounts counts_;
  PartitionWarnings warnings_;
  PartitionRemarks remarks_;
  std::deque<ComputationJob> jobs_;
  std::map<std::tuple<uint32_t, std::vector<LeafTilings>, LeafTilings>, ComputationId> variants_;
  std::map<std::pair<uint32_t, uint32_t>, LeafTilings> given_;  // by sharding and shape
  std::vector<std::pair<InstructionId, StringId>> names_;
};

class ComputationPartitioner {
 public:
  ComputationPartitioner(ModulePartitioner* owner, const ComputationJob& job)
      : owner_(*owner), module_(owner->module()), state_(owner->state()), job_(job), emitter_(&state_, job.target) {}

  absl::Status Run();

 private:
  Builder& builder() { return emitter_.builder(); }

  // ---- partitioner.cc ----
  absl::Status Dispatch(Instruction i);
  const Value& ValueOf(Instruction i) const { return values_.at(i.id().value); }
  const Leaf& LeafOf(Instruction i) const { return ValueOf(i)[0]; }
  // Returns the tilings that the value of `i` must have: those of its sharding; without one, replicated among the
  // devices that have the same code.
  LeafTilings WantedTilings(Instruction i);
  // Returns the tiling of an operand that is code for one device, or for those of a manual subgroup; replicated if none
  // is.
  TilingRef ManualContext(Instruction i);
  // Returns true for a collective of a manual subgroup among devices that have the same part of its operand: it can run
  // on the parts.
  bool CommunicatesWithinParts(Instruction i) const;
  // Returns a tiling that names no manual axes with those of the context.
  TilingRef Completed(TilingRef given, TilingRef context, int64_t rank);
  // Returns the tiling of an array that all devices of the same manual subgroup as `context` have whole.
  TilingRef Unsharded(TilingRef context, int64_t rank);
  InstructionId Reshard(const Leaf& leaf, TilingRef to) {
    if (leaf.source.valid() && to != leaf.tiling && IsMade(*leaf.tiling) && IsMade(*to)) {
      return MakePart(leaf.source, to);
    }
    if (const InstructionId part = PartByHalo(leaf, to); part.valid()) return part;
    return emitter_.Reshard(leaf.id, leaf.shape, leaf.tiling, to);
  }
  static bool IsUnreduced(const Tiling& tiling) {
    return tiling.kind == ShardingKind::kUnreduced || (tiling.tiled() && !tiling.unreduced.empty());
  }
  // Returns true for tilings of which a device makes its part of a constant by itself.
  static bool IsMade(const Tiling& tiling) {
    return tiling.replicated_everywhere() || (tiling.tiled() && tiling.unreduced.empty());
  }
  // Returns true for instructions of which MakePart makes any part.
  bool IsFree(Instruction i) const;
  InstructionId MakePart(Instruction i, TilingRef to);
  // Brings leaves to the tilings that `i` must have, and makes them its value.
  void Finish(Instruction i, Value leaves);
  // The value of the operand, with the tilings of `i`.
  void FinishCopy(Instruction i);
  // Sets the value without bringing it to other tilings.
  void SetValue(Instruction i, Value leaves) { values_[i.id().value] = std::move(leaves); }
  // Adds a copy of `i` with other operands and another shape, without what only the whole program has.
  InstructionId Clone(Instruction i, absl::Span<const InstructionId> operands, Shape shape);
  // Returns the leaves of a tuple, or the array itself. `tilings` and `shapes`: by leaf.
  Value Unpack(InstructionId value, Shape whole, const LeafTilings& tilings);
  InstructionId Pack(Shape whole, absl::Span<const InstructionId> leaves);
  // Returns `whole` with leaves of the sizes of parts.
  Shape LocalShapeOf(Shape whole, const LeafTilings& tilings);
  // Returns the operand's leaves, under these tilings, as one instruction.
  InstructionId PackResharded(const Value& value, Shape whole, const LeafTilings& tilings);
  bool IsManual(const LeafTilings& tilings) const;
  bool HasDynamicShape(Instruction i) const;
  absl::Status Error(Instruction i, std::string_view text) const;

  // Notes the full gathers that an instruction made.
  void NoteGathers(Instruction i);
  // Returns the operand of which this is a part; an invalid instruction if it is the result.
  Instruction OperandWithPart(Instruction i, InstructionId part);
  // Says why the collectives that `i` made since instruction `first` are there.
  void RemarkCollectives(Instruction i, uint32_t first);
  void Whole(Instruction i);
  void Unchanged(Instruction i);

  // ---- by_rule.cc ----
  // An operation whose operands have been brought to the tilings of a choice.
  struct LocalOp {
    Instruction whole;
    const ShardingRule* rule;
    const FactorChoice* choice;
    std::vector<InstructionId> operands;
    LeafTilings results;  // before partial results are combined
    const std::vector<DividedOp::Window>* windows;
    const std::vector<Instruction>* sources;
  };
  struct RuleHandler {
    // Allow more factors; null: none. The second is another way of dividing it, which may not apply: false.
    bool (ComputationPartitioner::*divide)(Instruction, DividedOp*);
    bool (ComputationPartitioner::*otherwise)(Instruction, DividedOp*);
    Value (ComputationPartitioner::*emit)(const LocalOp&);
  };
  static RuleHandler HandlerOf(RuleClass rule);
  absl::Status ByRule(Instruction i);
  absl::Status CheckManualGroups(Instruction i, const LeafTilings& wanted) const;
  // Notes that each device can make all of the result of a reshape, if it had all of the operand.
  void NoteOrigin(Instruction reshape, InstructionId operand, const Leaf& part);
  bool DivideContraction(Instruction i, DividedOp* op);
  bool DivideReduce(Instruction i, DividedOp* op);
  Value EmitClone(const LocalOp& op);

  // ---- gathered_reduce.cc ----
  Value EmitReduce(const LocalOp& op);
  ComputationId CountingReducer(Computation reducer);

  // ---- scan.cc ----
  bool DivideScan(Instruction i, DividedOp* op);
  Value EmitScan(const LocalOp& op);
  // The computation of a scan whose slices have these sizes.
  ComputationId MakeScanBody(Computation body, absl::Span<const int64_t> sizes);
  // A scan whose scanned dimension `dim` is divided.
  struct DividedScan {
    const LocalOp& op;
    Computation body;
    int64_t dim;
    int64_t carries;
    const AxisList& axes;              // of `dim`
    std::vector<int64_t> part, slice;  // sizes on a device: of an array, and without `dim`
    InstructionId tile, is_first;      // which part this device has
  };
  struct ScannedPart {
    std::vector<InstructionId> outputs, totals;
  };
  struct CombinedTotals {
    std::vector<InstructionId> all, before;  // of all parts, of those before this one
  };
  ScannedPart ScanPart(const DividedScan& scan);
  CombinedTotals CombineTotals(const DividedScan& scan, absl::Span<const InstructionId> totals);
  std::vector<InstructionId> CombineWithEach(const DividedScan& scan, absl::Span<const InstructionId> outputs,
                                             absl::Span<const InstructionId> before);

  // ---- top_k.cc ----
  bool DivideSort(Instruction i, DividedOp* op);
  bool DivideTopK(Instruction i, DividedOp* op);
  Value EmitSort(const LocalOp& op);
  Value EmitTopK(const LocalOp& op);
  // Returns the first `count` elements along a dimension, or all.
  InstructionId FirstAlong(InstructionId array, int64_t dim, int64_t count);

  // Returns true for an operation on partial results whose result is wanted as partial results.
  bool KeepsUnreduced(Instruction i, const DividedOp& op) const;

  // ---- indexed.cc ----
  bool DivideDynamicSlice(Instruction i, DividedOp* op);
  bool DivideDynamicUpdateSlice(Instruction i, DividedOp* op);
  // With constant starts the update is a window of the result.
  bool DivideUpdateAsWindow(Instruction i, DividedOp* op);
  bool DivideGather(Instruction i, DividedOp* op);
  bool DivideScatter(Instruction i, DividedOp* op);
  Value EmitDynamicSlice(const LocalOp& op);
  Value EmitDynamicUpdateSlice(const LocalOp& op);
  Value EmitUpdateAsWindow(const LocalOp& op);
  Value EmitGather(const LocalOp& op);
  Value EmitScatter(const LocalOp& op);
  // Returns the axes of a dimension of an operand under the choice.
  const AxisList& AxesOf(const LocalOp& op, int64_t operand, int64_t dim) const;
  // Returns the scalar starts of a slice, one for each dimension; a vector of them, from operand `first`, is taken
  // apart.
  std::vector<InstructionId> StartsOf(const LocalOp& op, size_t first);
  // Returns the start as s32: one of a type that does not fit is clamped to 0..last before.
  InstructionId NarrowStart(InstructionId start, int64_t last);
  // Returns the index at which a slice of `size` begins, as in the whole array, relative to a part of it that has
  // `local` elements; from -size to `local`.
  InstructionId LocalStart(const LocalOp& op, InstructionId start, int64_t operand, int64_t dim, int64_t size);
  // Returns the indices with the offsets of this device's parts subtracted from components; `offsets`: by component, an
  // s32 or none.
  InstructionId SubtractOffsets(InstructionId indices, int64_t index_vector_dim,
                                const std::vector<InstructionId>& offsets);

  // ---- windows.cc ----
  bool DivideSlice(Instruction i, DividedOp* op);
  bool DividePad(Instruction i, DividedOp* op);
  bool DivideReduceWindow(Instruction i, DividedOp* op);
  bool DivideConvolution(Instruction i, DividedOp* op);
  // Along spatial dimensions of the kernel that are tiled, or large and tiled in the input: partial results are summed.
  bool DivideKernel(Instruction i, DividedOp* op);
  bool DivideReverse(Instruction i, DividedOp* op);
  bool DivideConcatenate(Instruction i, DividedOp* op);
  Value EmitSlice(const LocalOp& op);
  Value EmitPad(const LocalOp& op);
  Value EmitReduceWindow(const LocalOp& op);
  Value EmitConvolution(const LocalOp& op);
  Value EmitReverse(const LocalOp& op);
  Value EmitConcatenate(const LocalOp& op);
  // Makes the dimension of an operand divisible, with a window.
  static void AddWindow(DividedOp* op, int64_t operand, int64_t dim, const HaloWindow& window);
  // Returns the positions of the dilated input that this device's results need; `fill`, a scalar, where there is no
  // element. Invalid: what is there does not matter.
  InstructionId Assemble(InstructionId part, int64_t dim, const HaloWindow& window, const Tiling& frame,
                         const AxisList& axes, InstructionId fill);
  // Assembles an operand along all its divided dimensions.
  InstructionId AssembleOperand(const LocalOp& op, int64_t operand, InstructionId fill);
  bool IsWindowed(const LocalOp& op, int64_t operand, int64_t dim) const;

  // ---- windowed_dot.cc ----
  // A dot in steps over the tiles of `axes`: of a dimension of an operand, or of the result.
  struct DotLoop {
    int64_t operand = 0;  // that is gathered, or sliced for the result
    int64_t dim = 0;      // of the gathered operand, or of the scattered result
    AxisList axes;
    Tiling frame;
    int64_t tiles = 1;
    bool scattered = false;
  };
  // Returns the result as a loop, if the dot is large enough to be one.
  std::optional<Value> WindowedDot(const DividedOp& divided, LocalOp* op);
  Value GatheredDot(const DotLoop& loop, LocalOp* op);
  std::optional<Value> ScatteredDot(const DotLoop& loop, LocalOp* op);
  bool IsWindowedSize(Shape whole, double both_bytes) const;
  bool HasOtherUser(Instruction operand, Instruction user) const;
  // Repeats steps, which take and return the state, until its last element, the number of the step, is `end`. Returns
  // the state after them.
  using DotState = std::vector<InstructionId>;
  DotState RunLoop(int64_t end, const DotState& state, const std::function<DotState(Emitter*, DotState)>& step);
  InstructionId SliceTile(Emitter* e, InstructionId array, int64_t dim, InstructionId start, int64_t size);
  InstructionId LocalDot(Emitter* e, Instruction whole, InstructionId lhs, InstructionId rhs,
                         absl::Span<const int64_t> sizes);

  // ---- local_op.cc ----
  // Masks what is behind the end of operands where that would reach a result.
  void MaskOperands(Instruction i, const ShardingRule& rule, const FactorChoice& choice,
                    std::vector<InstructionId>* operands);
  void LocalizeAttributes(Instruction i, const FactorChoice& choice, InstructionId local);
  // Adds the instructions of a computation without callees, with other arguments; arrays that are not scalars get these
  // sizes. Returns the elements of its root, or the root.
  std::vector<InstructionId> InlineBody(Builder* b, Computation body, absl::Span<const InstructionId> arguments,
                                        absl::Span<const int64_t> sizes);
  // Returns the computation that combines partial results.
  ComputationId Combiner(Instruction i, ElementType type);

  // ---- control_flow.cc ----
  void Tuple(Instruction i);
  void GetTupleElement(Instruction i);
  void Barrier(Instruction i);
  void While(Instruction i);
  void Conditional(Instruction i);
  void Call(Instruction i);

  // ---- sources.cc ----
  InstructionId Parameter(Instruction i);
  // Returns the array of the device for which the pred `is_owner` holds, on all devices that differ along `axes`.
  InstructionId FromOwner(InstructionId array, InstructionId is_owner, const Tiling& frame, const AxisList& axes);
  // Brings what one device has to all; not what the device `except` has.
  void Share(Instruction i, int64_t except = -1);
  // Returns the device that alone has all of an instruction; -1 if others have some.
  int64_t OwnerOf(Instruction i) const;
  InstructionId Shared(const Leaf& leaf);
  // Computes an instruction of one device on values that it has, for which nothing is communicated: all devices do the
  // same, and that of the one counts. Returns false for others.
  bool OnOwner(Instruction i);
  void Constant(Instruction i);
  void Iota(Instruction i);
  void Rng(Instruction i);
  void Infeed(Instruction i);
  void Outfeed(Instruction i);
  absl::Status CustomCall(Instruction i);
  // Calls a function, which may have side effects, on the one device that the sharding of the call names; others have
  // zeros. Returns false for other calls.
  bool CallOnDevice(Instruction i);

  // ---- select_and_scatter.cc ----
  bool DivideSelectAndScatter(Instruction i, DividedOp* op);
  Value EmitSelectAndScatter(const LocalOp& op);

  // ---- ragged_dot.cc ----
  Value EmitRaggedDot(const LocalOp& op);

  // ---- retile.cc ----
  // A reshape of dimensions of which the first is divided along the same axes before and after, in parts that do not
  // fit. Returns false for others.
  bool ReshapeByHalo(Instruction i, TilingRef to);
  // Returns the part under `to` of an array that is divided along fewer axes, in parts that do not contain those of
  // `to`; invalid for others.
  InstructionId PartByHalo(const Leaf& leaf, TilingRef to);

  // ---- multi_slice.cc ----
  // Returns false for other custom-calls, and those that it does not divide.
  bool MultiSlice(Instruction i);
  bool RotateRight(Instruction i);
  InstructionId SliceAlong(InstructionId array, int64_t dim, int64_t begin, int64_t end);
  InstructionId WithNeighbors(InstructionId array, int64_t dim, int64_t before, int64_t after, const Tiling& tiling);

  ModulePartitioner& owner_;
  Module& module_;
  ModuleState& state_;
  const ComputationJob& job_;
  Emitter emitter_;
  absl::flat_hash_map<uint32_t, Value> values_;  // by instruction of the source
  std::map<std::pair<uint32_t, TilingRef>, InstructionId> free_parts_;
  AxisList scattered_rest_;  // of the last dot whose result was scattered in a loop: axes that are still partial
  // Tuples of operations in progress, which only their next operation may use.
  absl::flat_hash_map<uint32_t, InstructionId> in_progress_;
  absl::flat_hash_set<uint32_t> looped_;  // operands that travel in the loop of a dot
};

// Returns the operands as a list, which stays while the module gets more instructions.
inline absl::InlinedVector<Instruction, 4> OperandsOf(Instruction i) {
  absl::InlinedVector<Instruction, 4> operands;
  for (int64_t k = 0; k < i.operand_count(); ++k) operands.push_back(i.operand(k));
  return operands;
}

// Returns the binary operation of a computation that does nothing else; nullopt for others.
std::optional<Opcode> BinaryOpcodeOf(Computation computation);

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_PARTITIONER_H_
