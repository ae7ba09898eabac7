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

// Returns the name of the format that the suffix says, one of ModuleFormats; "hlo" for names without a suffix and
// devices, nullopt for another suffix.
std::optional<std::string_view> FormatOfPath(std::string_view path);

// Prints that the suffix of an output is that of no format, those that are, and `hint`, if it is not "". Returns
// kUsage.
int UnknownSuffixError(std::string_view tool, std::string_view path, std::string_view hint = "");

// Returns the module in a format; nullopt after errors, which are printed. `source`: what the module was read from.
std::optional<std::string> ModuleInFormat(const Module& module, std::string_view format, const SourceBuffer& source,
                                          DiagnosticReporter* diagnostics);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_MODULE_FILE_H_
