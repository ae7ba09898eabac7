// SPDX-License-Identifier: Apache-2.0
// Prepares modules, those with dynamic dimensions included, with compiled kernels of one's own.
#ifndef HLOKIT_TESTS_PROPERTIES_WITH_KERNELS_H_
#define HLOKIT_TESTS_PROPERTIES_WITH_KERNELS_H_

#include <memory>

#include "interp/compiled/compiled_kernels.h"
#include "interp/dynamic/sized_engine.h"
#include "interp/exact/evaluator.h"
#include "interp/interface/engine.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit {

inline std::unique_ptr<interp::Engine> PrepareWithKernels(
    const std::shared_ptr<interp::compiled::CompiledKernels>& kernels, const Module& module,
    const interp::EvaluatorOptions& options, DiagnosticSink* sink) {
  const auto prepare = [&](const Module& m, const interp::EvaluatorOptions& o, DiagnosticSink* s) {
    return std::unique_ptr<interp::Engine>(interp::Evaluator::Prepare(m, o, s, kernels));
  };
  return interp::PrepareSized(prepare, module, options, sink);
}

}  // namespace hlokit

#endif  // HLOKIT_TESTS_PROPERTIES_WITH_KERNELS_H_
