// SPDX-License-Identifier: Apache-2.0
#include "passes/view/sections.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"

namespace hlokit {
namespace {

constexpr size_t kMaxSections = 12;  // of one level: as many as can be read in one view
constexpr size_t kSectionSize = 32;  // aimed at on the lowest level
constexpr size_t kLargeScope = 40;   // a scope with more than this part of all instructions is in no section

class Divider {
 public:
  Divider(const Module& module, GraphGroups* groups) : module_(module), groups_(*groups) {}

  void Run() {
    nodes_ = groups_.parent.size();
    CountInstructions();
    FindChildren();
    FindSpans();
    for (size_t node = 0; node < nodes_; ++node) {
      const size_t count = begin_[node + 1] - begin_[node];
      if (count > GraphGroups::kMaxChildren) Divide(static_cast<int32_t>(node));
    }
  }

 private:
  // Counts the instructions in each scope and what is around it, up to the instruction that calls its computation.
  void CountInstructions() {
    const size_t instructions = groups_.instructions.size();
    count_.assign(nodes_, 0);
    for (size_t i = 0; i < instructions; ++i) {
      for (int32_t node = groups_.parent[i]; node >= static_cast<int32_t>(instructions); node = groups_.parent[node]) {
        ++count_[node];
      }
    }
  }

  // Lists the children of each node, by the first instruction in each.
  void FindChildren() {
    const size_t instructions = groups_.instructions.size();
    first_.assign(nodes_, static_cast<int32_t>(instructions));
    // Every instruction lowers the first instruction of the scopes around it, up to where that is done already, or to
    // the instruction that calls its computation.
    for (size_t i = 0; i < instructions; ++i) {
      const int32_t first = static_cast<int32_t>(i);
      first_[i] = first;
      for (int32_t node = groups_.parent[i]; node >= static_cast<int32_t>(instructions) && first_[node] > first;
           node = groups_.parent[node]) {
        first_[node] = first;
      }
    }
    begin_.assign(nodes_ + 1, 0);
    for (const int32_t parent : groups_.parent) {
      if (parent != GraphGroups::kNone) ++begin_[parent + 1];
    }
    for (size_t node = 0; node < nodes_; ++node) begin_[node + 1] += begin_[node];
    children_.resize(begin_[nodes_]);
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for (size_t node = 0; node < nodes_; ++node) {
      if (groups_.parent[node] != GraphGroups::kNone)
        children_[next[groups_.parent[node]]++] = static_cast<int32_t>(node);
    }
    index_.assign(nodes_, 0);
    for (size_t node = 0; node < nodes_; ++node) {
      const auto begin = children_.begin() + begin_[node], end = children_.begin() + begin_[node + 1];
      std::stable_sort(begin, end, [this](int32_t a, int32_t b) { return first_[a] < first_[b]; });
      int32_t index = 0;
      for (auto child = begin; child != end; ++child) {
        if (!StaysOutside(*child)) index_[*child] = index++;
      }
    }
  }

  // For each child of a node with too many: the last child that uses it.
  void FindSpans() {
    last_user_.assign(nodes_, 0);
    for (size_t node = 0; node < nodes_; ++node) last_user_[node] = index_[node];
    depth_.assign(nodes_, -1);
    for (const InstructionId id : groups_.instructions) {
      const Instruction user = module_.instruction(id);
      for (const Instruction operand : user.operands()) {
        int32_t a = groups_.node_of[operand.id().value];
        int32_t b = groups_.node_of[id.value];
        // Both are in one computation, so the ways up are as short as scopes are deep.
        const int32_t da = DepthOf(a), db = DepthOf(b);
        for (int32_t k = da; k > db; --k) a = groups_.parent[a];
        for (int32_t k = db; k > da; --k) b = groups_.parent[b];
        while (a != b && groups_.parent[a] != groups_.parent[b]) {
          a = groups_.parent[a];
          b = groups_.parent[b];
        }
        if (a != b && !StaysOutside(a) && !StaysOutside(b)) last_user_[a] = std::max(last_user_[a], index_[b]);
      }
    }
  }

  int32_t DepthOf(int32_t node) {
    path_.clear();
    while (depth_[node] < 0 && groups_.parent[node] != GraphGroups::kNone) {
      path_.push_back(node);
      node = groups_.parent[node];
    }
    int32_t depth = std::max(depth_[node], 0);
    depth_[node] = depth;
    while (!path_.empty()) {
      depth_[path_.back()] = ++depth;
      path_.pop_back();
    }
    return depth;
  }

  void Divide(int32_t node) {
    std::vector<int32_t> children;
    for (size_t k = begin_[node]; k < begin_[node + 1]; ++k) {
      if (!StaysOutside(children_[k])) children.push_back(children_[k]);
    }
    // live[k]: children before k that are used at k or later.
    std::vector<int32_t> live(children.size() + 1, 0);
    for (size_t k = 0; k < children.size(); ++k) {
      if (last_user_[children[k]] <= static_cast<int32_t>(k)) continue;
      ++live[k + 1];
      if (static_cast<size_t>(last_user_[children[k]]) + 1 < live.size()) --live[last_user_[children[k]] + 1];
    }
    for (size_t k = 1; k < live.size(); ++k) live[k] += live[k - 1];

    struct Range {
      size_t begin, end;
      int32_t parent;
    };
    std::vector<Range> pending = {{0, children.size(), node}};
    while (!pending.empty()) {
      const Range range = pending.back();
      pending.pop_back();
      const size_t size = range.end - range.begin;
      // What stays outside of sections is on the level of the node too: at most 42 (kLargeScope, and one of each kind).
      const size_t outside = range.parent == node ? begin_[node + 1] - begin_[node] - children.size() : 0;
      if (size + outside <= GraphGroups::kMaxChildren) {
        for (size_t k = range.begin; k < range.end; ++k) groups_.parent[children[k]] = range.parent;
        continue;
      }
      const size_t most = std::min(GraphGroups::kMaxChildren - outside, kMaxSections);
      const size_t sections = std::clamp((size + kSectionSize - 1) / kSectionSize, size_t{2}, most);
      size_t begin = range.begin;
      for (size_t s = 0; s < sections; ++s) {
        const size_t end = s + 1 == sections ? range.end : Cut(live, range.begin, size, sections, s + 1);
        groups_.groups.push_back({GroupKind::kSection, Label(children, begin, end), ComputationId()});
        groups_.parent.push_back(range.parent);
        pending.push_back({begin, end, static_cast<int32_t>(groups_.parent.size() - 1)});
        begin = end;
      }
    }
  }

  // Groups that are one of a kind, and scopes that are much of the module, are not put into sections.
  bool StaysOutside(int32_t node) const {
    const size_t instructions = groups_.instructions.size();
    if (static_cast<size_t>(node) < instructions) return false;
    const GroupKind kind = groups_.groups[node - instructions].kind;
    if (kind == GroupKind::kScope) return count_[node] > instructions / kLargeScope && count_[node] > kSectionSize;
    return kind == GroupKind::kParameters || kind == GroupKind::kShared || kind == GroupKind::kUncalled;
  }

  // Names a section by the most frequent opcodes of its instructions, and its first and last child.
  std::string Label(const std::vector<int32_t>& children, size_t begin, size_t end) const {
    constexpr size_t kMaxOpcodes = 3;
    const int32_t first = children[begin], last = children[end - 1];
    std::map<std::string_view, size_t> counts;
    for (size_t k = begin; k < end; ++k) {
      if (static_cast<size_t>(children[k]) >= groups_.instructions.size()) continue;
      const Instruction i = module_.instruction(groups_.instructions[children[k]]);
      if (i.opcode() != Opcode::kGetTupleElement) ++counts[i.opcode_text()];  // computes nothing
    }
    std::vector<std::pair<std::string_view, size_t>> opcodes(counts.begin(), counts.end());
    std::stable_sort(opcodes.begin(), opcodes.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (size_t k = 0; k < std::min(opcodes.size(), kMaxOpcodes); ++k) {
      StrAppend(&text, k == 0 ? "" : ", ", opcodes[k].first);
    }
    const auto name = [this](int32_t node) -> std::string_view {
      const size_t instructions = groups_.instructions.size();
      if (static_cast<size_t>(node) >= instructions) return groups_.groups[node - instructions].label;
      return module_.instruction(groups_.instructions[node]).name();
    };
    return StrCat(text, text.empty() ? "" : ": ", name(first), " ... ", name(last));
  }

  // Returns the end of the first `count` of the sections: within a quarter of a section of the even division, where the
  // fewest values are live, the nearest of those.
  static size_t Cut(const std::vector<int32_t>& live, size_t begin, size_t size, size_t sections, size_t count) {
    const size_t even = begin + size * count / sections;
    const size_t slack = size / sections / 4;
    size_t best = even;
    for (size_t distance = 1; distance <= slack; ++distance) {
      if (live[even - distance] < live[best]) best = even - distance;
      if (live[even + distance] < live[best]) best = even + distance;
    }
    return best;
  }

  const Module& module_;
  GraphGroups& groups_;
  size_t nodes_ = 0;                // without sections
  std::vector<size_t> begin_;       // by node: of its children
  std::vector<int32_t> children_;   // by parent, in the order of the text
  std::vector<size_t> count_;       // by group: instructions in it
  std::vector<int32_t> first_;      // by node: the first instruction in it
  std::vector<int32_t> index_;      // by node: among its siblings that can be in sections
  std::vector<int32_t> last_user_;  // by node: the last sibling that uses it
  std::vector<int32_t> depth_;      // by node; -1: not yet known
  std::vector<int32_t> path_;
};

}  // namespace

void AddSections(const Module& module, GraphGroups* groups) { Divider(module, groups).Run(); }

}  // namespace hlokit
