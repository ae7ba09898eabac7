#include "passes/fusion/group_order.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hlokit {
namespace {

constexpr int kMaxRelabels = 64;  // afterwards nothing is moved, so that the time stays linear

}  // namespace

GroupOrder::GroupOrder(absl::Span<const uint32_t> user_begin, absl::Span<const uint32_t> users, SearchLimits limits)
    : limits_(limits), user_begin_(user_begin), users_(users) {
  const auto n = static_cast<uint32_t>(user_begin.size() - 1);
  label_bits_ = std::countl_zero(uint64_t{n} + 1) - 3;
  parent_.resize(n);
  first_.resize(n);
  last_.resize(n);
  next_node_.assign(n, kEnd);
  before_.resize(n);
  after_.resize(n);
  label_.resize(n);
  mark_.assign(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    parent_[i] = first_[i] = last_[i] = i;
    before_[i] = i == 0 ? kEnd : i - 1;
    after_[i] = i + 1 == n ? kEnd : i + 1;
    label_[i] = static_cast<int64_t>(i) << label_bits_;
  }
  last_group_ = n == 0 ? kEnd : n - 1;
}

uint32_t GroupOrder::Find(uint32_t node) {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

bool GroupOrder::Reach(uint32_t from, uint32_t limit, bool direct) {
  found_.clear();
  ++search_;
  const int64_t end = label_[limit];
  size_t edges = 0, next = 0;
  uint32_t at = from;
  while (true) {
    for (uint32_t node = first_[at]; node != kEnd; node = next_node_[node]) {
      for (uint32_t u = user_begin_[node]; u < user_begin_[node + 1]; ++u) {
        if (++edges > limits_.edges) return false;
        const uint32_t group = Find(users_[u]);
        if (group == limit) {
          if (at == from && direct) continue;
          return false;
        }
        if (group == from || label_[group] > end || mark_[group] == search_) continue;
        mark_[group] = search_;
        found_.push_back(group);
        if (found_.size() > limits_.groups) return false;
      }
    }
    if (next == found_.size()) return found_.empty() || relabels_ < kMaxRelabels;
    at = found_[next++];
  }
}

void GroupOrder::Unlink(uint32_t group) {
  const uint32_t before = before_[group], after = after_[group];
  if (before != kEnd) after_[before] = after;
  if (after != kEnd) before_[after] = before;
  if (last_group_ == group) last_group_ = before;
}

void GroupOrder::MoveFoundBehind(uint32_t group) {
  if (found_.empty()) return;
  std::sort(found_.begin(), found_.end(), [&](uint32_t a, uint32_t b) { return label_[a] < label_[b]; });
  for (uint32_t g : found_) Unlink(g);
  const uint32_t behind = after_[group];
  const auto parts = static_cast<int64_t>(found_.size()) + 1;
  const int64_t room = behind == kEnd ? parts << (label_bits_ / 2) : label_[behind] - label_[group];
  // Close to what is behind: more may have to go in between.
  const int64_t step = room / (16 * parts);
  const int64_t end = label_[group] + room;
  uint32_t at = group;
  for (size_t k = 0; k < found_.size(); ++k) {
    const uint32_t g = found_[k];
    before_[g] = at;
    after_[at] = g;
    label_[g] = end - step * (parts - 1 - static_cast<int64_t>(k));
    at = g;
  }
  after_[at] = behind;
  if (behind != kEnd) {
    before_[behind] = at;
  } else {
    last_group_ = at;
  }
  if (step < 2) Relabel();
}

void GroupOrder::Relabel() {
  ++relabels_;
  int64_t label = static_cast<int64_t>(parent_.size()) << label_bits_;
  for (uint32_t g = last_group_; g != kEnd; g = before_[g]) {
    label_[g] = label;
    label -= int64_t{1} << label_bits_;
  }
}

void GroupOrder::Merge(uint32_t into, uint32_t from) {
  parent_[from] = into;
  next_node_[last_[into]] = first_[from];
  last_[into] = last_[from];
}

bool GroupOrder::Absorb(uint32_t producer, uint32_t group) {
  group = Find(group);
  if (!Reach(producer, group, /*direct=*/true)) return false;
  Unlink(producer);
  MoveFoundBehind(group);
  Merge(group, producer);
  return true;
}

bool GroupOrder::Join(uint32_t a, uint32_t b) {
  const uint32_t keep = a = Find(a);
  b = Find(b);
  if (a == b) return true;
  if (label_[a] > label_[b]) std::swap(a, b);
  if (!Reach(a, b, /*direct=*/false)) return false;
  Unlink(a);
  MoveFoundBehind(b);
  if (keep == b) {
    Merge(b, a);
    return true;
  }
  // `a` takes the place of `b`.
  label_[a] = label_[b];
  before_[a] = before_[b];
  after_[a] = after_[b];
  if (before_[a] != kEnd) after_[before_[a]] = a;
  if (after_[a] != kEnd) before_[after_[a]] = a;
  if (last_group_ == b) last_group_ = a;
  Merge(a, b);
  return true;
}

}  // namespace hlokit
