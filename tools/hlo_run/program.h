// SPDX-License-Identifier: Apache-2.0
// The programs of an invocation, read and compiled as the flags say. Errors and warnings are printed.
#ifndef HLOKIT_TOOLS_HLO_RUN_PROGRAM_H_
#define HLOKIT_TOOLS_HLO_RUN_PROGRAM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interp/program/compile.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "tools/cli/cli.h"
#include "tools/cli/crash/interrupt.h"
#include "tools/hlo_run/flags.h"

namespace hlokit::run {

// A module with its text.
struct Program {
  cli::InputPart part;
  std::unique_ptr<Module> module;
};

// Reads and verifies the one module of a file. Sizes that it leaves open are those of --shape, `sizes`, or those of the
// arguments that the flags name.
std::optional<Program> ReadProgram(const std::string& path, const Flags& flags, std::shared_ptr<Context> context,
                                   cli::DiagnosticReporter* diagnostics, const std::vector<std::string>& sizes = {});

// How programs are compiled. Instructions that flags show are those of the module.
interp::CompileOptions CompileOptionsOf(const Flags& flags);

std::optional<interp::LoweredProgram> LowerProgram(const Program& program, const interp::CompileOptions& compile,
                                                   const interp::EvaluatorOptions& options,
                                                   cli::DiagnosticReporter* diagnostics);
std::unique_ptr<interp::Executable> CompileProgram(const Program& program, interp::LoweredProgram lowered,
                                                   const interp::CompileOptions& compile,
                                                   const interp::EvaluatorOptions& options,
                                                   cli::DiagnosticReporter* diagnostics);
// Clears the line of progress.
std::optional<std::vector<Literal>> RunOnce(const Program& program, interp::Executable* executable,
                                            const std::vector<Literal>& arguments, cli::ProgressLine* progress,
                                            cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_PROGRAM_H_
