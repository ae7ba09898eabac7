// SPDX-License-Identifier: Apache-2.0
// Shared by the commands of hlo-inspect that look for instructions: queries and names from the command line, and places
// of instructions in the text.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_QUERY_H_
#define HLOKIT_TOOLS_HLO_INSPECT_QUERY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/graph/module.h"
#include "ir/graph/text_lines.h"
#include "passes/query/query.h"
#include "tools/hlo_inspect/command.h"

namespace hlokit::cli {

// Parses a pattern and a condition, "" for none. Returns nullopt after errors, which are printed with their positions.
std::optional<query::Query> ParseQuery(const std::string& pattern, const std::string& where,
                                       DiagnosticReporter* diagnostics);

// Adds the argument PATTERN and --where.
void AddQueryFlags(CLI::App* command, std::string* pattern, std::string* where);

// Finds an instruction by its name (query::FindNamed). Prints an error and returns an invalid instruction if there is
// none.
Instruction FindNamed(const Module& module, const InputPart& part, std::string_view name,
                      DiagnosticReporter* diagnostics);

// Returns "12: %x = ...": the instruction with its line, shortened in the middle if it is long. The caller names the
// file, once.
std::string LineOf(const TextLines& lines, Instruction instruction);
// Returns it with the file, "file.hlo:12: %x = ...", for lists of several files.
std::string LineOf(const InputPart& part, const TextLines& lines, Instruction instruction);

// Writes the members `name`, `computation`, `opcode`, `shape`, `line` and `text` of an object.
void WriteMembers(const TextLines& lines, Instruction instruction, JsonWriter* json);
// Begins the object of a module: `file`, `group` of several, `module`.
void BeginModule(const InputPart& part, const Module& module, JsonWriter* json);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_QUERY_H_
