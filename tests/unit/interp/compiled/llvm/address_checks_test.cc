// SPDX-License-Identifier: Apache-2.0
// In builds with the address sanitizer, generated code is checked as other code is: a loop that leaves an array ends
// the process with a report. In other builds there is nothing to test.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/code/code_generator.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/programs/loop_program.h"
#include "interp/processor/instruction_set.h"

namespace hlokit::interp::compiled {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kChecked = true;
#else
constexpr bool kChecked = false;
#endif

class AddressChecksTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!kChecked) GTEST_SKIP() << "this build has no address sanitizer";
    if (!Generator().ok()) GTEST_SKIP() << "there is no libhlokit_llvm.so";
  }

  // Runs out = in + in over `columns` elements of arrays that have `in_size` and `out_size` elements.
  static void Double(int64_t columns, size_t in_size, size_t out_size) {
    LoopProgram program;
    program.inputs.push_back({ElementType::kF32});
    LoopNode input, sum;
    input.op = LoopOp::kInput;
    input.type = ElementType::kF32;
    sum.op = LoopOp::kAdd;
    sum.type = ElementType::kF32;
    sum.operand_count = 2;
    sum.operands[0] = sum.operands[1] = 0;
    program.nodes = {input, sum};
    program.outputs = {1};
    const auto generated = (*Generator())->Generate(program, HostInstructionSet(), false);
    ASSERT_TRUE(std::holds_alternative<GeneratedCode>(generated)) << std::get<GenerationError>(generated).message;
    const GeneratedCode& code = std::get<GeneratedCode>(generated);
    EXPECT_TRUE(code.is_of_process);
    const std::unique_ptr<LoadedCode> loaded = LoadedCode::Load(code);
    ASSERT_NE(loaded, nullptr);
    const std::unique_ptr<float[]> in(new float[in_size]()), out(new float[out_size]());
    in[0] = 3;
    const std::byte* const inputs[] = {reinterpret_cast<const std::byte*>(in.get())};
    std::byte* const outputs[] = {reinterpret_cast<std::byte*>(out.get())};
    const int64_t strides[] = {columns};
    LoopArguments arguments = {};
    arguments.in = inputs;
    arguments.out = outputs;
    arguments.in_strides = arguments.out_strides = strides;
    arguments.rows = 1;
    arguments.columns = columns;
    loaded->function()(&arguments);
    EXPECT_EQ(out[0], 6);
  }
};

TEST_F(AddressChecksTest, LoopsWithinTheirArraysRun) {
  for (const size_t size : {1, 3, 8, 16, 17, 100}) Double(static_cast<int64_t>(size), size, size);
}

TEST_F(AddressChecksTest, ReadsBeyondAnArrayAreReported) {
  EXPECT_DEATH(Double(100, 99, 100), "heap-buffer-overflow");
  EXPECT_DEATH(Double(64, 48, 64), "heap-buffer-overflow");
}

TEST_F(AddressChecksTest, WritesBeyondAnArrayAreReported) {
  EXPECT_DEATH(Double(100, 100, 99), "heap-buffer-overflow");
  EXPECT_DEATH(Double(17, 17, 16), "heap-buffer-overflow");
}

}  // namespace
}  // namespace hlokit::interp::compiled
