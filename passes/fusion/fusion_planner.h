// SPDX-License-Identifier: Apache-2.0
// Plans the fusions of a computation: users first, each instruction is put into the groups that use it, or they are
// joined around it.
#ifndef HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_
#define HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "passes/fusion/fusion_plan.h"
#include "passes/fusion/fusion_rules.h"
#include "passes/fusion/incremental_topological_order.h"

namespace hlokit {

// For one computation after another, since most are small and the planner has many lists.
class FusionPlanner {
 public:
  FusionPlanner(const Module& module, const FusionLimits& limits) : module_(module), limits_(limits) {}

  // The plan lasts until the next call. About linear: searches for circles are bounded.
  const FusionPlan& Plan(Computation computation);

 private:
  using Node = uint32_t;  // place in the post-order of the computation
  static constexpr uint32_t kNone = 0xffffffffu;

  // Which part of the loop nest needs a value.
  enum class LoopRegion : uint8_t {
    kResult,     // after the hero, or all of it if there is none
    kReduced,    // before a reduction
    kMultiplied  // before a dot or convolution
  };
  // How a group computes an instruction.
  struct Role {
    LoopRegion zone = LoopRegion::kResult;
    bool exact = false;  // at each step of the loop one element, each once
    double times = 1;    // each element, at most
  };
  // An instruction that is computed elsewhere too.
  struct Copy {
    Node node;
    uint32_t place;  // in copy_places_
  };
  struct Group {
    Node hero = kNone;
    bool single_result = false;  // the hero's result is a tuple: nothing else can come out
    bool planned = false;        // it becomes a fusion
    int64_t size = 0;            // elements of the results
    int64_t reduced_size = 0;    // elements of the hero's operands, if it reduces
    double recompute = 0;        // operations computed again, for each element of the loop
    int64_t results = 1;
    int64_t members = 1;
    uint32_t round = 0;   // in which it was met,
    uint32_t met_as = 0;  // and as which of the groups around the value at hand
    absl::InlinedVector<Copy, 2> copies;
    absl::InlinedVector<Node, 6> inputs;  // what it reads, distinct, in any order

    int64_t size_in_all() const { return members + static_cast<int64_t>(copies.size()); }
  };
  struct ShapeFacts {
    int64_t elements = 0;
    int64_t bytes = -1;        // not looked at yet
    bool plain = false;        // an array that fusions read and write
    bool plain_tuple = false;  // of such arrays
  };
  // What becomes of an instruction.
  struct NodeInfo {
    FusionClass fusion_class = FusionClass::kOpaque;
    bool plain = false;                // of its shape
    bool reads_independently = false;  // it reads its operand for itself, whoever else in the fusion does
    bool stays = true;                 // its own instruction (or that of its group) computes it
    int32_t group = -1;                // by representative in the order: index of groups_
    uint32_t mark = 0;                 // in which round it was met
    uint32_t first_copy = kNone;
    Role role;  // in its group
    int64_t elements = 0;
    int64_t bytes = 0;
  };
  // Groups that use a value, by their place in the order, and their members that do.
  struct Consumer {
    Node user;
    uint32_t next;  // reader in the same group
    Role role;      // of the user
  };
  struct ConsumerGroup {
    Node group;            // representative
    uint32_t first, last;  // of readers
  };
  struct Users {
    std::vector<ConsumerGroup> groups;
    std::vector<Consumer> readers;
    bool others = false;  // something outside of all groups uses it too
  };
  // A group that could compute the value at hand.
  struct FusionCandidate {
    Node group;
    Role role;
    double recompute;
    int64_t reads;  // what the group has to read more to compute it
  };
  // What computing an instruction reads.
  struct Read {
    Node operand;
    int64_t bytes;
    bool independently;  // whether or not the group reads the operand already
  };

  void Number(Computation computation);
  // False if no two instructions that may be fused could be put together: neither does one use another, nor do two use
  // the same value.
  template <typename MayBeFused>
  bool HasCandidates(MayBeFused may_be_fused) const;
  // The same for what is in no fusion of the plan, once those are made: their classes stay, as do the shapes they read.
  bool LeavesCandidates();
  const ShapeFacts& FactsOf(ShapeId id) {
    return id.value < shapes_.size() && shapes_[id.value].bytes >= 0 ? shapes_[id.value] : ComputeFacts(id);
  }
  const ShapeFacts& ComputeFacts(ShapeId id);
  FusionClass ClassOf(const InstructionRecord& r, const ShapeFacts& shape) const;
  void StartGroup(Node n);
  void CollectUsers(Node n);
  bool MayHaveReadersToJoin(Node n) const;
  void JoinReaders(Node n);
  void Place(Node n);
  // The role the node would have in the group; nullopt if it must not be there.
  std::optional<Role> RoleIn(Node n, const ConsumerGroup& in, double* recompute) const;
  // What becomes of `role`, that of a user, for what it uses as operand `index`; nullopt if it must not be fused.
  std::optional<Role> RoleAsOperand(Node n, const Consumer& reader, uint32_t index, const Group& group) const;
  bool MayBeResult(const Group& group, const Role& role) const;
  bool HasRoom(const Group& group, Node n) const;
  bool MayJoin(const Group& x, const Group& y);
  bool TryJoin(Node a, Node b);
  bool SameReduction(Node a, Node b) const;
  bool Absorb(Node n, Node group, const Role& role, double recompute, bool result);
  void AddCopy(Node n, Node group, const Role& role, double recompute);
  static bool Reads(const Group& group, Node n);
  void ReplaceInput(Group& group, Node n);
  // What computing it once more counts as.
  double CopyCost(Node n, const Group& group) const;
  // Sets reads_ to what computing `n` reads; the bytes.
  int64_t CollectReads(Node n);
  // Those of them that `group` does not read anyway.
  int64_t ReadsMissingIn(const Group& group) const;
  Group& GroupOf(Node representative) { return groups_[static_cast<size_t>(info_[representative].group)]; }
  const Group& GroupOf(Node representative) const { return groups_[static_cast<size_t>(info_[representative].group)]; }
  void Finish(Node representative);
  absl::Span<const Node> OperandsOf(Node n) const {
    return absl::MakeConstSpan(operands_).subspan(operand_begin_[n], operand_begin_[n + 1] - operand_begin_[n]);
  }
  absl::Span<const Node> UsersOf(Node n) const {
    return absl::MakeConstSpan(users_).subspan(user_begin_[n], user_begin_[n + 1] - user_begin_[n]);
  }

  const Module& module_;
  const FusionLimits limits_;
  std::vector<ShapeFacts> shapes_;  // by ShapeId
  Node root_ = kNone;
  std::vector<InstructionId> order_;  // by Node
  std::vector<Node> node_of_;         // by InstructionId, of this computation
  std::vector<NodeInfo> info_;
  std::vector<uint32_t> operand_begin_, operands_;
  std::vector<uint32_t> user_begin_, users_;
  // Members of groups that have copies of a node: lists in one array, by Node where each begins.
  struct CopyPlace {
    Node member;  // none if the group has another
    uint32_t next;
    Role role;
  };
  std::vector<CopyPlace> copy_places_;
  template <typename Visit>
  void ForEachCopy(Node n, Visit visit) const {
    for (uint32_t k = info_[n].first_copy; k != kNone; k = copy_places_[k].next) {
      if (copy_places_[k].member != kNone) visit(copy_places_[k]);
    }
  }
  std::vector<Group> groups_;
  IncrementalTopologicalOrder group_order_;
  uint32_t round_ = 0;
  absl::flat_hash_set<uint64_t> unmergeable_;  // pairs of groups that cannot be joined
  // Of the value at hand.
  Users current_users_;
  std::vector<FusionCandidate> fits_;
  std::vector<Read> reads_;
  std::vector<Node> moved_in_;
  struct Entry {
    Node node;
    bool exclusive;
  };
  std::vector<Entry> entries_;  // of the group that is finished
  std::vector<Node> representatives_;
  FusionPlan plan_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_
