// SPDX-License-Identifier: Apache-2.0
// Which annotations a module has, and what passes do to them.
#ifndef HLOKIT_PASSES_ANNOTATIONS_COVERAGE_H_
#define HLOKIT_PASSES_ANNOTATIONS_COVERAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/cost.h"
#include "passes/core/pass_instrumentation.h"

namespace hlokit {

// Ids of single sources (see MetadataPool::Sources), sorted, each once. `effective_only`: only of instructions that the
// results or an effect of a reachable computation depend on.
std::vector<uint32_t> AnnotationsOf(const Module& module, bool effective_only);

// Instructions of reachable computations, and how many of them have no annotation.
struct AnnotationCounts {
  int64_t instructions = 0;
  int64_t without = 0;
  int64_t annotations = 0;  // different ones
};
AnnotationCounts CountAnnotations(const Module& module);

// Instructions of reachable computations that have no annotation, each with the reason.
enum class MissingMetadataReason : uint8_t {
  kNothingAnnotated,  // nothing in the module has one
  kNothingConnected,  // nothing it is connected with, in its computation or by callers, has one
  kNotPropagated,     // something it is connected with has one, which propagate-annotations would give it
};
struct MissingMetadata {
  InstructionId id;
  MissingMetadataReason reason;
};
std::vector<MissingMetadata> InstructionsMissingMetadata(const Module& module);
// The reason in words.
std::string_view ToString(MissingMetadataReason why);

// Notes after each pass which annotations of effective instructions are on no instruction any more.
class MetadataLossTracker : public PassInstrumentation {
 public:
  struct Row {
    std::string_view pass;
    std::vector<MetadataId> lost;  // sorted
  };

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

  // Passes in the order of their first runs; those that lost nothing too.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::vector<uint32_t> before_;
};

// The op_name of a source, or "(no name)".
std::string_view SourceName(const Module& module, MetadataId source);

// A tree of scopes: the parts of op_names between slashes. Node 0 is the whole module; children stand behind their
// parents, sorted by name.
struct ScopeNode {
  std::string name;
  int depth = 0;
  int64_t instructions = 0;  // in the scope and below
  Cost cost;
};
std::vector<ScopeNode> ScopeTree(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANNOTATIONS_COVERAGE_H_
