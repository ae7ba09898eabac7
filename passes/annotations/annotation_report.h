// SPDX-License-Identifier: Apache-2.0
// What passes do to the annotations of a module: scopes, instructions without metadata, what each pass drops.
#ifndef HLOKIT_PASSES_ANNOTATIONS_ANNOTATION_REPORT_H_
#define HLOKIT_PASSES_ANNOTATIONS_ANNOTATION_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/annotations/coverage.h"
#include "passes/core/pipeline.h"

namespace hlokit {

// A scope before and after the passes; 0 where it is absent.
struct ScopeChange {
  struct Numbers {
    int64_t instructions = 0, flops = 0, bytes = 0;
  };
  std::string name;
  int depth = 0;
  Numbers before, after;
};

struct AnnotationReport {
  AnnotationCounts before, after;
  std::vector<ScopeChange> scopes;                                      // as ScopeTree orders them
  std::map<MissingMetadataReason, std::vector<InstructionId>> missing;  // after the passes
  std::vector<MetadataLossTracker::Row> losses;                         // of each pass
};

// Reads the sources of the metadata, runs the passes, and reports. `pipeline` must outlive the report.
absl::StatusOr<AnnotationReport> ReportAnnotations(Pipeline* pipeline, const PipelineOptions& options, Module* module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANNOTATIONS_ANNOTATION_REPORT_H_
