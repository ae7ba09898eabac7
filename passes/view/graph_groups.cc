// SPDX-License-Identifier: Apache-2.0
#include "passes/view/graph_groups.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/ops/attribute.h"
#include "passes/analysis/call_graph.h"
#include "passes/view/sections.h"

namespace hlokit {
namespace {

constexpr size_t kMaxScopes = 24;             // of an op_name; the rest is one scope
constexpr int64_t kMinGroupedParameters = 5;  // of a computation

class Grouper {
 public:
  explicit Grouper(const Module& module) : module_(module), call_graph_(module) {}

  GraphGroups Run() {
    result_.node_of = NumberInstructions(module_);
    for (const Computation computation : module_.computations()) {
      for (const Instruction i : computation.instructions()) result_.instructions.push_back(i.id());
    }
    result_.parent.assign(result_.instructions.size(), GraphGroups::kNone);
    AddGroup(GroupKind::kModule, std::string(module_.name()), GraphGroups::kNone);
    std::vector<std::pair<Computation, int32_t>> roots;  // computations and the nodes that contain them
    PlaceComputations(&roots);
    for (const auto& [computation, container] : roots) GroupComputation(computation, container);
    RemoveTrivialScopes();
    AddSections(module_, &result_);
    return std::move(result_);
  }

 private:
  int32_t AddGroup(GroupKind kind, std::string label, int32_t parent, ComputationId computation = {}) {
    result_.groups.push_back({kind, std::move(label), computation});
    result_.parent.push_back(parent);
    return static_cast<int32_t>(result_.parent.size() - 1);
  }

  // Finds the node that contains each computation. The parents have no cycle: a live computation with one call site is
  // below its caller, which is live, and all live ones are reached from the entry.
  void PlaceComputations(std::vector<std::pair<Computation, int32_t>>* roots) {
    const int32_t root = result_.NodeOfGroup(0);
    int32_t shared = GraphGroups::kNone;
    int32_t uncalled = GraphGroups::kNone;
    for (const Computation computation : module_.computations()) {
      if (computation.is_entry()) {
        roots->emplace_back(computation, root);
        continue;
      }
      const absl::Span<const CallSite> callers = call_graph_.caller_callsites(computation);
      const bool live = call_graph_.IsLive(computation);
      if (live && callers.size() == 1) {
        const Instruction caller = module_.instruction(callers[0].caller);
        const int32_t node = result_.node_of[caller.id().value];
        const bool alone = caller.called_computations().size() == 1;
        roots->emplace_back(
            computation,
            alone ? node : AddGroup(GroupKind::kComputation, RoleOf(caller, computation), node, computation.id()));
        continue;
      }
      int32_t& parent = live ? shared : uncalled;
      if (parent == GraphGroups::kNone) {
        parent = live ? AddGroup(GroupKind::kShared, "shared computations", root)
                      : AddGroup(GroupKind::kUncalled, "computations without a caller", root);
      }
      roots->emplace_back(computation,
                          AddGroup(GroupKind::kComputation, std::string(computation.name()), parent, computation.id()));
    }
  }

  // Returns "body: region_0.5".
  std::string RoleOf(Instruction caller, Computation callee) const {
    for (const AttrValue value : caller.attrs()) {
      bool names = false;
      module_.ForEachCallee(value, [&](ComputationId id) { names = names || id == callee.id(); });
      if (names) return StrCat(InfoOf(value.attr).text, ": ", callee.name());
    }
    return std::string(callee.name());
  }

  // Sets the parents of the instructions of a computation.
  void GroupComputation(Computation computation, int32_t container) {
    int32_t parameters = container;
    if (computation.parameter_count() >= kMinGroupedParameters) {
      parameters = AddGroup(GroupKind::kParameters, "parameters", container);
    }
    std::vector<Instruction> unscoped;
    const size_t shared_scopes = SharedScopes(computation);
    for (const Instruction i : computation.instructions()) {
      int32_t& parent = result_.parent[result_.node_of[i.id().value]];
      if (i.opcode() == Opcode::kParameter) {
        parent = parameters;
        continue;
      }
      const std::vector<std::string_view> scopes = ScopesOf(i);
      if (scopes.size() <= shared_scopes && !i.metadata().op_name.valid()) {
        unscoped.push_back(i);
        continue;
      }
      int32_t node = container;
      for (size_t k = shared_scopes; k < scopes.size(); ++k) {
        const auto [found, added] = scopes_.try_emplace({node, scopes[k]}, 0);
        if (added) found->second = AddGroup(GroupKind::kScope, std::string(scopes[k]), node);
        node = found->second;
      }
      result_.parent[result_.node_of[i.id().value]] = node;
    }
    PlaceByUsers(unscoped, container);
  }

  // Returns the scopes of the op_name, without its last part, the operation.
  std::vector<std::string_view> ScopesOf(Instruction i) const {
    const StringId op_name = i.metadata().op_name;
    if (!op_name.valid()) return {};
    std::vector<std::string_view> scopes = SplitScopes(module_.context().str(op_name), kMaxScopes);
    scopes.pop_back();
    return scopes;
  }

  // Returns how many leading scopes all instructions with an op_name have in common.
  size_t SharedScopes(Computation computation) const {
    std::vector<std::string_view> shared;
    bool first = true;
    for (const Instruction i : computation.instructions()) {
      if (i.opcode() == Opcode::kParameter || !i.metadata().op_name.valid()) continue;
      std::vector<std::string_view> scopes = ScopesOf(i);
      if (std::exchange(first, false)) {
        shared = std::move(scopes);
        continue;
      }
      const size_t both = std::min(shared.size(), scopes.size());
      const auto differ = std::mismatch(shared.begin(), shared.begin() + both, scopes.begin()).first;
      shared.erase(differ, shared.end());
      if (shared.empty()) break;
    }
    return shared.size();
  }

  // Places instructions without an op_name in the innermost group of all their users, else of all their operands.
  void PlaceByUsers(const std::vector<Instruction>& unscoped, int32_t container) {
    for (auto i = unscoped.rbegin(); i != unscoped.rend(); ++i) {
      int32_t node = GraphGroups::kNone;
      for (const auto use : i->uses()) {
        node = InnermostCommon(node, ParentOf(use.user), container);
        if (node == container) break;
      }
      SetParent(*i, node);
    }
    for (const Instruction i : unscoped) {
      if (ParentOf(i) != GraphGroups::kNone) continue;
      int32_t node = GraphGroups::kNone;
      for (const Instruction operand : i.operands()) {
        if (operand.opcode() != Opcode::kParameter) node = InnermostCommon(node, ParentOf(operand), container);
        if (node == container) break;
      }
      SetParent(i, node == GraphGroups::kNone ? container : node);
    }
  }

  int32_t ParentOf(Instruction i) const { return result_.parent[result_.node_of[i.id().value]]; }
  void SetParent(Instruction i, int32_t parent) { result_.parent[result_.node_of[i.id().value]] = parent; }

  // Returns the innermost group in `container` that contains both; kNone is neutral.
  int32_t InnermostCommon(int32_t a, int32_t b, int32_t container) const {
    if (a == GraphGroups::kNone) return b;
    if (b == GraphGroups::kNone || a == b) return a;
    int32_t path[kMaxScopes + 1];
    size_t length = 0;
    for (int32_t node = a; node != container && length < kMaxScopes; node = result_.parent[node]) path[length++] = node;
    for (int32_t node = b; node != container; node = result_.parent[node]) {
      if (std::find(path, path + length, node) != path + length) return node;
    }
    return container;
  }

  // Joins a scope whose only child is a scope with it, "a/b", and puts a scope's only instruction in its place.
  void RemoveTrivialScopes() {
    const size_t instructions = result_.instructions.size();
    std::vector<int32_t> children(result_.parent.size(), 0);
    std::vector<int32_t> only(result_.parent.size(), GraphGroups::kNone);
    for (size_t node = 0; node < result_.parent.size(); ++node) {
      if (result_.parent[node] == GraphGroups::kNone) continue;
      ++children[result_.parent[node]];
      only[result_.parent[node]] = static_cast<int32_t>(node);
    }
    // Parents come before children among groups, so going back an inner scope is joined first.
    std::vector<uint8_t> removed(result_.groups.size(), 0);
    for (size_t g = result_.groups.size(); g-- > 0;) {
      const int32_t node = result_.NodeOfGroup(g);
      if (result_.groups[g].kind != GroupKind::kScope || children[node] != 1) continue;
      const int32_t child = only[node];
      const bool instruction = static_cast<size_t>(child) < instructions;
      if (!instruction) {
        GraphGroup& inner = result_.groups[child - instructions];
        if (inner.kind != GroupKind::kScope) continue;
        inner.label = StrCat(result_.groups[g].label, "/", inner.label);
      }
      const int32_t parent = result_.parent[node];
      result_.parent[child] = parent;
      if (only[parent] == node) only[parent] = child;
      removed[g] = 1;
    }
    // Numbers the remaining groups again.
    std::vector<int32_t> renumbered(result_.groups.size(), GraphGroups::kNone);
    size_t kept = 0;
    for (size_t g = 0; g < result_.groups.size(); ++g) {
      if (removed[g]) continue;
      renumbered[g] = result_.NodeOfGroup(kept);
      if (kept != g) {
        result_.groups[kept] = std::move(result_.groups[g]);
        result_.parent[instructions + kept] = result_.parent[instructions + g];
      }
      ++kept;
    }
    result_.groups.resize(kept);
    result_.parent.resize(instructions + kept);
    for (int32_t& parent : result_.parent) {
      if (parent >= static_cast<int32_t>(instructions)) parent = renumbered[parent - instructions];
    }
  }

  const Module& module_;
  const CallGraph call_graph_;
  GraphGroups result_;
  absl::flat_hash_map<std::pair<int32_t, std::string_view>, int32_t> scopes_;  // by parent and name
};

}  // namespace

std::string_view ToString(GroupKind kind) {
  switch (kind) {
    case GroupKind::kModule:
      return "module";
    case GroupKind::kComputation:
      return "computation";
    case GroupKind::kScope:
      return "scope";
    case GroupKind::kParameters:
      return "parameters";
    case GroupKind::kSection:
      return "section";
    case GroupKind::kShared:
      return "shared";
    case GroupKind::kUncalled:
      return "uncalled";
  }
  return "";
}

std::vector<std::string_view> SplitScopes(std::string_view op_name, size_t limit) {
  std::vector<std::string_view> parts;
  int64_t depth = 0;
  size_t begin = 0;
  for (size_t k = 0; k < op_name.size() && parts.size() + 1 < limit; ++k) {
    const char c = op_name[k];
    if (c == '(') ++depth;
    if (c == ')' && depth > 0) --depth;
    if (c != '/' || depth != 0) continue;
    if (k > begin) parts.push_back(op_name.substr(begin, k - begin));
    begin = k + 1;
  }
  parts.push_back(op_name.substr(begin));
  return parts;
}

std::vector<int32_t> NumberInstructions(const Module& module) {
  std::vector<int32_t> numbers(module.instruction_id_bound(), GraphGroups::kNone);
  int32_t next = 0;
  for (const Computation computation : module.computations()) {
    for (const Instruction i : computation.instructions()) numbers[i.id().value] = next++;
  }
  return numbers;
}

GraphGroups GroupInstructions(const Module& module) { return Grouper(module).Run(); }

}  // namespace hlokit
