// SPDX-License-Identifier: Apache-2.0
// Bounded dynamic dimensions for every engine: an engine runs static programs, here the one in whose place they are.
#ifndef HLOKIT_INTERP_DYNAMIC_SIZED_ENGINE_H_
#define HLOKIT_INTERP_DYNAMIC_SIZED_ENGINE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "interp/interface/engine.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

using PrepareFunction = absl::FunctionRef<std::unique_ptr<Engine>(const Module& module, const EvaluatorOptions& options,
                                                                  DiagnosticSink* sink)>;

// Prepares a module by `prepare`, or, if it has dynamic dimensions, the static program in its place (sized_program.h),
// whose run observers see as that of the module. Returns null after an error.
std::unique_ptr<Engine> PrepareSized(PrepareFunction prepare, const Module& module, const EvaluatorOptions& options,
                                     DiagnosticSink* sink);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_DYNAMIC_SIZED_ENGINE_H_
