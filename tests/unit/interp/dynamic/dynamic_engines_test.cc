// SPDX-License-Identifier: Apache-2.0
// Programs with dynamic dimensions give on every engine what the same program with static dimensions of these sizes
// gives on the reference engine. Elements beyond the sizes are random, so that one that counts is noticed.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/comparison/value_comparison.h"
#include "interp/program/engine_table.h"
#include "interp/program/program_passes.h"
#include "ir/types/sized_shape.h"
#include "tests/unit/interp/dynamic/dynamic_programs.h"

namespace hlokit::interp {
namespace {

std::unique_ptr<Engine> Prepare(EngineKind kind, const Module& module) {
  DiagnosticSink sink;
  EvaluatorOptions options;
  options.num_threads = 1;
  std::unique_ptr<Engine> engine = PrepareEngine(kind, module, options, &sink);
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity == Severity::kError) ADD_FAILURE() << d.message;
  }
  return engine;
}

std::vector<Literal> ResultsOf(Engine* engine, const std::vector<Literal>& arguments) {
  DiagnosticSink sink;
  std::optional<std::vector<Literal>> results = engine->Run(arguments, &sink);
  for (const Diagnostic& d : sink.diagnostics()) ADD_FAILURE() << d.message;
  return results ? *std::move(results) : std::vector<Literal>();
}

// Arguments of the dynamic program, and those of the static one: where that has a smaller parameter, the same elements.
struct Arguments {
  std::vector<Literal> dynamic, fixed;
};

Arguments ArgumentsFor(const std::vector<Shape>& dynamic, const std::vector<Shape>& fixed, int64_t n) {
  Arguments made;
  for (size_t k = 0; k < dynamic.size(); ++k) {
    // A dynamic parameter gets the elements of its size alone.
    const std::vector<Shape> shape = {dynamic[k].has_dynamic_dims() ? fixed[k] : dynamic[k]};
    made.dynamic.push_back(std::move(MakeFakeArguments(shape, 7 + k)[0]));
    made.fixed.push_back(made.dynamic.back());
  }
  // The last one is the size.
  const auto size = static_cast<int32_t>(n);
  for (Literal* last : {&made.dynamic.back(), &made.fixed.back()}) std::memcpy(last->data(), &size, sizeof(size));
  return made;
}

// Runs the program with sizes from its least to its greatest one on all engines, which have prepared it.
void ExpectStaticResults(const Program& program, const std::vector<std::unique_ptr<Engine>>& engines) {
  for (int64_t n = program.least; n <= program.most; n = n < 1 ? n + 1 : n + 2 + n % 2) {
    SCOPED_TRACE(n);
    const std::unique_ptr<Module> fixed = Read(TrueSizes(program, n));
    ASSERT_NE(fixed, nullptr);
    const std::unique_ptr<Engine> reference = Prepare(EngineKind::kReference, *fixed);
    ASSERT_NE(reference, nullptr);
    const Arguments arguments = ArgumentsFor(engines[0]->argument_shapes(), reference->argument_shapes(), n);
    const std::vector<Literal> expected = ResultsOf(reference.get(), arguments.fixed);
    for (const std::unique_ptr<Engine>& engine : engines) {
      SCOPED_TRACE(&engine - engines.data());
      const std::vector<Literal> results = ResultsOf(engine.get(), arguments.dynamic);
      ASSERT_EQ(results.size(), expected.size());
      for (size_t k = 0; k < results.size(); ++k) {
        EXPECT_TRUE(FitsWithin(results[k].shape(), engine->result_shapes()[k]));
      }
      ErrorSpec tolerance;
      tolerance.relative = tolerance.absolute = 1e-5;  // factorizations of floats
      const auto difference = CompareValues(results, expected, tolerance);
      ASSERT_TRUE(difference.ok()) << difference.status().message();
      EXPECT_TRUE(difference->equal()) << difference->description;
    }
  }
}

class DynamicEnginesTest : public testing::TestWithParam<Program> {};

TEST_P(DynamicEnginesTest, ComputeWithTheSizes) {
  const std::unique_ptr<Module> module = Read(WithSizes(GetParam()));
  ASSERT_NE(module, nullptr);
  std::vector<std::unique_ptr<Engine>> engines;
  for (EngineKind kind : {EngineKind::kReference, EngineKind::kExact, EngineKind::kFast}) {
    engines.push_back(Prepare(kind, *module));
    ASSERT_NE(engines.back(), nullptr);
  }
  ExpectStaticResults(GetParam(), engines);
}

// The pipelines before the engines know nothing of sizes, and must leave them.
TEST_P(DynamicEnginesTest, ComputeWithTheSizesAfterPasses) {
  const std::unique_ptr<Module> module = Read(WithSizes(GetParam()));
  ASSERT_NE(module, nullptr);
  std::vector<std::unique_ptr<Module>> changed;
  std::vector<std::unique_ptr<Engine>> engines;
  for (const char* passes : {"cpu", "simplify", "default"}) {
    changed.push_back(std::make_unique<Module>(module->Clone()));
    const absl::Status ran = RunProgramPasses(passes, EvaluatorOptions(), nullptr, changed.back().get());
    ASSERT_TRUE(ran.ok()) << ran.message();
    engines.push_back(Prepare(EngineKind::kExact, *changed.back()));
    ASSERT_NE(engines.back(), nullptr);
  }
  ExpectStaticResults(GetParam(), engines);
}

std::string NameOf(const testing::TestParamInfo<Program>& info) { return std::string(info.param.name); }
INSTANTIATE_TEST_SUITE_P(Programs, DynamicEnginesTest, testing::ValuesIn(DynamicPrograms()), NameOf);
INSTANTIATE_TEST_SUITE_P(More, DynamicEnginesTest, testing::ValuesIn(MoreDynamicPrograms()), NameOf);

}  // namespace
}  // namespace hlokit::interp
