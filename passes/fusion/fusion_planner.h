// How PlanFusions works: users first, each instruction is put into the groups that use it, or they are joined around
// it.
#ifndef HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_
#define HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "passes/fusion/fusion_plan.h"
#include "passes/fusion/fusion_rules.h"
#include "passes/fusion/group_order.h"

namespace hlokit {

class FusionPlanner {
 public:
  FusionPlanner(Computation computation, const FusionLimits& limits);

  std::vector<FusionGroup> Plan();

 private:
  using Node = uint32_t;  // place in the post-order of the computation
  static constexpr Node kNone = 0xffffffffu;

  // Which part of the loop nest needs a value.
  enum class Zone : uint8_t {
    kResult,     // after the hero, or all of it if there is none
    kReduced,    // before a reduction
    kMultiplied  // before a dot or convolution
  };
  // How a group computes an instruction.
  struct Role {
    Zone zone = Zone::kResult;
    bool exact = false;  // at each step of the loop one element, each once
    double times = 1;    // each element, at most
  };
  struct Copy {
    Node node;
    Role role;
  };
  struct Group {
    Node hero = kNone;
    bool single_result = false;  // the hero's result is a tuple: nothing else can come out
    int64_t size = 0;            // elements of the results
    int64_t reduced_size = 0;    // elements of the hero's operands, if it reduces
    double recompute = 0;        // operations computed again, for each element of the loop
    int64_t results = 1;
    int64_t members = 1;
    std::vector<Copy> copies;             // of instructions that are computed elsewhere too
    absl::InlinedVector<Node, 6> inputs;  // what it reads, distinct
  };
  // What becomes of an instruction.
  struct NodeInfo {
    FusionClass fusion_class = FusionClass::kOpaque;
    bool stays = true;  // its own instruction (or that of its group) computes it
    Role role;          // in its group
    int64_t elements = 0;
    int64_t bytes = 0;
    int32_t group = -1;  // by representative in the order: index of groups_
  };

  void Number();
  bool HasCandidates() const;
  FusionClass ClassOf(Instruction i) const;
  void StartGroup(Node n);
  // Groups that use the node, each once, by their place in the order; whether something else uses it too.
  struct Users {
    std::vector<Node> groups;  // representatives
    bool others = false;
  };
  void FindUsers(Node n, Users* users);
  void JoinReaders(Node n, Users* users);
  void Place(Node n, const Users& users);
  // The role the node would have in the group; nullopt if it must not be there.
  std::optional<Role> RoleIn(Node n, Node group, double* recompute);
  std::optional<Role> RoleOf(Node n, Node group) const;
  bool MayBeResult(const Group& group, const Role& role) const;
  bool HasRoom(const Group& group, Node n) const;
  bool TryJoin(Node a, Node b);
  bool SameReduction(Node a, Node b) const;
  bool Absorb(Node n, Node group, const Role& role, double recompute, bool result);
  void AddCopy(Node n, Node group, const Role& role, double recompute);
  void ReplaceInput(Group& group, Node n);
  // What computing it once more counts as.
  double CopyCost(Node n, Node group) const;
  // Bytes a fusion reads of the operands of `n` if it computes `n`, those left out that `group` reads already.
  int64_t BytesReadBy(Node n, const Group* group) const;
  Group& GroupOf(Node representative) { return groups_[static_cast<size_t>(info_[representative].group)]; }
  const Group& GroupOf(Node representative) const { return groups_[static_cast<size_t>(info_[representative].group)]; }
  FusionGroup Finish(Node representative);

  const Module& module_;
  const Computation computation_;
  const FusionLimits limits_;
  std::vector<InstructionId> order_;  // by Node
  std::vector<uint32_t> node_of_;     // by InstructionId, less the lowest
  uint32_t lowest_ = 0;
  std::vector<NodeInfo> info_;
  std::vector<uint32_t> operand_begin_, operands_;
  std::vector<uint32_t> user_begin_, users_;
  // Members of groups that have copies of a node: lists in one array, by Node where each begins.
  struct CopyPlace {
    Node member;
    uint32_t next;
  };
  std::vector<uint32_t> first_copy_;
  std::vector<CopyPlace> copy_places_;
  template <typename Visit>
  void ForEachCopy(Node n, Visit visit) const {
    for (uint32_t k = first_copy_[n]; k != kNone; k = copy_places_[k].next) visit(copy_places_[k].member);
  }
  std::vector<Group> groups_;
  std::optional<GroupOrder> groups_order_;
  std::vector<uint32_t> seen_;  // by Node: representatives met in this round
  uint32_t round_ = 0;
  absl::flat_hash_set<uint64_t> apart_;  // pairs of groups that cannot be joined
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_PLANNER_H_
