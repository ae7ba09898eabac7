// SPDX-License-Identifier: Apache-2.0
// The state of one run of sharding propagation, and XLA's policy. Internal to this room.
//
//   propagator.cc   reading and writing shardings, which ones are fixed, levels and sweeps
//   improve.cc      whether a proposal replaces what is there
//   forward.cc      proposals from operands
//   backward.cc     proposals from users
//   refine.cc       constraints with unspecified dimensions, with conversions to manual code
//   related.cc      loops, calls, conditionals and shard groups, which share values
#ifndef HLOKIT_PASSES_SHARDING_PROPAGATOR_H_
#define HLOKIT_PASSES_SHARDING_PROPAGATOR_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"
#include "passes/sharding/propagation.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::sharding {

// An interned tiling.
using TilingRef = const Tiling*;
// The tilings of the leaves of a value; empty: it has no sharding.
using LeafTilings = std::vector<TilingRef>;

constexpr int kLevels = 4;

class Propagator {
 public:
  Propagator(Module& module, const PropagationOptions& options, PropagationLog* log);

  absl::StatusOr<PropagationCounts> Run();

 private:
  // Where a proposal comes from, for the log.
  struct Source {
    SourceKind kind;
    Instruction instruction;
    int64_t leaf = 0;
  };

  // ---- propagator.cc ----
  bool InThreads(Computation computation) const;
  absl::Status ReadShardings();
  bool AssignMetadata();
  // Turns Sharding custom-calls into copies, and gives operands without a sharding theirs.
  void ProcessShardingCalls();
  void CopyWhileAtEntryRoot();
  absl::Status CheckLoopDevices() const;
  void MarkFixed();
  void RunToFixedPoint(int level);
  void Sweep(Computation computation);
  void RestoreBoundary();
  void ReplicateUneven();
  void KeepCsePrevention();
  ListId Written(const Tiling& tiling);
  void WriteShardings();

  TilingRef Intern(const Tiling& tiling);
  absl::Span<const Shape> LeafShapes(Instruction i);
  const ShardingRule& Rule(Instruction i);
  const LeafTilings& Get(Instruction i) const { return state_[i.id().value]; }
  bool Has(Instruction i) const { return !state_[i.id().value].empty(); }
  void Set(Instruction i, LeafTilings leaves);
  // Sets the leaves, and records each change.
  void SetFrom(Instruction i, LeafTilings leaves, const Source& source, absl::Span<const int64_t> source_leaves = {});
  bool IsFixed(Instruction i) const { return fixed_[i.id().value] != 0; }
  bool MayMerge() const { return options_.is_spmd && level_ > 0; }
  void ClearVisited(Instruction i);
  void ClearVisited(Instruction i, Instruction for_users);
  // The distinct users in the order of the graph.
  std::vector<Instruction> UsersOf(Instruction i) const;
  int64_t NonRootUsers(Instruction i) const;
  // A single leaf that is an array.
  TilingRef ArrayTiling(Instruction i) const { return Get(i).size() == 1 ? Get(i)[0] : nullptr; }
  // The first leaf of element `index` of a tuple, and their number.
  int64_t FirstLeaf(Shape tuple, int64_t index) const;

  // ---- improve.cc ----
  bool Improve(Instruction i, int64_t leaf, const Tiling& proposal, bool aggressive, const Source& source);
  // Improves each leaf; proposals may be null.
  bool ImproveAll(Instruction i, absl::Span<const TilingRef> proposals, bool aggressive, const Source& source);
  // What `proposal` and `current` make, or nullopt if that is no improvement.
  std::optional<Tiling> Improvement(Shape shape, const Tiling& current, const Tiling& proposal, bool aggressive,
                                    bool* conflict) const;

  // ---- forward.cc ----
  bool PassesAtLevel(Instruction i) const;
  bool SupportsPartitioning(Instruction i, bool to_output) const;
  bool InferFromOperands(Instruction i);
  bool IsForeignAsync(Instruction i) const;
  std::optional<bool> TakeManualFromOperands(Instruction i);
  bool TakeReplicationFromOperands(Instruction i);
  bool ForwardElement(Instruction i);
  bool ForwardTuple(Instruction i);
  bool ForwardAllLeaves(Instruction i, Instruction from);
  bool ForwardParameter(Instruction i);
  bool ForwardParameterFrom(Instruction caller, Instruction i);
  bool ForwardWhile(Instruction i);
  // From the roots of the callees: ShareWithRelated.
  bool ForwardFromCallees(Instruction /*i*/) { return false; }
  bool ForwardElementwise(Instruction i);
  bool ForwardConcatenate(Instruction i);
  bool ForwardDot(Instruction i);
  bool ForwardConvolution(Instruction i);
  bool ForwardReduce(Instruction i);
  bool ForwardReshape(Instruction i);
  bool ForwardSort(Instruction i);
  bool ForwardScan(Instruction i);
  bool ForwardGather(Instruction i);
  bool ForwardScatter(Instruction i);
  bool ForwardDynamicSlice(Instruction i);
  bool ForwardDynamicUpdateSlice(Instruction i);
  bool ForwardWindow(Instruction i);
  bool ForwardByRule(Instruction i);
  // Carries the sharding of an operand to a leaf of the result along the rule and improves that.
  bool ForwardOperand(Instruction i, int64_t operand, int64_t leaf, bool aggressive);
  std::optional<Tiling> OperandToResult(Instruction i, int64_t operand, int64_t leaf);
  bool IsSpatial(Instruction i) const;
  // The operand with the most specific sharding, or -1.
  int64_t RepresentativeOperand(Instruction i) const;
  // What the users of `i` ask of it, along a chain of single users.
  std::optional<Tiling> LookAhead(Instruction i);

  // ---- backward.cc ----
  bool InferFromUsers(Instruction i);
  bool TakeManualFromUsers(Instruction i, absl::Span<const Instruction> users);
  // Returns what `user` proposes for the leaves of its operand `index`; null for those it proposes nothing for.
  // By leaf of an operand; nullopt: the user says nothing.
  using OperandTilings = std::vector<std::optional<Tiling>>;
  static std::optional<OperandTilings> CopyLeaves(const LeafTilings& from, size_t first, size_t count);
  std::optional<OperandTilings> BackwardTuple(Instruction user, int64_t index);
  std::optional<OperandTilings> BackwardElement(Instruction user, int64_t index);
  std::optional<OperandTilings> BackwardCall(Instruction user, int64_t index);
  std::optional<OperandTilings> BackwardOutfeed(Instruction user, int64_t index);
  std::optional<OperandTilings> FromUser(Instruction user, int64_t index);
  std::optional<Tiling> ArrayFromUser(Instruction user, int64_t index);
  std::optional<Tiling> ConcatenateOperand(Instruction user, int64_t index);
  std::optional<Tiling> DotOperand(Instruction user, int64_t index);
  std::optional<Tiling> ReduceOperand(Instruction user, int64_t index);
  std::optional<Tiling> GatherOperand(Instruction user, int64_t index);
  std::optional<Tiling> ScatterOperand(Instruction user, int64_t index);
  Tiling ResultToOperand(Instruction user, int64_t leaf, int64_t operand);

  // ---- refine.cc ----
  bool RefineFromOperand(Instruction i);
  bool RefineFromUsers(Instruction i);
  Instruction ConversionAfter(Instruction i) const;
  bool RefineWith(Instruction i, Instruction conversion, const Tiling& learned, bool learned_is_manual,
                  const Source& source);

  // ---- related.cc ----
  void FindCallers();
  std::vector<Instruction> RelatedTo(Instruction caller) const;
  void ShareAtStart();
  // Copies the sharding of `i` to the instructions that share its value.
  void ShareWithRelated(Instruction i);
  void FindShardGroups();
  bool InferFromShardGroup(Instruction i);
  void AgreeInShardGroups();

  Module& module_;
  const PropagationOptions& options_;
  PropagationLog* log_;
  int level_ = 0;

  std::deque<Tiling> tilings_;
  absl::flat_hash_map<uint32_t, TilingRef> by_leaf_;  // by ListId of the leaf
  std::vector<LeafTilings> state_;                    // by instruction, as the following
  std::vector<LeafTilings> original_;
  std::vector<uint8_t> fixed_;
  std::vector<uint8_t> from_operands_done_, from_users_done_;
  std::vector<uint32_t> position_;  // in the order of the graph, over all computations
  std::vector<std::unique_ptr<ShardingRule>> rules_;
  std::vector<std::vector<Shape>> leaf_shapes_;

  std::vector<Computation> order_;                                   // callees first
  std::vector<std::vector<InstructionId>> post_order_;               // of each, by the graph
  absl::flat_hash_map<uint32_t, std::vector<Instruction>> callers_;  // by computation: whiles, conditionals, calls
  std::map<InstructionId, std::vector<int64_t>> unspecified_;        // by constraint: its open dimensions, sorted
  struct ShardGroupMembers {
    bool like = false;
    std::vector<Instruction> members;  // in the order of the graph
  };
  std::map<std::pair<int64_t, bool>, ShardGroupMembers> groups_;  // by id and kind
  absl::flat_hash_map<uint32_t, ShardGroupMembers*> group_of_;    // by instruction
  std::vector<std::pair<InstructionId, std::pair<int64_t, bool>>> group_marks_;
  bool has_list_ = false;  // of the shardings of the module, one lists its devices
  bool has_iota_ = false;

  LeafTilings root_at_start_;
  std::vector<LeafTilings> parameters_at_start_;
  bool changed_in_sweep_ = false;
  PropagationCounts counts_;
};

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_PROPAGATOR_H_
