// SPDX-License-Identifier: Apache-2.0
#include "passes/annotations/annotation_report.h"

#include <cstddef>
#include <utility>

#include "ir/core/str_cat.h"
#include "passes/annotations/text.h"

namespace hlokit {
namespace {

// Merges two trees, both sorted depth first, by full path.
std::vector<ScopeChange> MergeScopes(const std::vector<ScopeNode>& before, const std::vector<ScopeNode>& after) {
  std::map<std::string, ScopeChange> by_path;
  for (const auto& [tree, side] : {std::pair(&before, &ScopeChange::before), std::pair(&after, &ScopeChange::after)}) {
    std::vector<std::string> path;
    for (const ScopeNode& node : *tree) {
      path.resize(static_cast<size_t>(node.depth));
      path.push_back(node.name);
      // A character below all others sorts children after their parents and before the parents' next siblings.
      std::string key;
      for (const std::string& part : path) StrAppend(&key, part, '\x01');
      ScopeChange& scope = by_path[key];
      scope.name = node.name;
      scope.depth = node.depth;
      scope.*side = {node.instructions, node.cost.flops, node.cost.bytes()};
    }
  }
  std::vector<ScopeChange> merged;
  for (auto& [key, scope] : by_path) merged.push_back(std::move(scope));
  return merged;
}

}  // namespace

absl::StatusOr<AnnotationReport> ReportAnnotations(Pipeline* pipeline, const PipelineOptions& options, Module* module) {
  AnnotationReport report;
  ReadMetadataSources(*module);
  report.before = CountAnnotations(*module);
  const std::vector<ScopeNode> scopes = ScopeTree(*module);
  MetadataLossTracker loss;
  PassInstrumentation* const instruments[] = {&loss};
  const absl::StatusOr<Pipeline::Result> result = pipeline->Run(*module, options, instruments);
  if (!result.ok()) return result.status();
  report.after = CountAnnotations(*module);
  report.scopes = MergeScopes(scopes, ScopeTree(*module));
  for (const MissingMetadata& i : InstructionsMissingMetadata(*module)) report.missing[i.reason].push_back(i.id);
  report.losses = loss.rows();
  return report;
}

}  // namespace hlokit
