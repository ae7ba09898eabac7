// SPDX-License-Identifier: Apache-2.0
// What the fast engine makes of a module, and that its values are those of the exact engine.
#include "interp/compiled/compiled_kernels.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/comparison/value_comparison.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/exact/evaluator.h"
#include "interp/exact/machine/run_context.h"
#include "interp/processor/thread_pool.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "tests/unit/interp/compiled/both_engines.h"

namespace hlokit::interp::compiled {
namespace {

class CompiledKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Generator().ok() || !ProductLibrary().ok()) GTEST_SKIP() << "a module of the engine is not built";
  }
};

TEST_F(CompiledKernelsTest, ElementwiseInstructionsShareALoopWithTwoResults) {
  const FastRun run = RunBoth(R"(HloModule m
ENTRY e {
  a = f32[100,67] parameter(0)
  b = f32[67] parameter(1)
  c = f32[100,67] broadcast(b), dimensions={1}
  d = f32[100,67] add(a, c)
  f = f32[6700] reshape(d)
  g = f32[6700] multiply(f, f)
  h = pred[6700] compare(g, f), direction=GT
  i = f32[6700] select(h, g, f)
  ROOT r = (f32[100,67], f32[6700]) tuple(d, i)
})",
                              0);
  ASSERT_EQ(run.loops.size(), 1u);
  // By columns: all rows share the values of b.
  EXPECT_EQ(run.loops[0].program.form, LoopForm::kColumns);
  EXPECT_EQ(run.loops[0].program.inputs.size(), 2u);
  EXPECT_EQ(run.loops[0].program.outputs.size(), 2u);
}

TEST_F(CompiledKernelsTest, APathThroughAnotherInstructionKeepsLoopsApart) {
  const FastRun run = RunBoth(R"(HloModule m
ENTRY e {
  a = f32[4096] parameter(0)
  b = f32[4096] add(a, a)
  c = f32[4096] multiply(b, a)
  d = f32[4096] reverse(c), dimensions={0}
  f = f32[4096] add(d, b)
  ROOT g = f32[4096] multiply(f, d)
})",
                              0);
  EXPECT_EQ(run.loops.size(), 2u);
}

TEST_F(CompiledKernelsTest, SoftmaxIsOneLoopOverRows) {
  const FastRun run = RunBoth(R"(HloModule m
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[6,50,77] parameter(0)
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[6,50] reduce(x, lowest), dimensions={2}, to_apply=max
  mb = f32[6,50,77] broadcast(m), dimensions={0,1}
  d = f32[6,50,77] subtract(x, mb)
  y = f32[6,50,77] exponential(d)
  s = f32[6,50] reduce(y, zero), dimensions={2}, to_apply=sum
  sb = f32[6,50,77] broadcast(s), dimensions={0,1}
  ROOT q = f32[6,50,77] divide(y, sb)
})",
                              1e-6);
  ASSERT_EQ(run.loops.size(), 1u);
  EXPECT_EQ(run.loops[0].program.form, LoopForm::kRows);
}

TEST_F(CompiledKernelsTest, ConvolutionsAndTheirGradientsAreLibraryCalls) {
  const FastRun run = RunBoth(R"(HloModule m
ENTRY e {
  x = f32[3,16,14,14] parameter(0)
  w = f32[24,16,3,3] parameter(1)
  g = f32[3,24,7,7] parameter(2)
  y = f32[3,24,7,7] convolution(x, w), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
  dx = f32[3,16,14,14] convolution(g, w), window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=bf01_io01->bf01
  dw = f32[24,16,3,3] convolution(x, g), window={size=7x7 pad=1_0x1_0 rhs_dilate=2x2}, dim_labels=fb01_io01->fb01
  ROOT r = (f32[3,24,7,7], f32[3,16,14,14], f32[24,16,3,3]) tuple(y, dx, dw)
})",
                              1e-4);
  int convolutions = 0;
  for (const KernelChoice& choice : run.choices) convolutions += choice.kind == KernelChoice::Kind::kConvolution;
  EXPECT_EQ(convolutions, 3);
}

TEST_F(CompiledKernelsTest, GroupsAndFeaturesLastAreLibraryCalls) {
  const FastRun run = RunBoth(R"(HloModule m
ENTRY e {
  x = f32[2,20,20,32] parameter(0)
  w = f32[3,3,1,32] parameter(1)
  ROOT y = f32[2,20,20,32] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=32
})",
                              1e-4);
  EXPECT_EQ(run.choices.back().kind, KernelChoice::Kind::kConvolution);
}

TEST_F(CompiledKernelsTest, ObservedInstructionsAreNotPartsOfLoops) {
  DiagnosticSink sink;
  const std::unique_ptr<Module> module =
      ParseModule(std::make_shared<const SourceBuffer>(
                      "m.hlo",
                      "HloModule m\nENTRY e {\n  a = f32[9000] parameter(0)\n  b = f32[9000] add(a, "
                      "a)\n  c = f32[9000] multiply(b, a)\n  ROOT d = f32[9000] subtract(c, b)\n}\n"),
                  ParseOptions(), &sink);
  ASSERT_NE(module, nullptr);
  ObservationRequest observation;
  observation.instructions.assign(module->instruction_id_bound(), true);
  EvaluatorOptions options;
  options.observation = observation;
  const auto kernels = std::make_shared<CompiledKernels>(observation);
  ASSERT_NE(Evaluator::Prepare(*module, options, &sink, kernels), nullptr);
  EXPECT_TRUE(kernels->loops().empty());
}

TEST_F(CompiledKernelsTest, AWindowMayBeReversedAlongSomeDimensions) {
  for (const std::string_view window : {"pad=1_1x1_1 rhs_reversal=1x0", "pad=1_1x1_1 rhs_reversal=0x1 stride=2x2",
                                        "pad=1_1x1_1 rhs_reversal=1x0 lhs_dilate=2x2"}) {
    const int size = window.find("stride") != std::string_view::npos   ? 6
                     : window.find("dilate") != std::string_view::npos ? 23
                                                                       : 12;
    const FastRun run = RunBoth(StrCat(R"(HloModule m
ENTRY e {
  x = f32[2,12,12,16] parameter(0)
  k = f32[3,3,16,16] parameter(1)
  ROOT c = f32[2,)",
                                       size, ",", size, ",16] convolution(x, k), window={size=3x3 ", window,
                                       "}, dim_labels=b01f_01io->b01f\n}\n"),
                                1e-4);
    EXPECT_EQ(run.choices.back().kind, KernelChoice::Kind::kConvolution) << window;
  }
}

TEST_F(CompiledKernelsTest, ScratchMemoryCountsForEachThread) {
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = ParseModule(std::make_shared<const SourceBuffer>("m.hlo", R"(HloModule m
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[8,8192] parameter(0)
  lowest = f32[] constant(-inf)
  y = f32[8,8192] exponential(x)
  m = f32[8] reduce(y, lowest), dimensions={1}, to_apply=max
  mb = f32[8,8192] broadcast(m), dimensions={0}
  ROOT d = f32[8,8192] subtract(y, mb)
})"),
                                                     ParseOptions(), &sink);
  ASSERT_NE(module, nullptr);
  EvaluatorOptions options;
  options.limits.max_bytes = 4 << 20;
  const auto loops = [&](int threads) {
    const auto kernels = std::make_shared<CompiledKernels>(ObservationRequest());
    options.num_threads = threads;
    EXPECT_NE(Evaluator::Prepare(*module, options, &sink, kernels), nullptr);
    bool memory = false;
    for (const KernelChoice& choice : kernels->choices()) memory = memory || choice.reason == "memory";
    EXPECT_EQ(memory, kernels->loops().empty());
    return kernels->loops().size();
  };
  EXPECT_EQ(loops(2), 1u);
  EXPECT_EQ(loops(256), 0u);
}

// The values take 17.1 MB, partial sums of the product with few rows 2 MB more.
TEST_F(CompiledKernelsTest, ProductsWithFewRowsFitInWhatValuesLeave) {
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = ParseModule(std::make_shared<const SourceBuffer>("m.hlo", R"(HloModule m
ENTRY e {
  x = f32[16,4096] parameter(0)
  w = f32[4096,1024] parameter(1)
  ROOT d = f32[16,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})"),
                                                     ParseOptions(), &sink);
  ASSERT_NE(module, nullptr);
  std::vector<Literal> expected;
  for (const int64_t max_bytes : {int64_t{1} << 30, int64_t{18000000}}) {
    EvaluatorOptions options;
    options.limits.max_bytes = max_bytes;
    const auto evaluator =
        Evaluator::Prepare(*module, options, &sink, std::make_shared<CompiledKernels>(ObservationRequest()));
    ASSERT_NE(evaluator, nullptr);
    const auto results = evaluator->Run(MakeFakeArguments(evaluator->argument_shapes(), 1), &sink);
    ASSERT_TRUE(results) << max_bytes << ": " << sink.diagnostics()[0].message;
    if (expected.empty()) expected = *results;
    ErrorSpec error;
    error.absolute = error.relative = 1e-4;
    const auto difference = CompareValues(*results, expected, error);
    EXPECT_TRUE(difference.ok() && difference->equal()) << max_bytes;
  }
}

#if !defined(__SANITIZE_ADDRESS__)  // whose allocator ends the program instead
TEST_F(CompiledKernelsTest, MissingScratchMemoryIsNoErrorOfTheLibrary) {
  ThreadPool threads(1);
  RunContext context(Limits(), 0, &threads, nullptr);
  EXPECT_NE(ThreadScratch(context, 4096, "a product"), nullptr);
  EXPECT_FALSE(context.failed());
  EXPECT_EQ(ThreadScratch(context, int64_t{1} << 60, "a product"), nullptr);
  EXPECT_EQ(context.error(), "out of memory: no scratch memory for a product");
  EXPECT_EQ(context.error_kind(), DiagnosticKind::kTooLarge);
}
#endif

}  // namespace
}  // namespace hlokit::interp::compiled
