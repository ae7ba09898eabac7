// SPDX-License-Identifier: Apache-2.0
// A topological order of groups of instructions that is maintained as groups merge (incremental cycle detection). A
// merge that would create a cycle fails. So does one whose check exceeds the limits of the search.
//
// Nodes are numbered in some topological order.
#ifndef HLOKIT_PASSES_FUSION_INCREMENTAL_TOPOLOGICAL_ORDER_H_
#define HLOKIT_PASSES_FUSION_INCREMENTAL_TOPOLOGICAL_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace hlokit {

class IncrementalTopologicalOrder {
 public:
  // Limits of a search.
  struct SearchLimits {
    size_t groups = 32;
    size_t edges = 128;
  };

  IncrementalTopologicalOrder() : IncrementalTopologicalOrder(SearchLimits()) {}
  explicit IncrementalTopologicalOrder(SearchLimits limits) : limits_(limits) {}

  // Makes each node a group. `users[user_begin[n] .. user_begin[n + 1])` are the users of node n; both lists must
  // outlive the use of this object.
  void Begin(absl::Span<const uint32_t> user_begin, absl::Span<const uint32_t> users);

  uint32_t Find(uint32_t node) {
    Node* const nodes = nodes_.data();
    while (nodes[node].parent != node) node = nodes[node].parent = nodes[nodes[node].parent].parent;
    return node;
  }
  bool Before(uint32_t a, uint32_t b) { return nodes_[Find(a)].label < nodes_[Find(b)].label; }

  // Merges the single node `producer` into the group of one of its users. Returns false if a path through other groups
  // leads from the producer to the group, or the search was abandoned.
  bool Absorb(uint32_t producer, uint32_t group);
  // Merges two groups neither of which depends on the other. Returns false if they do, or the search was abandoned. The
  // merged group is that of Find(a).
  bool Join(uint32_t a, uint32_t b);

  // Removes a node that is a group of its own: its users depend on what it depends on.
  void Dissolve(uint32_t node) {
    nodes_[node].dissolved = true;
    ++changes_;
  }

  // Visits the nodes of a group, in no particular order.
  template <typename Visit>
  void ForEachNode(uint32_t group, Visit visit) const {
    for (uint32_t n = nodes_[group].first; n != kEnd; n = nodes_[n].next) visit(n);
  }

 private:
  static constexpr uint32_t kEnd = 0xffffffffu;

  // A node and, if it is a representative, its group. In one record, since a search reads nearly all of it for each
  // group.
  struct Node {
    uint32_t parent;         // union-find
    uint32_t next;           // next node of the group
    uint32_t first, last;    // nodes of the group
    uint32_t before, after;  // neighbors of the group in the order
    uint32_t mark;           // last search that reached the group
    uint32_t abandoned_at;   // value of changes_ when a search from the group was abandoned
    int64_t abandoned_end;   // and the limit of that search
    int64_t label;           // ascending in the order
    bool dissolved;          // not in the order: its users stand for it
  };

  // Collects into found_ the groups before `limit` that are reachable from the users of the nodes of `from`. Returns
  // false if `limit` is reachable (by more than a direct edge if `direct`), if the search exceeds its limits, or if
  // relabeling has stopped.
  bool Reach(uint32_t from, uint32_t limit, bool direct);
  // Moves found_ after `group`, keeping its order.
  void MoveReachedAfter(uint32_t group);
  void Unlink(uint32_t group);
  void Merge(uint32_t into, uint32_t from);
  void Relabel();

  const SearchLimits limits_;
  absl::Span<const uint32_t> user_begin_;
  absl::Span<const uint32_t> users_;
  std::vector<Node> nodes_;
  uint32_t search_ = 0;
  uint32_t changes_ = 0;  // number of merges and dissolved nodes
  uint32_t last_group_ = kEnd;
  int label_bits_ = 0;  // log of the gap between neighbors after numbering
  int relabels_ = 0;
  std::vector<uint32_t> found_;
  std::vector<uint32_t> dissolved_;  // dissolved users of the group in hand
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_INCREMENTAL_TOPOLOGICAL_ORDER_H_
