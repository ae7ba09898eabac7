// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/export/export.h"
#include "parser/stablehlo/import/convert.h"

namespace hlokit::stablehlo {
namespace {

std::unique_ptr<Module> Read(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return nullptr;
  DiagnosticSink sink;
  VerifyModule(**module, {}, &sink);
  EXPECT_FALSE(sink.has_errors()) << sink.diagnostics()[0].message;
  return *std::move(module);
}

TEST(StablehloConvert, SizeOneDimensionsGrowThroughAReshape) {
  const std::unique_ptr<Module> module = Read(
      "func.func @main(%a: tensor<1x3xf32>) -> tensor<2x3xf32> {\n"
      "  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<2x3xf32>\n"
      "  return %0 : tensor<2x3xf32>\n}\n");
  ASSERT_NE(module, nullptr);
  const Instruction root = module->entry().root();
  EXPECT_EQ(root.opcode(), Opcode::kBroadcast);
  EXPECT_EQ(root.operand(0).opcode(), Opcode::kReshape);
}

TEST(StablehloConvert, BranchesTakeTheValuesTheyUse) {
  const std::unique_ptr<Module> module = Read(
      "func.func @main(%p: tensor<i1>, %a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {\n"
      "  %c = stablehlo.constant dense<2.0> : tensor<f32>\n"
      "  %0 = \"stablehlo.if\"(%p) ({\n    %1 = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %1 : "
      "tensor<f32>\n"
      "  }, {\n    stablehlo.return %c : tensor<f32>\n  }) : (tensor<i1>) -> tensor<f32>\n"
      "  return %0 : tensor<f32>\n}\n");
  ASSERT_NE(module, nullptr);
  const Instruction root = module->entry().root();
  ASSERT_EQ(root.opcode(), Opcode::kConditional);
  EXPECT_EQ(root.operand(1).shape().tuple_size(), 2);  // of the first branch a and b
  EXPECT_EQ(root.operand(2).shape().tuple_size(), 0);  // the constant is copied into the second
}

TEST(StablehloConvert, AliasesAndDonorsAreInTheHeader) {
  const std::unique_ptr<Module> module = Read(
      "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {jax.buffer_donor = true}) "
      "-> "
      "tensor<4xf32> {\n  %0 = stablehlo.add %a, %b : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  ASSERT_NE(module, nullptr);
  ASSERT_EQ(module->header().input_output_alias.size(), 1u);
  EXPECT_EQ(module->header().input_output_alias[0].parameter, 0);
  ASSERT_EQ(module->header().buffer_donor.size(), 1u);
  EXPECT_EQ(module->header().buffer_donor[0].parameter, 1);
}

TEST(StablehloConvert, RecursiveCallsAreAnError) {
  const absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(
      "func.func @main() -> tensor<f32> {\n  %0 = call @main() : () -> tensor<f32>\n  return %0 : tensor<f32>\n}\n");
  ASSERT_FALSE(module.ok());
  EXPECT_NE(std::string(module.status().message()).find("calls recursively"), std::string::npos);
}

TEST(StablehloExport, TheWayBackGivesTheSameProgram) {
  const std::unique_ptr<Module> module = Read(
      "HloModule m\ncond { p = (s32[], f32[2]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] "
      "constant(3)\n"
      "ROOT r = pred[] compare(i, n), direction=LT }\n"
      "body { p = (s32[], f32[2]) parameter(0) i = s32[] get-tuple-element(p), index=0 one = s32[] constant(1)\n"
      "j = s32[] add(i, one) x = f32[2] get-tuple-element(p), index=1 y = f32[2] add(x, x)\n"
      "ROOT t = (s32[], f32[2]) tuple(j, y) }\n"
      "ENTRY e { a = f32[2] parameter(0) zero = s32[] constant(0) t = (s32[], f32[2]) tuple(zero, a)\n"
      "w = (s32[], f32[2]) while(t), condition=cond, body=body ROOT r = f32[2] get-tuple-element(w), index=1 }\n");
  ASSERT_NE(module, nullptr);
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = ExportToStablehlo(*module, &sink);
  ASSERT_NE(program, nullptr);
  const std::unique_ptr<Module> again = Read(mlir::PrintMlir(*program));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(Fingerprint(*again), Fingerprint(*module));
}

// Returns a program whose functions each choose, or loop over, the two before them.
std::string SharedRegions(int levels, bool loops) {
  const std::string state = "(s32[], f32[2])";
  std::string text = "HloModule shared\nc { p = " + state +
                     " parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(2)\n"
                     "ROOT r = pred[] compare(i, n), direction=LT }\n";
  for (int k = 0; k < levels; ++k) {
    const std::string name = "f" + std::to_string(k), a = "f" + std::to_string(k - 1), b = "f" + std::to_string(k - 2);
    text += name + " { p = " + state +
            " parameter(0) i = s32[] get-tuple-element(p), index=0 one = s32[] constant(1) j = s32[] add(i, one)\n"
            "x = f32[2] get-tuple-element(p), index=1 z = s32[] constant(0)\n";
    if (k < 2) {
      text += std::string("y = f32[2] ") + (k == 0 ? "sine" : "cosine") + "(x)\n";
    } else if (loops) {
      text += "t = " + state + " tuple(z, x) u = " + state + " while(t), condition=c, body=" + a + " v = " + state +
              " while(t), condition=c, body=" + b +
              "\nm = f32[2] get-tuple-element(u), index=1 n = f32[2] get-tuple-element(v), index=1\n"
              "y = f32[2] add(m, n)\n";
    } else {
      text += "q = pred[] compare(i, z), direction=GT t = " + state + " tuple(j, x) u = " + state +
              " conditional(q, t, p), true_computation=" + a + ", false_computation=" + b +
              "\ny = f32[2] get-tuple-element(u), index=1\n";
    }
    text += "ROOT r = " + state + " tuple(j, y) }\n";
  }
  return text + "ENTRY e { x = f32[2] parameter(0) z = s32[] constant(0) t = " + state +
         " tuple(z, x)\nROOT w = " + state + " while(t), condition=c, body=f" + std::to_string(levels - 1) + " }\n";
}

TEST(StablehloExport, RegionsThatWouldBeCopiedExponentiallyOftenCallFunctions) {
  for (bool loops : {false, true}) {
    for (bool as_xla : {false, true}) {
      const std::unique_ptr<Module> module = Read(SharedRegions(60, loops));
      ASSERT_NE(module, nullptr);
      DiagnosticSink sink;
      ExportOptions options;
      options.as_xla = as_xla;
      const std::unique_ptr<mlir::Module> exported = ExportToStablehlo(*module, &sink, options);
      ASSERT_NE(exported, nullptr) << sink.diagnostics()[0].message;
      EXPECT_LT(exported->operations.size(), 6000U);
      const std::string text = mlir::PrintMlir(*exported);
      EXPECT_NE(text.find("func.call @f57("), std::string::npos);
      EXPECT_NE(Read(text), nullptr);
    }
  }
}

TEST(StablehloExport, FewCopiesOfRegionsStayRegions) {
  const std::unique_ptr<Module> module = Read(SharedRegions(8, false));
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> exported = ExportToStablehlo(*module, &sink, {});
  ASSERT_NE(exported, nullptr);
  const std::string text = mlir::PrintMlir(*exported);
  EXPECT_EQ(text.find("call @"), std::string::npos);
}

}  // namespace
}  // namespace hlokit::stablehlo
