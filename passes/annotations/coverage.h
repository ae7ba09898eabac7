// SPDX-License-Identifier: Apache-2.0
// Coverage of a module by metadata, and its loss in passes.
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

// Returns the ids of single sources (see MetadataPool::Sources), sorted and distinct. `effective_only`: only of
// instructions that the results or a side effect of a reachable computation depend on.
std::vector<uint32_t> AnnotationsOf(const Module& module, bool effective_only);

// Counts of the instructions of reachable computations, and of those without metadata.
struct AnnotationCounts {
  int64_t instructions = 0;
  int64_t without = 0;
  int64_t annotations = 0;  // distinct sources
};
AnnotationCounts CountAnnotations(const Module& module);

// Why an instruction of a reachable computation has no metadata.
enum class MissingMetadataReason : uint8_t {
  kNothingAnnotated,  // no instruction of the module has metadata
  kNothingConnected,  // no instruction connected with it, in its computation or through callers, has metadata
  kNotPropagated,     // a connected instruction has metadata, which propagate-annotations would copy
};
struct MissingMetadata {
  InstructionId id;
  MissingMetadataReason reason;
};
std::vector<MissingMetadata> InstructionsMissingMetadata(const Module& module);
// Returns a description of the reason.
std::string_view ToString(MissingMetadataReason why);

// Records after each pass which metadata sources of effective instructions no instruction carries any more.
class MetadataLossTracker : public PassInstrumentation {
 public:
  struct Row {
    std::string_view pass;
    std::vector<MetadataId> lost;  // sorted
  };

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

  // Returns the passes in the order of their first runs, including those without losses.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::vector<uint32_t> before_;
};

// Returns the op_name of a source, or "(no name)".
std::string_view SourceName(const Module& module, MetadataId source);

// A tree of scopes: the components of op_names between slashes. Node 0 is the whole module; children come after their
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
