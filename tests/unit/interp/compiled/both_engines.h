// SPDX-License-Identifier: Apache-2.0
// Runs a module on the fast engine and on the exact one.
#ifndef HLOKIT_TESTS_UNIT_INTERP_COMPILED_BOTH_ENGINES_H_
#define HLOKIT_TESTS_UNIT_INTERP_COMPILED_BOTH_ENGINES_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "interp/arguments/argument_generator.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "interp/values/value_comparison.h"
#include "ir/core/source_buffer.h"
#include "parser/core/parser.h"

namespace hlokit::interp::compiled {

struct FastRun {
  std::vector<CompiledLoop> loops;
  std::vector<KernelChoice> choices;
};

// Runs the module on both engines and expects values within `tolerance`, and the same bits for any number of threads.
inline FastRun RunBoth(std::string_view text, double tolerance) {
  FastRun run;
  DiagnosticSink sink;
  const std::unique_ptr<Module> module =
      ParseModule(std::make_shared<const SourceBuffer>("m.hlo", std::string(text)), ParseOptions(), &sink);
  EXPECT_NE(module, nullptr);
  if (module == nullptr) return run;
  EvaluatorOptions options;
  const auto exact = Evaluator::Prepare(*module, options, &sink);
  const auto kernels = std::make_shared<CompiledKernels>(ObservationRequest());
  options.kernels = kernels;
  const auto fast = Evaluator::Prepare(*module, options, &sink);
  EXPECT_TRUE(exact != nullptr && fast != nullptr);
  if (exact == nullptr || fast == nullptr) return run;
  const std::vector<Literal> arguments = MakeFakeArguments(exact->argument_shapes(), 1);
  const auto expected = exact->Run(arguments, &sink);
  ErrorSpec bounds;
  if (tolerance > 0) bounds.absolute = tolerance;
  std::vector<Literal> first;
  // Memory is kept from run to run: the second one must not see what the first left.
  for (int i = 0; i < 2; ++i) {
    const auto actual = fast->Run(arguments, &sink);
    EXPECT_TRUE(expected && actual);
    if (!expected || !actual) return run;
    const auto difference = CompareValues(*actual, *expected, bounds);
    EXPECT_TRUE(difference.ok() && difference->equal()) << (difference.ok() ? difference->description : "shapes");
    if (i == 0) first = *actual;
  }
  for (int threads : {2, 3, 8}) {
    options.kernels = std::make_shared<CompiledKernels>(ObservationRequest());
    options.num_threads = threads;
    const auto other = Evaluator::Prepare(*module, options, &sink);
    EXPECT_NE(other, nullptr);
    if (other == nullptr) return run;
    const auto actual = other->Run(arguments, &sink);
    EXPECT_TRUE(actual);
    if (!actual) return run;
    const auto difference = CompareValues(*actual, first, ErrorSpec());
    EXPECT_TRUE(difference.ok() && difference->equal()) << threads << " threads";
  }
  run.loops = kernels->loops();
  run.choices = kernels->choices();
  return run;
}

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_TESTS_UNIT_INTERP_COMPILED_BOTH_ENGINES_H_
