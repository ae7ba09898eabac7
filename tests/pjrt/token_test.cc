// SPDX-License-Identifier: Apache-2.0
// Tokens: those that programs return, and what frameworks make in their place.
#include "tests/pjrt/plugin.h"

namespace hlokit::pjrt_test {
namespace {

constexpr int kToken = 23;

constexpr char kOrdered[] = R"(
module @ordered {
  func.func public @main(%t: !stablehlo.token, %x: tensor<2xf32>) -> (!stablehlo.token, tensor<2xf32>) {
    %after = stablehlo.after_all %t : !stablehlo.token
    %y = stablehlo.add %x, %x : tensor<2xf32>
    return %after, %y : !stablehlo.token, tensor<2xf32>
  }
})";

TEST(TokenTest, AnEmptyArrayIsAFrameworksTokenAndResultsAreTokens) {
  const ClientScope client(1);
  PJRT_LoadedExecutable* executable = nullptr;
  const Result compiled = Compile(client.get(), kOrdered, "mlir", CompileOptionsOf(1, 1), &executable);
  ASSERT_TRUE(compiled.ok()) << compiled.message;
  PJRT_Buffer* const x = MakeBuffer<float>(client.get(), client.devices()[0], kF32, {1, 2}, {2});
  PJRT_Buffer* token = MakeBuffer<uint8_t>(client.get(), client.devices()[0], kPred, {}, {0});
  // The first run takes the framework's, the next that of the run before.
  for (int run = 0; run < 3; ++run) {
    std::vector<std::vector<PJRT_Buffer*>> results;
    const Result ran = Execute(executable, {{token, x}}, &results);
    ASSERT_TRUE(ran.ok()) << ran.message;
    Destroy(token);
    token = results[0][0];
    EXPECT_EQ(Query(Api().PJRT_Buffer_ElementType, &PJRT_Buffer_ElementType_Args::buffer, token).type, kToken);
    std::vector<float> y;
    EXPECT_TRUE(ReadBuffer(results[0][1], &y).ok());
    EXPECT_EQ(y, (std::vector<float>{2, 4}));
    Destroy(results[0][1]);
  }
  // Any other array is no token.
  PJRT_Buffer* const flag = MakeBuffer<uint8_t>(client.get(), client.devices()[0], kPred, {1}, {1});
  std::vector<std::vector<PJRT_Buffer*>> results;
  EXPECT_EQ(Execute(executable, {{flag, x}}, &results).code, kInvalidArgument);
  Destroy(flag);
  Destroy(token);
  Destroy(x);
  Destroy(executable);
}

}  // namespace
}  // namespace hlokit::pjrt_test
