// SPDX-License-Identifier: Apache-2.0
// Errors of the functions in generated loops, in units in the last place of the result, against double.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kCount = 1 << 20;

// Floats of all magnitudes and both signs, special values among them.
std::vector<float> Samples() {
  std::vector<float> samples;
  for (int64_t i = 0; i < kCount; ++i) samples.push_back(std::bit_cast<float>(static_cast<uint32_t>(i * 4095 + i % 7)));
  const float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, infinity, -infinity, std::nanf(""), 1.0f, -1.0f, 88.73f, -103.9f, 1e-45f};
  std::copy(std::begin(special), std::end(special), samples.begin());
  // Half of them where the functions change.
  for (int64_t i = kCount / 2; i < kCount; ++i) samples[i] = static_cast<float>((i - kCount * 3 / 4) * 4e-5);
  return samples;
}

// Distance from the exact value in units in the last place of the float nearest to it.
double UlpsBetween(float actual, double exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : std::numeric_limits<double>::infinity();
  if (std::fabs(exact) > std::numeric_limits<float>::max()) exact = std::copysign(0x1p128, exact);
  double value = actual;
  if (std::isinf(value)) value = std::copysign(0x1p128, value);
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(value - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Function {
  const char* opcode;
  double (*exact)(double);
};

class LoopMathTest : public testing::TestWithParam<Function> {};

TEST_P(LoopMathTest, IsWithinTwoUlps) {
  if (!Generator().ok()) GTEST_SKIP() << "this build has no LLVM";
  const std::string text = StrCat("HloModule m\nENTRY e {\n  x = f32[", kCount, "] parameter(0)\n  ROOT y = f32[",
                                  kCount, "] ", GetParam().opcode, "(x)\n}\n");
  DiagnosticSink sink;
  const std::unique_ptr<Module> module =
      ParseModule(std::make_shared<const SourceBuffer>("m.hlo", text), ParseOptions(), &sink);
  ASSERT_NE(module, nullptr);
  const auto kernels = std::make_shared<CompiledKernels>(ObservationRequest());
  const auto evaluator = Evaluator::Prepare(*module, EvaluatorOptions(), &sink, kernels);
  ASSERT_NE(evaluator, nullptr);
  ASSERT_EQ(kernels->statistics().compiled + kernels->statistics().found, 1);
  std::vector<Literal> arguments;
  arguments.push_back(Literal::Zeros(evaluator->argument_shapes()[0]));
  const std::vector<float> samples = Samples();
  std::copy(samples.begin(), samples.end(), arguments[0].values<float>().begin());
  const auto results = evaluator->Run(arguments, &sink);
  ASSERT_TRUE(results.has_value());
  double worst = 0;
  float at = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double ulps =
        UlpsBetween((*results)[0].values<float>()[i], GetParam().exact(samples[static_cast<size_t>(i)]));
    if (ulps > worst) {
      worst = ulps;
      at = samples[static_cast<size_t>(i)];
    }
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, 2) << GetParam().opcode << " of " << at;
  // A bound that nothing reaches would hide a mistake in this test.
  EXPECT_GE(worst, 0.5);
}

INSTANTIATE_TEST_SUITE_P(All, LoopMathTest,
                         testing::Values(Function{"exponential", [](double x) { return std::exp(x); }},
                                         Function{"log", [](double x) { return std::log(x); }},
                                         Function{"tanh", [](double x) { return std::tanh(x); }},
                                         Function{"logistic", [](double x) { return 1 / (1 + std::exp(-x)); }},
                                         Function{"erf", [](double x) { return std::erf(x); }},
                                         Function{"exponential-minus-one", [](double x) { return std::expm1(x); }},
                                         Function{"log-plus-one", [](double x) { return std::log1p(x); }}),
                         [](const auto& info) {
                           std::string name = info.param.opcode;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hlokit::interp::compiled
