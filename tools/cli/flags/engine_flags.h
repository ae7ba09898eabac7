// SPDX-License-Identifier: Apache-2.0
// --explain-engine and --dump-compiled: what the fast engine made of a program.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_ENGINE_FLAGS_H_
#define HLOKIT_TOOLS_CLI_FLAGS_ENGINE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "interp/program/engine.h"
#include "ir/graph/module.h"
#include "tools/cli/cli.h"

namespace hlokit::cli {

struct EngineFlags {
  bool explain = false;
  std::string dump;  // directory

  void AddTo(CLI::App* app);
  // Returns the exit code of a usage error, or nullopt.
  std::optional<int> Check(std::string_view tool, interp::EngineKind engine) const;
  bool wanted() const { return explain || !dump.empty(); }
};

// Writes plan.txt, and of each loop NUMBER.hlo, NUMBER.loop, NUMBER.ll, NUMBER.opt.ll and NUMBER.s; removes such files
// of loops that there are no longer. Returns false after an error, which is printed. Requires: the engine is the fast
// one.
bool DumpEngine(const std::string& directory, const interp::Engine& engine, DiagnosticReporter* diagnostics);

// Prints, on standard error, what runs each instruction. Requires: the engine is the fast one.
void ExplainEngine(const interp::Engine& engine);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_ENGINE_FLAGS_H_
