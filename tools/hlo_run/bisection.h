// SPDX-License-Identifier: Apache-2.0
// --bisect-passes: which pass changes the results of the module.
#ifndef HLOKIT_TOOLS_HLO_RUN_BISECTION_H_
#define HLOKIT_TOOLS_HLO_RUN_BISECTION_H_

#include "ir/graph/module.h"
#include "tools/cli/cli.h"
#include "tools/hlo_run/flags.h"

namespace hlokit::run {

// Prints the first pass, and rewrite in it, after which the results differ, which fails. Writes the module before that
// pass, reduced if the flags say so.
void BisectModule(const Flags& flags, const Module& module, cli::DiagnosticReporter* diagnostics);

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_BISECTION_H_
