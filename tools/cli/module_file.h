// SPDX-License-Identifier: Apache-2.0
// Writes a module to a file, in the format that the suffix of its name says, as hlo-translate does.
#ifndef HLOKIT_TOOLS_CLI_MODULE_FILE_H_
#define HLOKIT_TOOLS_CLI_MODULE_FILE_H_

#include <optional>
#include <string>
#include <string_view>

#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

// The formats of StableHLO, which are no module formats: they are programs of their own.
inline constexpr std::string_view kStablehloFormat = "stablehlo";
inline constexpr std::string_view kArtifactFormat = "artifact";

// Returns the name of the format that the suffix says: one of ModuleFormats, kStablehloFormat (.mlir) or
// kArtifactFormat (.mlir.bc); "hlo" for suffixes of no format.
std::string_view FormatOfPath(std::string_view path);

// Returns the module in a format; nullopt after errors, which are printed. `source`: what the module was read from.
std::optional<std::string> ModuleInFormat(const Module& module, std::string_view format, const SourceBuffer& source,
                                          DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_MODULE_FILE_H_
