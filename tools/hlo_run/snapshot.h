// SPDX-License-Identifier: Apache-2.0
// Snapshots of executions: the values recorded in the file of a program, and files that record those of a run.
#ifndef HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_
#define HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "interp/interface/evaluator_options.h"
#include "interp/program/executable.h"
#include "interp/program/sharded_arrays.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "parser/proto/proto_file.h"
#include "tools/cli/cli.h"

namespace hlokit::run {

// Leaves in order; of several devices one after another.
struct RecordedValues {
  std::optional<std::vector<Literal>> arguments;
  std::optional<std::vector<Literal>> result;
};

// Opens an input that is an HloSnapshot or HloUnoptimizedSnapshot; `*file` stays null for others. Returns false after
// an error.
bool OpenSnapshot(const cli::InputPart& part, cli::DiagnosticReporter* diagnostics, std::unique_ptr<ProtoFile>* file);

// Sets the devices of a run of a snapshot that has the arguments of several: as many partitions, or replicas if all
// communication is among these.
void ChooseDevices(const ProtoFile& file, const Module& module, interp::EvaluatorOptions* options);

// Reads the values of a snapshot, of the input `label`. One list of arguments is that of every device. `parts`: how the
// lists divide the parameters of a program before partitioning, which get whole arguments; may be null. Returns false
// after an error.
bool ReadRecordedValues(const std::string& label, const ProtoFile& file, const Module& module,
                        const interp::Executable& executable, const interp::ShardedArrays* parts,
                        const interp::EvaluatorOptions& options, cli::DiagnosticReporter* diagnostics,
                        RecordedValues* values);

// The encoding that the suffix of a snapshot says: bytes of names without a suffix; nullopt for another suffix.
std::optional<ProtoEncoding> EncodingOfSnapshot(std::string_view path);

// Writes a snapshot of a run: of one device an HloSnapshot, with the results if there are any; of several an
// HloUnoptimizedSnapshot with the arguments of each, which has no place for results. In the encoding that the
// suffix says (EncodingOfSnapshot). Returns false after an error.
bool WriteRunSnapshot(const std::string& path, const Module& module, int64_t devices,
                      absl::Span<const Literal> arguments, std::optional<absl::Span<const Literal>> results,
                      cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_
