// SPDX-License-Identifier: Apache-2.0
// The fast engine: the exact one with compiled kernels.
#ifndef HLOKIT_INTERP_COMPILED_FAST_ENGINE_H_
#define HLOKIT_INTERP_COMPILED_FAST_ENGINE_H_

#include <memory>
#include <string>

#include "interp/interface/engine.h"
#include "interp/interface/evaluator_options.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

// Returns null after an error. Warns if the modules that generate code and have the products are not installed.
std::unique_ptr<Engine> PrepareFastEngine(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink);

// Prepares a module in which each instruction is compiled by itself, however small.
std::unique_ptr<Engine> PrepareSingleLoops(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink);

// Returns the passes for the fast engine: `cpu`, or none if the program draws random numbers in the order of its
// instructions, which passes change, or reads bytes of one type as another one.
std::string PassesForFastEngine(const Module& module, MixedPrecisionMode mode);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_FAST_ENGINE_H_
