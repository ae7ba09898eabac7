// SPDX-License-Identifier: Apache-2.0
// The instructions of a computation in groups, and an order of the groups in which each comes before those that use it.
// Groups are joined one after another; the order is mended as they are, and a join that would make two groups wait for
// each other is refused. So is one whose consequences are too far to see: a search looks at a bounded number of edges.
//
// Nodes are numbered in some order in which operands come before users.
#ifndef HLOKIT_PASSES_FUSION_INCREMENTAL_TOPOLOGICAL_ORDER_H_
#define HLOKIT_PASSES_FUSION_INCREMENTAL_TOPOLOGICAL_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace hlokit {

class IncrementalTopologicalOrder {
 public:
  // How far a search looks.
  struct SearchLimits {
    size_t groups = 32;
    size_t edges = 128;
  };

  IncrementalTopologicalOrder() : IncrementalTopologicalOrder(SearchLimits()) {}
  explicit IncrementalTopologicalOrder(SearchLimits limits) : limits_(limits) {}

  // From now on each node is a group of its own. `users[user_begin[n] .. user_begin[n + 1])` are the users of node n;
  // both lists must live as long as they are worked with.
  void Begin(absl::Span<const uint32_t> user_begin, absl::Span<const uint32_t> users);

  uint32_t Find(uint32_t node) {
    Node* const nodes = nodes_.data();
    while (nodes[node].parent != node) node = nodes[node].parent = nodes[nodes[node].parent].parent;
    return node;
  }
  bool Before(uint32_t a, uint32_t b) { return nodes_[Find(a)].label < nodes_[Find(b)].label; }

  // Joins the single node `producer` to the group of one of its users. True if done: no path leads from the producer to
  // the group by way of other groups.
  bool Absorb(uint32_t producer, uint32_t group);
  // Joins two groups neither of which needs the other. True if done. The joined group is that of Find(a).
  bool Join(uint32_t a, uint32_t b);

  // Nodes of a group, in no particular order.
  template <typename Visit>
  void ForEachNode(uint32_t group, Visit visit) const {
    for (uint32_t n = nodes_[group].first; n != kEnd; n = nodes_[n].next) visit(n);
  }

 private:
  static constexpr uint32_t kEnd = 0xffffffffu;

  // A node and, if it is the representative of one, its group. Together, since a search asks each group that it comes
  // to for nearly all of this.
  struct Node {
    uint32_t parent;         // union-find
    uint32_t next;           // node of the group
    uint32_t first, last;    // nodes of the group
    uint32_t before, after;  // neighbors of the group in the order
    uint32_t mark;           // search in which the group was found
    uint32_t abandoned_at;   // changes_ when a search from the group was given up
    int64_t abandoned_end;   // and how far that was to go
    int64_t label;           // ascending in the order
  };

  // Collects into found_ the groups before `limit` that the users of the nodes of `from` lead to. False if `limit` is
  // among them (edges straight to it are passed over if `direct`), or they are too many, or may not be moved any more.
  bool Reach(uint32_t from, uint32_t limit, bool direct);
  // Moves found_ behind `group`, in the order it has.
  void MoveReachedAfter(uint32_t group);
  void Unlink(uint32_t group);
  void Merge(uint32_t into, uint32_t from);
  void Relabel();

  const SearchLimits limits_;
  absl::Span<const uint32_t> user_begin_;
  absl::Span<const uint32_t> users_;
  std::vector<Node> nodes_;
  uint32_t search_ = 0;
  uint32_t changes_ = 0;  // joins so far
  uint32_t last_group_ = kEnd;
  int label_bits_ = 0;  // log of the room between neighbors after numbering
  int relabels_ = 0;
  std::vector<uint32_t> found_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_INCREMENTAL_TOPOLOGICAL_ORDER_H_
