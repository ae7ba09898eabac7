// SPDX-License-Identifier: Apache-2.0
// Snapshots of executions: the values recorded in the file of a program, and messages that record those of a run.
#ifndef HLOKIT_CHECK_ARGUMENTS_SNAPSHOT_H_
#define HLOKIT_CHECK_ARGUMENTS_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/evaluator_options.h"
#include "interp/program/executable.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "parser/proto/proto_file.h"

namespace hlokit::interp {

// Leaves in order; of several devices one after another.
struct SnapshotValues {
  std::optional<std::vector<Literal>> arguments;
  std::optional<std::vector<Literal>> result;
};

// Opens `text`, a part of `source`, if it is an HloSnapshot or HloUnoptimizedSnapshot. Returns null for others, and
// after errors, which are in the sink.
std::unique_ptr<ProtoFile> OpenSnapshot(const SourceBuffer& source, std::string_view text, DiagnosticSink* sink);

// Sets the devices of a run of a snapshot that has the arguments of several: as many partitions, or replicas if all
// communication is among these.
void ChooseDevices(const ProtoFile& file, const Module& module, EvaluatorOptions* options);

// Reads the values of a snapshot. One list of arguments is that of every device. Lists that divide the parameters of a
// program before partitioning become whole arguments.
absl::StatusOr<SnapshotValues> ReadSnapshotValues(const ProtoFile& file, const Module& module,
                                                  const Executable& executable, const EvaluatorOptions& options);

// Returns the bytes of a snapshot of a run: of one device an HloSnapshot, with the results if there are any; of several
// an HloUnoptimizedSnapshot with the arguments of each, which has no place for results.
absl::StatusOr<std::string> FormatSnapshot(const Module& module, ProtoEncoding encoding, int64_t devices,
                                           absl::Span<const Literal> arguments,
                                           std::optional<absl::Span<const Literal>> results);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ARGUMENTS_SNAPSHOT_H_
