// SPDX-License-Identifier: Apache-2.0
// Snapshots of executions as inputs and outputs of hlo-run.
#ifndef HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_
#define HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_

#include <memory>
#include <optional>
#include <string_view>

#include "parser/proto/proto_file.h"
#include "tools/cli/cli.h"

namespace hlokit::run {

// Opens an input that is a snapshot; `*file` stays null for others. Returns false after an error, which is printed.
bool OpenSnapshot(const cli::InputPart& part, cli::DiagnosticReporter* diagnostics, std::unique_ptr<ProtoFile>* file);

// The encoding that the suffix of a snapshot says: bytes of names without a suffix; nullopt for another suffix.
std::optional<ProtoEncoding> EncodingOfSnapshot(std::string_view path);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_SNAPSHOT_H_
