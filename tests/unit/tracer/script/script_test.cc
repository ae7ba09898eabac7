// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/unit/tracer/tracing.h"
#include "tracer/script/native_functions.h"
#include "tracer/script/script_program.h"

namespace hlokit::lazy {
namespace {

class ScriptTest : public TracingTest {
 protected:
  // Runs a script. Returns what it prints, or its first error.
  std::string Run(const std::string& text, const ProgramOptions& options = {}) {
    const SourceBuffer source("test", text);
    DiagnosticSink sink;
    const std::unique_ptr<const Script> script = Script::Parse(source, &sink);
    std::string printed;
    {
      TextWriter writer(&printed);
      results.clear();
      if (script != nullptr) script->Run(tracer, options, writer, &results, &sink);
    }
    return sink.has_errors() ? sink.diagnostics()[0].message : printed;
  }
  // Returns the names of the variables at the end.
  std::string Variables() const {
    std::string names;
    for (const auto& [name, tensor] : results[0].variables) names += name;
    return names;
  }

  std::vector<ProgramResult> results;
};

TEST_F(ScriptTest, EveryNativeFunctionHasASignatureOfItsOwn) {
  std::set<std::string> names;
  for (const script::NativeFunction& f : script::NativeFunctions()) {
    EXPECT_FALSE(f.signature.name.empty());
    EXPECT_TRUE(names.insert(f.signature.name).second) << f.signature.name;
    EXPECT_EQ(script::FindNative(f.signature.name), &f);
    EXPECT_TRUE(f.call != nullptr);
  }
  EXPECT_GT(names.size(), 90u);
}

TEST_F(ScriptTest, StatementsAreLimited) {
  ProgramOptions options;
  options.max_statements = 100;
  EXPECT_EQ(Run("while true\nend\n", options), "the program runs too many statements");
  EXPECT_EQ(Run("repeat 1000000\nend\n", options), "the program runs too many statements");
  EXPECT_EQ(Run("repeat 90\nend\n", options), "");
}

TEST_F(ScriptTest, ValuesAreLimited) {
  ProgramOptions options;
  options.max_value_bytes = 16;
  EXPECT_EQ(Run("%x = hash f32[4] 0", options), "");
  EXPECT_EQ(Run("%x = hash f32[5] 0", options), "values of scripts have at most 16 bytes");
}

TEST_F(ScriptTest, RebindingFreesTheOldValue) {
  EXPECT_EQ(Run("%x = hash f32[2] 0\n"
                "repeat 3\n"
                "  %x = aten::exp(aten::neg(%x))\n"
                "end\n"),
            "");
  EXPECT_EQ(Variables(), "%x");
  const DeviceState& device = *tracer.device();
  EXPECT_EQ(device.live_count(), 1);
}

TEST_F(ScriptTest, VariablesOfALoopEndWithIt) {
  Run("%x = hash f32[2] 0\n"
      "for %i in range(2)\n"
      "  %inside = aten::exp(%x)\n"
      "  for %k in range(2)\n"
      "    %inner = %inside + %k\n"
      "  end\n"
      "  %later = aten::exp(%inside)\n"
      "end\n"
      "%y = %later\n");
  EXPECT_EQ(Variables(), "%x%later%y");
}

TEST_F(ScriptTest, VariablesOfAFunctionEndWithItsCall) {
  Run("def f(%x)\n"
      "  %a = aten::exp(%x)\n"
      "  %b = aten::exp(%a)\n"
      "  return %b\n"
      "end\n"
      "%y = f(hash f32[2] 0)\n");
  EXPECT_EQ(Variables(), "%y");
}

TEST_F(ScriptTest, AnItemIsFetchedAndKeepsTheGraph) {
  EXPECT_EQ(Run("%x = tensor f32[2] {1, 2}\n"
                "%y = aten::sum(%x)\n"
                "if item(%y) == 3\n"
                "  print item(%y) + 1\n"
                "end\n"),
            "item(%y) + 1 = 4.0\n");
}

TEST_F(ScriptTest, CapturedBlocksSeeNumbersThatChange) {
  const std::string body =
      "%x = hash f32[3] 0\n"
      "for %i in range(9)\n"
      "  BLOCK\n"
      "    %y = %x * (%i % 3)\n"
      "    %n = %i % 3\n"
      "    if %n == 2\n"
      "      %z = %y + 1\n"
      "    end\n"
      "  end\n"
      "  print %y, %n\n"
      "  if %n == 2\n"
      "    print %z\n"
      "  end\n"
      "end\n";
  std::string captured = body, traced = body;
  captured.replace(body.find("BLOCK"), 5, "capture c");
  traced.replace(body.find("BLOCK"), 5, "scope c");
  const std::string expected = Run(traced);
  EXPECT_EQ(Run(captured), expected);
  EXPECT_NE(expected.find("%z"), std::string::npos);
}

TEST_F(ScriptTest, DeeplyNestedTextIsAnErrorOrRuns) {
  for (const char* open : {"(", "[", "-", "f(", "%x[", "not ", "2**"}) {
    std::string text = "%y = ";
    for (int i = 0; i < 20000; ++i) text += open;
    EXPECT_NE(Run(text), "") << open;
  }
  std::string blocks;
  for (int i = 0; i < 3000; ++i) blocks += "if 1\n";
  for (int i = 0; i < 3000; ++i) blocks += "end\n";
  EXPECT_EQ(Run(blocks), "");
}

}  // namespace
}  // namespace hlokit::lazy
