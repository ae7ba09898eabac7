// SPDX-License-Identifier: Apache-2.0
#include "passes/annotations/coverage.h"

#include <algorithm>
#include <map>

#include "ir/graph/side_effects.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/propagate.h"

namespace hlokit {
namespace {

// Calls f on the effective instructions of reachable computations, or on all of them.
template <typename F>
void ForEach(const Module& module, bool effective_only, F f) {
  const CallGraph graph(module);
  const SideEffects effects(module);
  std::vector<uint8_t> seen(effective_only ? module.instruction_id_bound() : 0, 0);
  std::vector<InstructionId> open;
  for (Computation c : module.computations()) {
    if (!graph.IsLive(c)) continue;
    if (!effective_only) {
      for (Instruction i : c.instructions()) f(i);
      continue;
    }
    for (Instruction i : c.instructions()) {
      if (i.is_root() || effects.Of(i)) open.push_back(i.id());
    }
    while (!open.empty()) {
      const Instruction i = module.instruction(open.back());
      open.pop_back();
      if (seen[i.id().value]++ != 0) continue;
      seen[i.id().value] = 1;
      f(i);
      for (Instruction operand : i.operands()) open.push_back(operand.id());
      for (Instruction predecessor : i.control_predecessors()) open.push_back(predecessor.id());
    }
  }
}

// Splits `op_name` at slashes outside of brackets: "jit(f/g)/h" has two components.
std::vector<std::string_view> Parts(std::string_view name) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= name.size(); ++i) {
    if (i == name.size() || (name[i] == '/' && depth == 0)) {
      if (i > begin) parts.push_back(name.substr(begin, i - begin));
      begin = i + 1;
    } else if (name[i] == '(' || name[i] == '[') {
      ++depth;
    } else if ((name[i] == ')' || name[i] == ']') && depth > 0) {
      --depth;
    }
  }
  return parts;
}

}  // namespace

std::vector<uint32_t> AnnotationsOf(const Module& module, bool effective_only) {
  const MetadataPool& pool = module.context().metadata;
  std::vector<uint8_t> known(pool.size(), 0);
  std::vector<uint32_t> annotations;
  ForEach(module, effective_only, [&](Instruction i) {
    const MetadataId id = i.metadata_id();
    if (!id.valid() || known[id.value]++ != 0) return;
    known[id.value] = 1;
    for (MetadataId origin : pool.Sources(id)) annotations.push_back(origin.value);
  });
  std::sort(annotations.begin(), annotations.end());
  annotations.erase(std::unique(annotations.begin(), annotations.end()), annotations.end());
  return annotations;
}

AnnotationCounts CountAnnotations(const Module& module) {
  AnnotationCounts counts;
  ForEach(module, false, [&](Instruction i) {
    ++counts.instructions;
    counts.without += i.metadata_id().valid() ? 0 : 1;
  });
  counts.annotations = static_cast<int64_t>(AnnotationsOf(module, false).size());
  return counts;
}

std::vector<MissingMetadata> InstructionsMissingMetadata(const Module& module) {
  std::vector<MissingMetadata> result;
  bool any = false;
  ForEach(module, false, [&](Instruction i) {
    any |= i.metadata_id().valid();
    if (!i.metadata_id().valid()) result.push_back({i.id(), MissingMetadataReason::kNothingAnnotated});
  });
  if (!any || result.empty()) return result;
  Module named = module.Clone();
  PropagateAnnotations pass;
  const bool ran = pass.Run(named).ok();
  for (MissingMetadata& i : result) {
    const bool given = ran && named.record(i.id).metadata.valid();
    i.reason = given ? MissingMetadataReason::kNotPropagated : MissingMetadataReason::kNothingConnected;
  }
  return result;
}

std::string_view ToString(MissingMetadataReason why) {
  switch (why) {
    case MissingMetadataReason::kNothingAnnotated:
      return "no instruction of the module has metadata";
    case MissingMetadataReason::kNothingConnected:
      return "no connected instruction has metadata";
    case MissingMetadataReason::kNotPropagated:
      return "propagate-annotations would add the metadata of a neighbor";
  }
  return "";
}

absl::Status MetadataLossTracker::RunBeforePass(const PassRun&, const Module& module) {
  before_ = AnnotationsOf(module, /*effective_only=*/true);
  return absl::OkStatus();
}

absl::Status MetadataLossTracker::RunAfterPass(const PassRun& run, const Module& module, bool changed) {
  Row* row = nullptr;
  for (Row& known : rows_) {
    if (known.pass == run.info.name) row = &known;
  }
  if (row == nullptr) {
    row = &rows_.emplace_back();
    row->pass = run.info.name;
  }
  if (!changed) return absl::OkStatus();
  const std::vector<uint32_t> after = AnnotationsOf(module, /*effective_only=*/false);
  std::vector<uint32_t> lost;
  std::set_difference(before_.begin(), before_.end(), after.begin(), after.end(), std::back_inserter(lost));
  for (uint32_t id : lost) row->lost.emplace_back(id);
  return absl::OkStatus();
}

std::string_view SourceName(const Module& module, MetadataId source) {
  const StringId name = module.context().metadata[source].op_name;
  return name.valid() ? module.context().str(name) : "(no name)";
}

std::vector<ScopeNode> ScopeTree(const Module& module) {
  const CostAnalysis costs(module);
  CostTableOptions options;
  options.key = CostKey::kScope;
  struct Node {
    int64_t instructions = 0;
    Cost cost;
    std::map<std::string, uint32_t, std::less<>> children;
  };
  std::vector<Node> nodes(1);
  for (const CostRow& row : CostTable(module, costs, options)) {
    uint32_t at = 0;
    for (std::string_view part : Parts(row.key)) {
      nodes[at].instructions += row.count;
      nodes[at].cost.Add(row.cost);
      const uint32_t next = static_cast<uint32_t>(nodes.size());
      const auto [child, inserted] = nodes[at].children.try_emplace(std::string(part), next);
      at = child->second;
      if (inserted) nodes.emplace_back();
    }
    nodes[at].instructions += row.count;
    nodes[at].cost.Add(row.cost);
  }
  std::vector<ScopeNode> tree;
  struct Open {
    std::string name;
    uint32_t node;
    int depth;
  };
  std::vector<Open> open = {{"", 0, 0}};
  while (!open.empty()) {
    const Open top = open.back();
    open.pop_back();
    const Node& node = nodes[top.node];
    tree.push_back({top.name, top.depth, node.instructions, node.cost});
    for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
      open.push_back({child->first, child->second, top.depth + 1});
    }
  }
  return tree;
}

}  // namespace hlokit
