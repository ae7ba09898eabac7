// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/source_names.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "parser/formats/parser.h"

namespace hlokit {
namespace {

TEST(SourceNamesTest, DiagnosticsHaveTheNamesOfTheText) {
  const auto source = std::make_shared<const SourceBuffer>(
      "m.hlo",
      "HloModule m\nf {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)\n}\n"
      "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f\n}\n");
  DiagnosticSink parsed;
  const std::unique_ptr<Module> module = ParseModule(source, ParseOptions(), &parsed);
  ASSERT_NE(module, nullptr);
  const Instruction root = module->entry().root();
  ASSERT_NE(root.name(), "y");  // made unique
  DiagnosticSink sink;
  sink.Error(DiagnosticKind::kShapeMismatch, {root.record().source_offset, 7},
             "`" + std::string(root.name()) + "` and `other` differ");
  const DiagnosticSink renamed = WithSourceNames(sink, *module, *source);
  ASSERT_EQ(renamed.diagnostics().size(), 1u);
  EXPECT_EQ(renamed.diagnostics()[0].message, "`y` and `other` differ");
  EXPECT_EQ(renamed.diagnostics()[0].range.size, 1u);
}

}  // namespace
}  // namespace hlokit
