// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/incremental_topological_order.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace hlokit {
namespace {

// A graph with edges from lower to higher numbers, and the groups merged from it.
class Graph {
 public:
  explicit Graph(uint32_t nodes,
                 IncrementalTopologicalOrder::SearchLimits limits = IncrementalTopologicalOrder::SearchLimits())
      : limits_(limits), users_(nodes) {}
  void Edge(uint32_t from, uint32_t to) { users_[from].push_back(to); }

  IncrementalTopologicalOrder& Order() {
    if (order_ == nullptr) {
      begin_.push_back(0);
      for (const auto& list : users_) {
        flat_.insert(flat_.end(), list.begin(), list.end());
        begin_.push_back(static_cast<uint32_t>(flat_.size()));
      }
      order_ = std::make_unique<IncrementalTopologicalOrder>(FreshOrder());
    }
    return *order_;
  }
  // Returns an order without merges.
  IncrementalTopologicalOrder FreshOrder() const {
    IncrementalTopologicalOrder order(limits_);
    order.Begin(begin_, flat_);
    return order;
  }
  void Dissolve(uint32_t node) {
    Order().Dissolve(node);
    dissolved_.insert(node);
  }
  bool IsDissolved(uint32_t node) const { return dissolved_.contains(node); }
  // Returns true if every edge leads forward in the order of the groups, which then contains all of them.
  bool Consistent() {
    for (uint32_t n = 0; n < users_.size(); ++n) {
      if (IsDissolved(n)) continue;
      std::vector<uint32_t> open = users_[n];
      while (!open.empty()) {
        const uint32_t user = open.back();
        open.pop_back();
        if (IsDissolved(user)) {
          open.insert(open.end(), users_[user].begin(), users_[user].end());
        } else if (Order().Find(n) != Order().Find(user) && !Order().Before(n, user)) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  IncrementalTopologicalOrder::SearchLimits limits_;
  std::vector<std::vector<uint32_t>> users_;
  std::set<uint32_t> dissolved_;
  std::vector<uint32_t> begin_, flat_;
  std::unique_ptr<IncrementalTopologicalOrder> order_;
};

TEST(IncrementalTopologicalOrderTest, JoinsWhatIsIndependent) {
  Graph g(4);  // 0 -> 1, 0 -> 2, both -> 3
  g.Edge(0, 1);
  g.Edge(0, 2);
  g.Edge(1, 3);
  g.Edge(2, 3);
  EXPECT_TRUE(g.Order().Join(1, 2));
  EXPECT_EQ(g.Order().Find(1), g.Order().Find(2));
  EXPECT_TRUE(g.Consistent());
}

TEST(IncrementalTopologicalOrderTest, RefusesCircles) {
  Graph g(4);  // 0 -> 1 -> 2 and 0 -> 3, 3 after 2 or before it
  g.Edge(0, 1);
  g.Edge(1, 2);
  g.Edge(0, 3);
  EXPECT_FALSE(g.Order().Join(0, 2));
  EXPECT_FALSE(g.Order().Absorb(0, 2));
  EXPECT_TRUE(g.Order().Absorb(0, 3));  // 1 and 2 come after it now
  EXPECT_TRUE(g.Consistent());
  EXPECT_TRUE(g.Order().Before(3, 1));
}

TEST(IncrementalTopologicalOrderTest, StaysAnOrderWhateverIsJoined) {
  std::mt19937 random(7);
  int joined = 0, refused = 0;
  for (int round = 0; round < 200; ++round) {
    const uint32_t nodes = 2 + random() % 60;
    Graph g(nodes);
    for (uint32_t k = 0; k < 2 * nodes; ++k) {
      const uint32_t a = random() % nodes, b = random() % nodes;
      if (a != b) g.Edge(std::min(a, b), std::max(a, b));
    }
    for (int k = 0; k < 60; ++k) {
      const uint32_t a = random() % nodes, b = random() % nodes;
      if (g.Order().Find(a) == g.Order().Find(b)) continue;
      (g.Order().Join(a, b) ? joined : refused) += 1;
      ASSERT_TRUE(g.Consistent()) << "round " << round << ", step " << k;
    }
  }
  EXPECT_GT(joined, 500);
  EXPECT_GT(refused, 500);
}

TEST(IncrementalTopologicalOrderTest, DissolvedNodesAreNotInTheWay) {
  Graph g(3);  // 0 -> 1 -> 2
  g.Edge(0, 1);
  g.Edge(1, 2);
  EXPECT_FALSE(g.Order().Absorb(0, 2));
  g.Dissolve(1);
  EXPECT_TRUE(g.Order().Absorb(0, 2));
  // 0 -> 1 -> 4 and 0 -> 2 -> 3 -> 4: without 1 and 3 there is still a path by 2.
  Graph h(5);
  h.Edge(0, 1);
  h.Edge(1, 4);
  h.Edge(0, 2);
  h.Edge(2, 3);
  h.Edge(3, 4);
  h.Dissolve(1);
  h.Dissolve(3);
  EXPECT_FALSE(h.Order().Absorb(0, 4));
  EXPECT_FALSE(h.Order().Join(0, 4));
}

TEST(IncrementalTopologicalOrderTest, StaysAnOrderWhateverIsDissolved) {
  std::mt19937 random(3);
  int joined = 0, refused = 0;
  for (int round = 0; round < 200; ++round) {
    const uint32_t nodes = 3 + random() % 30;
    Graph g(nodes);
    for (uint32_t k = 0; k < 2 * nodes; ++k) {
      const uint32_t a = random() % nodes, b = random() % nodes;
      if (a != b) g.Edge(std::min(a, b), std::max(a, b));
    }
    std::vector<uint32_t> members(nodes, 1);  // by representative
    for (int k = 0; k < 60; ++k) {
      const uint32_t a = g.Order().Find(random() % nodes), b = g.Order().Find(random() % nodes);
      if (g.IsDissolved(a) || g.IsDissolved(b) || a == b) continue;
      if (random() % 4 == 0) {
        if (members[a] == 1) g.Dissolve(a);
      } else {
        const uint32_t both = members[a] + members[b];
        const bool done = g.Order().Join(a, b);
        if (done) members[g.Order().Find(a)] = both;
        (done ? joined : refused) += 1;
      }
      ASSERT_TRUE(g.Consistent()) << "round " << round << ", step " << k;
    }
  }
  EXPECT_GT(joined, 500);
  EXPECT_GT(refused, 500);
}

// An abandoned search is remembered; an order with the same merges and no other searches agrees.
TEST(IncrementalTopologicalOrderTest, RefusesNoMoreForWhatItRemembers) {
  std::mt19937 random(11);
  const IncrementalTopologicalOrder::SearchLimits limits = {.groups = 4, .edges = 12};
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    const uint32_t nodes = 2 + random() % 40;
    Graph g(nodes, limits);
    for (uint32_t k = 0; k < 2 * nodes; ++k) {
      const uint32_t a = random() % nodes, b = random() % nodes;
      if (a != b) g.Edge(std::min(a, b), std::max(a, b));
    }
    std::vector<std::pair<uint32_t, uint32_t>> joins;
    for (int k = 0; k < 60; ++k) {
      const uint32_t a = random() % nodes, b = random() % nodes;
      if (g.Order().Find(a) == g.Order().Find(b)) continue;
      IncrementalTopologicalOrder again = g.FreshOrder();
      for (const auto& [x, y] : joins) ASSERT_TRUE(again.Join(x, y));
      const bool joined = g.Order().Join(a, b);
      ASSERT_EQ(joined, again.Join(a, b)) << "round " << round << ", step " << k;
      if (joined) joins.push_back({a, b});
      refused += !joined;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace hlokit
