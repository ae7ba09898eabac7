// SPDX-License-Identifier: Apache-2.0
// Plans the fusions of a computation. In reverse post-order, each instruction joins the groups that use it, or those
// groups merge around it.
#ifndef HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_
#define HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "passes/fusion/fusion_plan.h"
#include "passes/fusion/fusion_remarks.h"
#include "passes/fusion/fusion_rules.h"
#include "passes/fusion/incremental_topological_order.h"

namespace hlokit {

// Reused for all computations, since most are small and the planner has many lists.
class FusionPlanner {
 public:
  // `remarks`: gets the decisions; null: nobody.
  FusionPlanner(const Module& module, const FusionLimits& limits, FusionRemarks* remarks = nullptr)
      : module_(module), limits_(limits), remarks_(remarks) {}

  // Plans one computation. The result is valid until the next call. About linear: cycle checks are bounded.
  const FusionPlan& Plan(Computation computation);

 private:
  using Node = uint32_t;  // index in the post-order of the computation
  static constexpr uint32_t kNone = 0xffffffffu;

  // The part of the loop nest that needs a value.
  enum class LoopRegion : uint8_t {
    kResult,     // after the hero, or everywhere without one
    kReduced,    // before a reduction
    kMultiplied  // before a dot or convolution
  };
  // How a group computes an instruction.
  struct Role {
    LoopRegion zone = LoopRegion::kResult;
    bool exact = false;  // one element per loop iteration, each once
    double times = 1;    // upper bound for each element
  };
  // An instruction that other groups compute too.
  struct Copy {
    Node node;
    uint32_t place;  // index into copy_locations_
  };
  struct Group {
    Node hero = kNone;
    bool single_result = false;  // the hero's result is a tuple, so the group has no other result
    bool planned = false;        // becomes a fusion
    bool multiplies = false;     // the hero reduces the result of a dot or convolution of the group
    int64_t size = 0;            // elements of the results
    int64_t reduced_size = 0;    // elements of the operands of a hero that reduces
    double recompute = 0;        // recomputed operations per loop element
    int64_t results = 1;
    int64_t members = 1;
    uint32_t round = 0;       // last round that visited the group,
    uint32_t user_group = 0;  // and its index among the groups around the current value
    absl::InlinedVector<Copy, 2> copies;
    absl::InlinedVector<Node, 6> inputs;  // distinct inputs, in any order

    int64_t size_in_all() const { return members + static_cast<int64_t>(copies.size()); }
  };
  struct ShapeFacts {
    int64_t elements = 0;
    int64_t bytes = -1;        // -1: not computed yet
    bool plain = false;        // an array in the default memory space, of static shape
    bool plain_tuple = false;  // a tuple of such arrays
  };
  // Planning state of an instruction.
  struct NodeInfo {
    FusionClass fusion_class = FusionClass::kOpaque;
    bool plain = false;                // plain, for its shape
    bool reads_independently = false;  // reads its operand separately from other members of the fusion
    bool remains = true;               // remains an instruction, its own or that of its group
    int32_t group = -1;                // by representative in the order: index into groups_
    uint32_t mark = 0;                 // last round that visited the instruction
    uint32_t first_copy = kNone;
    Role role;  // within its group
    int64_t elements = 0;
    int64_t bytes = 0;
  };
  // Groups that consume a value, in topological order, with their consuming members.
  struct Consumer {
    Node user;
    uint32_t next;  // next consumer in the same group
    Role role;      // of the user
  };
  struct ConsumerGroup {
    Node group;            // representative
    uint32_t first, last;  // of consumers
  };
  struct Users {
    std::vector<ConsumerGroup> groups;
    std::vector<Consumer> readers;
    bool others = false;  // has a user outside of all groups
  };
  // A group that could compute the current value.
  struct FusionCandidate {
    Node group;
    Role role;
    double recompute;
    int64_t reads;  // bytes that the group reads in addition
  };
  // A read of an operand.
  struct Read {
    Node operand;
    int64_t bytes;
    bool independently;  // whether or not the group already reads the operand
  };

  // What becomes of the value at a group that could compute it.
  enum class Outcome : uint8_t { kAbsent, kHome, kCopied };
  struct Decision {
    std::vector<Outcome> outcomes;  // by fits_
    bool only = false;              // the group is the only user
    bool cycle = false;             // the chosen group could not take it
  };

  void Number(Computation computation);
  // Returns false if no two fusible instructions are connected: neither as producer and consumer nor by a shared
  // operand.
  template <typename MayBeFused>
  bool HasCandidates(MayBeFused may_be_fused) const;
  // Returns true if the same test holds for the instructions that are in no fusion of the plan, after its fusions are
  // created: classes and operand shapes stay as they are.
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
  // Sets fits_ to the groups that could compute the value.
  void CollectFits(Node n);
  // Lets the value join a group, or groups, of fits_.
  Decision PlaceIn(Node n, int64_t reads);
  // Returns nullopt, and keeps the reason for remarks.
  std::nullopt_t Reject(RemarkRule rule, double number = 0) const {
    rejection_ = {rule, number};
    return std::nullopt;
  }
  // Returns the role of the node in the group, or nullopt if it must not join, with the reason in rejection_.
  std::optional<Role> RoleIn(Node n, const ConsumerGroup& in, double* recompute) const;
  // Returns the role of operand `index` of a user with the given role, or nullopt if it must not be fused.
  std::optional<Role> RoleAsOperand(Node n, const Consumer& reader, uint32_t index, const Group& group) const;
  bool MayBeResult(const Group& group, const Role& role) const;
  bool HasCapacity(const Group& group, Node n) const;
  // Return false if the groups must not be one, with the reason in separation_.
  bool MayJoin(const Group& x, const Group& y);
  bool TryJoin(Node a, Node b);
  bool Separate(std::string_view cause) {
    separation_ = cause;
    return false;
  }
  bool SameReduction(Node a, Node b) const;
  bool Absorb(Node n, Node group, const Role& role, double recompute, bool result);
  void AddCopy(Node n, Node group, const Role& role, double recompute);
  static bool Reads(const Group& group, Node n);
  void ReplaceInput(Group& group, Node n);
  // Returns the cost of duplicating the node into the group.
  double CopyCost(Node n, const Group& group) const;
  // Returns the smaller value that a widening conversion or a broadcast reads, or the value itself: a fusion that reads
  // the larger one may as well convert or broadcast.
  Node Narrowest(Node n) const;
  // Sets reads_ to the reads of `n`. Returns their bytes.
  int64_t CollectReads(Node n);
  // Returns the bytes of reads_ that `group` does not read already.
  int64_t ReadsMissingIn(const Group& group) const;
  // Returns the bytes of its operand that a gather does not read as long as it is alone: in a fusion all of them count.
  int64_t UnreadByGather(Node representative) const;
  Group& GroupOf(Node representative) { return groups_[static_cast<size_t>(info_[representative].group)]; }
  const Group& GroupOf(Node representative) const { return groups_[static_cast<size_t>(info_[representative].group)]; }
  void Finish(Node representative);

  // Remarks, in fusion_decisions.cc. Requires: remarks_ is not null.
  void RemarkInitial(Node n);
  void RemarkRejected(Node n, const ConsumerGroup& group);
  void RemarkPlaced(Node n, const Decision& decision);
  void RemarkSiblings(Node n, size_t first, size_t second, std::string_view cause);
  // Sets remark_members_ to the members of the group of `representative`, in program order.
  FusionRemarks::Members MembersFor(Node representative);
  // Returns the first member of the group that reads the current value.
  InstructionId ReaderIn(Node representative) const;

  absl::Span<const Node> OperandsOf(Node n) const {
    return absl::MakeConstSpan(operands_).subspan(operand_begin_[n], operand_begin_[n + 1] - operand_begin_[n]);
  }
  absl::Span<const Node> UsersOf(Node n) const {
    return absl::MakeConstSpan(users_).subspan(user_begin_[n], user_begin_[n + 1] - user_begin_[n]);
  }

  const Module& module_;
  const FusionLimits limits_;
  FusionRemarks* const remarks_;
  mutable FusionRejection rejection_;
  std::string_view separation_;
  std::vector<InstructionId> remark_members_;
  std::vector<ShapeFacts> shapes_;  // by ShapeId
  Node root_ = kNone;
  std::vector<InstructionId> order_;  // by Node
  std::vector<Node> node_of_;         // by InstructionId, of the current computation
  std::vector<NodeInfo> info_;
  std::vector<uint32_t> operand_begin_, operands_;
  std::vector<uint32_t> user_begin_, users_;
  // Group members that duplicate a node: linked lists in one array, by Node where each begins.
  struct CopyLocation {
    Node member;  // none if another member of the group duplicates it
    uint32_t next;
    Role role;
  };
  std::vector<CopyLocation> copy_locations_;
  template <typename Visit>
  void ForEachCopy(Node n, Visit visit) const {
    for (uint32_t k = info_[n].first_copy; k != kNone; k = copy_locations_[k].next) {
      if (copy_locations_[k].member != kNone) visit(copy_locations_[k]);
    }
  }
  std::vector<Group> groups_;
  IncrementalTopologicalOrder group_order_;
  uint32_t round_ = 0;
  absl::flat_hash_set<uint64_t> unmergeable_;  // pairs of groups that cannot merge
  // Consumers of the current value.
  Users current_users_;
  std::vector<FusionCandidate> fits_;
  std::vector<Read> reads_;
  std::vector<Node> moved_members_;
  struct Entry {
    Node node;
    bool exclusive;
  };
  std::vector<Entry> entries_;  // of the completed group
  std::vector<Node> representatives_;
  FusionPlan plan_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_
