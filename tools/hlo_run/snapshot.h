// SPDX-License-Identifier: Apache-2.0
// Snapshots of executions: the values recorded in the file of a program, and files that record those of a run.
#ifndef HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_
#define HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "interp/reference/engine.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "tools/cli/cli.h"

namespace hlokit::run {

// Leaves in order; of several devices one after another.
struct RecordedValues {
  std::optional<std::vector<Literal>> arguments;
  std::optional<std::vector<Literal>> result;
};

// Reads the values of an input that is an HloSnapshot or HloUnoptimizedSnapshot; none of others. One list of arguments
// is that of every device. Returns false after an error.
bool ReadRecordedValues(const cli::InputPart& part, const Module& module, const interp::Engine& evaluator,
                        int64_t max_bytes, cli::DiagnosticReporter* diagnostics, RecordedValues* values);

// Writes an HloSnapshot of a run on one device: text format if the file's name ends so, else bytes. Returns false after
// an error.
bool WriteRunSnapshot(const std::string& path, const Module& module, absl::Span<const Literal> arguments,
                      absl::Span<const Literal> results, cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_
