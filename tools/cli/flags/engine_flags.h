// SPDX-License-Identifier: Apache-2.0
// --explain-engine and --dump-compiled: what the fast engine made of a program.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_ENGINE_FLAGS_H_
#define HLOKIT_TOOLS_CLI_FLAGS_ENGINE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "interp/interface/engine.h"
#include "interp/program/engine_table.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

// Returns the help of a flag that names an engine: `what`, and a clause for each.
std::string EngineHelp(std::string_view what);

struct EngineFlags {
  bool explain = false;
  std::string dump;  // directory

  void AddTo(CLI::App* app);
  // Returns the exit code of a usage error, or nullopt.
  std::optional<int> Check(std::string_view tool, interp::EngineKind engine) const;
  bool wanted() const { return explain || !dump.empty(); }
};

// Writes plan.txt, and of each loop a file NUMBER.EXTENSION for each of its stages; removes such files of loops that
// there are no longer. Returns false after an error, which is printed.
bool DumpEngine(const std::string& directory, const interp::CodeInspection& code, DiagnosticReporter* diagnostics);

// Prints, on standard error, what runs each instruction.
void ExplainEngine(const interp::CodeInspection& code);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_ENGINE_FLAGS_H_
