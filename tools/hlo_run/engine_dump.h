// SPDX-License-Identifier: Apache-2.0
// --dump-compiled: the plan of the fast engine and the stages of its loops as files.
#ifndef HLOKIT_TOOLS_HLO_RUN_ENGINE_DUMP_H_
#define HLOKIT_TOOLS_HLO_RUN_ENGINE_DUMP_H_

#include <string>

#include "ir/graph/module.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/engine.h"

namespace hlokit::run {

// Writes plan.txt, and of each loop NUMBER.hlo, NUMBER.loop, NUMBER.ll, NUMBER.opt.ll and NUMBER.s. Returns false after
// an error, which is printed. Requires: the engine is the fast one.
bool DumpEngine(const std::string& directory, const Module& module, const Engine& engine,
                cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_ENGINE_DUMP_H_
