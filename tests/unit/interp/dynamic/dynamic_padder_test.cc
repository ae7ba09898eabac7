// SPDX-License-Identifier: Apache-2.0
// Programs after dynamic-padder compute, within the sizes, the results of the original program with every dynamic
// dimension at its true size, sliced from the arguments. The arguments are random beyond the sizes too, so that missing
// masks have an effect.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "interp/exact/instruction_evaluator.h"
#include "interp/program/engine_table.h"
#include "ir/verify/verifier.h"
#include "passes/core/pipeline.h"
#include "tests/unit/interp/dynamic/dynamic_programs.h"

namespace hlokit::interp {
namespace {

std::vector<Literal> Evaluate(const Module& module, int64_t n) {
  DiagnosticSink sink;
  const std::unique_ptr<Engine> evaluator = PrepareEngine(EngineKind::kExact, module, EvaluatorOptions(), &sink);
  if (evaluator == nullptr) {
    ADD_FAILURE() << "cannot be prepared";
    return {};
  }
  std::vector<Literal> arguments = MakeFakeArguments(evaluator->argument_shapes(), 7);
  // The last one is the size.
  const int32_t size = static_cast<int32_t>(n);
  std::memcpy(arguments.back().data(), &size, sizeof(size));
  std::optional<std::vector<Literal>> results = evaluator->Run(arguments, &sink);
  for (const Diagnostic& d : sink.diagnostics()) ADD_FAILURE() << d.message;
  return results ? *std::move(results) : std::vector<Literal>();
}

// Returns the first element of the valid part in which `padded` differs from `exact`, or -1.
int64_t Difference(const Literal& padded, const Literal& exact) {
  const Shape small = exact.shape(), large = padded.shape();
  const size_t bytes =
      exact.shape().element_count() == 0 ? 0 : exact.size_bytes() / static_cast<size_t>(exact.shape().element_count());
  std::vector<int64_t> index(static_cast<size_t>(small.rank()), 0);
  for (int64_t k = 0; k < small.element_count(); ++k) {
    int64_t at = 0;
    for (int64_t d = 0; d < small.rank(); ++d) at = at * large.dim(d) + index[static_cast<size_t>(d)];
    if (std::memcmp(padded.data() + static_cast<size_t>(at) * bytes, exact.data() + static_cast<size_t>(k) * bytes,
                    bytes) != 0) {
      return k;
    }
    for (int64_t d = small.rank(); d-- > 0;) {
      if (++index[static_cast<size_t>(d)] < small.dim(d)) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
  return -1;
}

class DynamicPadderTest : public testing::TestWithParam<Program> {};

TEST_P(DynamicPadderTest, ComputesTheSameInFrontOfTheSizes) {
  const Program& program = GetParam();
  const std::unique_ptr<Module> padded = Read(WithSizes(program));
  ASSERT_NE(padded, nullptr);
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse("dynamic-padder");
  const auto changed = pipeline->Run(*padded, {.context = EvaluatingContext()});
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_TRUE(changed->changed);
  DiagnosticSink sink;
  VerifyModule(*padded, VerifierOptions(), &sink);
  for (const Diagnostic& d : sink.diagnostics()) ADD_FAILURE() << d.message;
  EXPECT_FALSE(Pipeline::Parse("dynamic-padder")->Run(*padded)->changed);
  for (int64_t n = program.least; n <= 8; n = n < 3 ? n + 1 : n + 2 + n % 2) {
    const std::unique_ptr<Module> exact = Read(TrueSizes(program, n));
    ASSERT_NE(exact, nullptr);
    const std::vector<Literal> before = Evaluate(*exact, n), after = Evaluate(*padded, n);
    ASSERT_EQ(before.size(), after.size());
    for (size_t k = 0; k < before.size(); ++k) {
      EXPECT_EQ(Difference(after[k], before[k]), -1) << "result " << k << " for size " << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, DynamicPadderTest, testing::ValuesIn(DynamicPrograms()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hlokit::interp
