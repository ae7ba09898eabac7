// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "parser/mlir/definition.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"

namespace hlokit::mlir {
namespace {

std::unique_ptr<Module> Parse(std::string text, DiagnosticSink* sink) {
  auto source = std::make_shared<const SourceBuffer>("test", std::move(text));
  return ParseMlir(source, source->text(), {}, sink);
}

// Returns the program as it is printed, or the first error.
std::string Printed(const std::string& text, bool generic = false) {
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = Parse(text, &sink);
  if (module == nullptr) return sink.diagnostics().empty() ? "rejected" : sink.diagnostics()[0].message;
  return PrintMlir(*module, {generic, false});
}

std::string Function(const std::string& arguments, const std::string& body) {
  return "func.func @main(" + arguments + ") {\n" + body + "\nreturn\n}\n";
}

TEST(MlirDefinitions, EveryRowIsFoundByItsName) {
  for (const OpDefinition& op : AllDefinitions()) EXPECT_EQ(FindDefinition(op.name), &op) << op.name;
  EXPECT_EQ(FindDefinition("stablehlo.unknown"), nullptr);
}

TEST(MlirText, CustomAndGenericFormsReadTheSame) {
  const std::string custom = Function(
      "%a: tensor<4x8xf32>, %b: tensor<f32>, %p: tensor<4xi1>",
      "%0 = stablehlo.slice %a [0:4:2, 1:3] : (tensor<4x8xf32>) -> tensor<2x2xf32>\n"
      "%1 = stablehlo.pad %0, %b, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<2x2xf32>, tensor<f32>) -> "
      "tensor<3x2xf32>\n"
      "%2 = stablehlo.reduce_precision %1, format = e8m10 : tensor<3x2xf32>\n"
      "%3 = stablehlo.custom_call @foo(%2) {backend_config = \"bar\", has_side_effect = true} : (tensor<3x2xf32>) -> "
      "tensor<3xf32>\n");
  const std::string printed = Printed(custom);
  EXPECT_EQ(Printed(printed), printed);
  const std::string generic = Printed(custom, /*generic=*/true);
  EXPECT_NE(generic.find("\"stablehlo.slice\"(%arg0) <{limit_indices = array<i64: 4, 3>"), std::string::npos)
      << generic;
  EXPECT_EQ(Printed(generic), printed);
}

TEST(MlirText, NumbersPrintAsMlirDoes) {
  const std::string text =
      Printed(Function("",
                       "%0 = stablehlo.constant dense<[1.0, 3.14159274, 1.1920929E-7, 0x7F800000]> : tensor<4xf32>\n"
                       "%1 = stablehlo.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>\n"
                       "%2 = stablehlo.constant dense<\"0x0000803F00000040\"> : tensor<2xf32>\n"
                       "%3 = stablehlo.constant dense<[[true], [false]]> : tensor<2x1xi1>"));
  EXPECT_NE(text.find("dense<[1.000000e+00, 3.14159274, 1.1920929E-7, 0x7F800000]>"), std::string::npos) << text;
  EXPECT_NE(text.find("dense<(1.000000e+00,2.000000e+00)>"), std::string::npos) << text;
  EXPECT_NE(text.find("dense<[1.000000e+00, 2.000000e+00]>"), std::string::npos) << text;
  EXPECT_NE(text.find("dense<[[true], [false]]>"), std::string::npos) << text;
}

TEST(MlirText, NestingTakesNoStack) {
  constexpr int kDepth = 60000;
  std::string type = "f32", attribute;
  for (int i = 0; i < kDepth; ++i) attribute += "[";
  attribute += "1";
  for (int i = 0; i < kDepth; ++i) attribute += "]";
  EXPECT_NE(Printed("module attributes {a = " + attribute + "} {\n}\n").find("1 : i64"), std::string::npos);
  std::string regions;
  for (int i = 0; i < 2000; ++i) regions += "\"a.b\"() ({\n";
  for (int i = 0; i < 2000; ++i) regions += "}) : () -> ()\n";
  EXPECT_NE(Printed(regions).find("a.b"), std::string::npos);
}

TEST(MlirText, EveryFunctionWithAnErrorIsReported) {
  DiagnosticSink sink;
  EXPECT_EQ(Parse(Function("%a: tensor<4xf32>", "%0 = stablehlo.add %a, %b : tensor<4xf32>") +
                      "func.func @other(%a: tensor<4xf32>) {\n%0 = stablehlo.nothing %a : tensor<4xf32>\nreturn\n}\n",
                  &sink),
            nullptr);
  ASSERT_EQ(sink.error_count(), 2u);
  EXPECT_EQ(sink.diagnostics()[0].message, "use of undeclared SSA value name '%b'");
  EXPECT_EQ(sink.diagnostics()[1].kind, DiagnosticKind::kUnknownOpcode);
}

TEST(MlirText, UnknownDialectsAreKeptInTheGenericForm) {
  const std::string text = Printed("\"my.op\"() <{x = 1 : i8}> {y = #my.attr<a b>} : () -> ()\n");
  EXPECT_NE(text.find("\"my.op\"() <{x = 1 : i8}> {y = #my.attr<a b>} : () -> ()"), std::string::npos) << text;
  EXPECT_EQ(Printed("my.op 1\n"), "custom op 'my.op' is unknown");
}

}  // namespace
}  // namespace hlokit::mlir
