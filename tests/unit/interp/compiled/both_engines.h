// SPDX-License-Identifier: Apache-2.0
// Runs a module on the fast engine and on the exact one.
#ifndef HLOKIT_TESTS_UNIT_INTERP_COMPILED_BOTH_ENGINES_H_
#define HLOKIT_TESTS_UNIT_INTERP_COMPILED_BOTH_ENGINES_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/comparison/value_comparison.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "parser/formats/parser.h"

namespace hlokit::interp::compiled {

struct FastRun {
  std::vector<CompiledLoop> loops;
  std::vector<KernelChoice> choices;
};

// Expects values within the bounds: one of all arrays of the result, or one for each.
inline void ExpectWithin(const std::vector<Literal>& actual, const std::vector<Literal>& expected,
                         const std::vector<ErrorSpec>& bounds) {
  ASSERT_EQ(actual.size(), expected.size());
  ASSERT_TRUE(bounds.size() == 1 || bounds.size() == actual.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const auto difference = CompareValues({&actual[i], 1}, {&expected[i], 1}, bounds[bounds.size() == 1 ? 0 : i]);
    ASSERT_TRUE(difference.ok()) << "array " << i;
    EXPECT_TRUE(difference->equal()) << "array " << i << ": " << difference->description;
  }
}

inline ErrorSpec Ulps(double n) {
  ErrorSpec bounds;
  bounds.ulp = n;
  return bounds;
}
inline ErrorSpec Absolute(double difference) {
  ErrorSpec bounds;
  bounds.absolute = difference;
  return bounds;
}

// Runs the module on both engines and expects values within the bounds, and the same bits for any number of threads.
inline FastRun RunBoth(std::string_view text, const std::vector<ErrorSpec>& bounds) {
  FastRun run;
  DiagnosticSink sink;
  const std::unique_ptr<Module> module =
      ParseModule(std::make_shared<const SourceBuffer>("m.hlo", std::string(text)), ParseOptions(), &sink);
  EXPECT_NE(module, nullptr);
  if (module == nullptr) return run;
  EvaluatorOptions options;
  const auto exact = Evaluator::Prepare(*module, options, &sink);
  const auto kernels = std::make_shared<CompiledKernels>(ObservationRequest());
  const auto fast = Evaluator::Prepare(*module, options, &sink, kernels);
  EXPECT_TRUE(exact != nullptr && fast != nullptr);
  if (exact == nullptr || fast == nullptr) return run;
  const std::vector<Literal> arguments = MakeFakeArguments(exact->argument_shapes(), 1);
  const auto expected = exact->Run(arguments, &sink);
  std::vector<Literal> first;
  // Memory is kept from run to run: the second one must not see what the first left.
  for (int i = 0; i < 2; ++i) {
    const auto actual = fast->Run(arguments, &sink);
    EXPECT_TRUE(expected && actual);
    if (!expected || !actual) return run;
    ExpectWithin(*actual, *expected, bounds);
    if (i == 0) first = *actual;
  }
  for (int threads : {2, 3, 8}) {
    options.num_threads = threads;
    const auto other =
        Evaluator::Prepare(*module, options, &sink, std::make_shared<CompiledKernels>(ObservationRequest()));
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

// With one absolute difference for all elements; 0: the same bits.
inline FastRun RunBoth(std::string_view text, double tolerance) {
  return RunBoth(text, std::vector<ErrorSpec>{tolerance > 0 ? Absolute(tolerance) : ErrorSpec()});
}

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_TESTS_UNIT_INTERP_COMPILED_BOTH_ENGINES_H_
