// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/incremental_topological_order.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hlokit {
namespace {

constexpr int kMaxRelabels = 64;  // bound on relabelings, so that the time stays linear

}  // namespace

void IncrementalTopologicalOrder::Begin(absl::Span<const uint32_t> user_begin, absl::Span<const uint32_t> users) {
  user_begin_ = user_begin;
  users_ = users;
  search_ = 0;
  changes_ = 1;
  relabels_ = 0;
  const auto n = static_cast<uint32_t>(user_begin.size() - 1);
  label_bits_ = std::countl_zero(uint64_t{n} + 1) - 3;
  nodes_.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    nodes_[i] = {.parent = i,
                 .next = kEnd,
                 .first = i,
                 .last = i,
                 .before = i == 0 ? kEnd : i - 1,
                 .after = i + 1 == n ? kEnd : i + 1,
                 .mark = 0,
                 .abandoned_at = 0,
                 .abandoned_end = 0,
                 .label = static_cast<int64_t>(i) << label_bits_,
                 .dissolved = false};
  }
  last_group_ = n == 0 ? kEnd : n - 1;
}

bool IncrementalTopologicalOrder::Reach(uint32_t from, uint32_t limit, bool direct) {
  found_.clear();
  ++search_;
  const int64_t end = nodes_[limit].label;
  // Merging the consumers of a value tries many pairs. If a search from this group was abandoned since the last change,
  // one with the same or a farther limit would be abandoned too.
  if (nodes_[from].abandoned_at == changes_ && nodes_[from].abandoned_end <= end) return false;
  const auto give_up = [&] {
    nodes_[from].abandoned_at = changes_;
    nodes_[from].abandoned_end = end;
    return false;
  };
  // Loop-invariant, for the innermost loop of fusion.
  const uint32_t *const user_begin = user_begin_.data(), *const users = users_.data();
  Node* const nodes = nodes_.data();
  size_t edges = 0, next = 0;
  uint32_t at = from;
  while (true) {
    dissolved_.clear();
    for (uint32_t member = nodes[at].first, node = member; node != kEnd;) {
      for (const uint32_t *u = users + user_begin[node], *last = users + user_begin[node + 1]; u != last; ++u) {
        if (++edges > limits_.edges) return give_up();
        if (nodes[*u].dissolved) {
          // Direct users of `from` are to be told from others, so that marks do not count for them.
          if (at != from && std::exchange(nodes[*u].mark, search_) == search_) continue;
          dissolved_.push_back(*u);
          continue;
        }
        const uint32_t group = Find(*u);
        if (group == limit) {
          if (at == from && direct) continue;
          return false;
        }
        Node& g = nodes[group];
        if (group == from || g.label > end || g.mark == search_) continue;
        g.mark = search_;
        found_.push_back(group);
        if (found_.size() > limits_.groups) return give_up();
      }
      // The users of dissolved nodes follow those of the group's own.
      if (member != kEnd) member = nodes[member].next;
      node = member;
      if (member == kEnd && !dissolved_.empty()) {
        node = dissolved_.back();
        dissolved_.pop_back();
      }
    }
    if (next == found_.size()) return found_.empty() || relabels_ < kMaxRelabels;
    at = found_[next++];
  }
}

void IncrementalTopologicalOrder::Unlink(uint32_t group) {
  const uint32_t before = nodes_[group].before, after = nodes_[group].after;
  if (before != kEnd) nodes_[before].after = after;
  if (after != kEnd) nodes_[after].before = before;
  if (last_group_ == group) last_group_ = before;
}

void IncrementalTopologicalOrder::MoveReachedAfter(uint32_t group) {
  if (found_.empty()) return;
  std::sort(found_.begin(), found_.end(), [&](uint32_t a, uint32_t b) { return nodes_[a].label < nodes_[b].label; });
  for (uint32_t g : found_) Unlink(g);
  const uint32_t after = nodes_[group].after;
  const auto parts = static_cast<int64_t>(found_.size()) + 1;
  const int64_t gap = after == kEnd ? parts << (label_bits_ / 2) : nodes_[after].label - nodes_[group].label;
  // Close to the next group: later groups may have to go in between.
  const int64_t step = gap / (16 * parts);
  const int64_t end = nodes_[group].label + gap;
  uint32_t at = group;
  for (size_t k = 0; k < found_.size(); ++k) {
    const uint32_t g = found_[k];
    nodes_[g].before = at;
    nodes_[at].after = g;
    nodes_[g].label = end - step * (parts - 1 - static_cast<int64_t>(k));
    at = g;
  }
  nodes_[at].after = after;
  if (after != kEnd) {
    nodes_[after].before = at;
  } else {
    last_group_ = at;
  }
  if (step < 2) Relabel();
}

void IncrementalTopologicalOrder::Relabel() {
  ++relabels_;
  int64_t label = static_cast<int64_t>(nodes_.size()) << label_bits_;
  for (uint32_t g = last_group_; g != kEnd; g = nodes_[g].before) {
    nodes_[g].label = label;
    label -= int64_t{1} << label_bits_;
  }
}

void IncrementalTopologicalOrder::Merge(uint32_t into, uint32_t from) {
  ++changes_;
  nodes_[from].parent = into;
  nodes_[nodes_[into].last].next = nodes_[from].first;
  nodes_[into].last = nodes_[from].last;
}

bool IncrementalTopologicalOrder::Absorb(uint32_t producer, uint32_t group) {
  group = Find(group);
  if (!Reach(producer, group, /*direct=*/true)) return false;
  Unlink(producer);
  MoveReachedAfter(group);
  Merge(group, producer);
  return true;
}

bool IncrementalTopologicalOrder::Join(uint32_t a, uint32_t b) {
  const uint32_t keep = a = Find(a);
  b = Find(b);
  if (a == b) return true;
  if (nodes_[a].label > nodes_[b].label) std::swap(a, b);
  if (!Reach(a, b, /*direct=*/false)) return false;
  Unlink(a);
  MoveReachedAfter(b);
  if (keep == b) {
    Merge(b, a);
    return true;
  }
  // `a` takes the position of `b`.
  nodes_[a].label = nodes_[b].label;
  nodes_[a].before = nodes_[b].before;
  nodes_[a].after = nodes_[b].after;
  if (nodes_[a].before != kEnd) nodes_[nodes_[a].before].after = a;
  if (nodes_[a].after != kEnd) nodes_[nodes_[a].after].before = a;
  if (last_group_ == b) last_group_ = a;
  Merge(a, b);
  return true;
}

}  // namespace hlokit
