// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
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

// Counts the traces of the only captured block.
int64_t TracesIn(const std::string& report) {
  int64_t calls = 0, traced = 0;
  EXPECT_EQ(std::sscanf(report.c_str(), "captured function c: %ld calls, %ld traced", &calls, &traced), 2) << report;
  return traced;
}

TEST_F(ScriptTest, CapturedBlocksDistinguishValuesByKindAndBits) {
  EXPECT_EQ(Run("%x = tensor f32[2] {1, 2}\n"
                "for %n in [1, true, 0.0, -0.0, \"a\", \"b\"]\n"
                "  capture c\n"
                "    %y = %x + 1\n"
                "    %m = %n\n"
                "  end\n"
                "  print %m\n"
                "end\n"),
            "%m = 1\n%m = true\n%m = 0.0\n%m = -0.0\na\nb\n");
  EXPECT_EQ(TracesIn(results[0].captures), 6);
}

TEST_F(ScriptTest, ANanIsTheSameInEachCallOfACapturedBlock) {
  Run("%x = tensor f32[2] {1, 2}\n"
      "%big = 1e308 * 10\n"
      "%n = %big - %big\n"
      "repeat 5\n"
      "  capture c\n"
      "    %y = %x + 1\n"
      "    %m = %n\n"
      "  end\n"
      "end\n");
  EXPECT_EQ(TracesIn(results[0].captures), 1);
}

TEST_F(ScriptTest, GradientsFlowThroughCapturedBlocks) {
  const std::string body =
      "%w = tensor f32[2] {1, 2}\n"
      "requires_grad %w\n"
      "for %i in range(4)\n"
      "  zero_grad %w\n"
      "  BLOCK\n"
      "    %y = %w * %w * %i\n"
      "  end\n"
      "  backward aten::sum(%y)\n"
      "  %g = grad %w\n"
      "  print %g\n"
      "end\n";
  std::string captured = body, traced = body;
  captured.replace(body.find("BLOCK"), 5, "capture c");
  traced.replace(body.find("BLOCK"), 5, "scope c");
  const std::string expected = Run(traced);
  EXPECT_NE(expected.find("%g = f32[2] {6, 12}"), std::string::npos) << expected;
  EXPECT_EQ(Run(captured), expected);
}

TEST_F(ScriptTest, IntegersAndFloatsAreComparedExactly) {
  EXPECT_EQ(Run("%n = 9007199254740993\n"
                "%x = 9007199254740992.0\n"
                "%m = 9223372036854775807\n"
                "%y = 9223372036854775808.0\n"
                "print %n == %x, %n > %x, %x < %n, %m == %y, %m < %y, %y > %m, 1 == 1.0, 1 < 1.5, -1 > -1.5\n"),
            "%n == %x = false\n%n > %x = true\n%x < %n = true\n%m == %y = false\n%m < %y = true\n%y > %m = true\n"
            "1 == 1.0 = true\n1 < 1.5 = true\n-1 > -1.5 = true\n");
}

TEST_F(ScriptTest, AnItemBeyondTheIntegersIsAnError) {
  EXPECT_EQ(Run("%x = tensor u64[1] {18446744073709551615}\nitem %x\n"), "%x = 18446744073709551615\n");
  EXPECT_EQ(Run("%x = tensor u64[1] {18446744073709551615}\n%n = item(%x)\n"),
            "the element 18446744073709551615 of u64 is beyond the integers of numbers, 2^63 - 1");
  EXPECT_EQ(Run("%x = tensor u64[1] {9223372036854775807}\n%n = item(%x)\nprint %n\n"), "%n = 9223372036854775807\n");
}

TEST_F(ScriptTest, TotalsOfListsAndModulesAreLimited) {
  EXPECT_EQ(Run("%l = [1, 2]\nrepeat 30\n  %l = [%l, %l]\nend\nprint %l\n"),
            "a list has at most 1048576 members, with those of lists in it");
  EXPECT_EQ(Run("%m = nn::ReLU()\nrepeat 30\n  %m = nn::Sequential(%m, %m)\nend\n"),
            "a module has at most 65536 modules in it");
}

TEST_F(ScriptTest, StatedValuesAreLimited) {
  ProgramOptions options;
  options.max_value_bytes = 16;
  EXPECT_EQ(Run("%x = tensor f32[5] {1, 2, 3, 4, 5}", options), "values have at most 16 bytes");
}

// Scripts that took quadratic time: each of these ends within the test's few milliseconds.
TEST_F(ScriptTest, ScriptsOfManyFunctionsAndCapturesRun) {
  std::string functions, captured = "%x = 1\ncapture c\n", jumps = "for %i in range(1)\n";
  const auto name = [](int i) { return "f" + std::to_string(i); };
  for (int i = 0; i < 20000; ++i) functions += "def " + name(i) + "()\n  " + name(i + 1) + "()\nend\n";
  functions += "def " + name(20000) + "()\n  print 1\nend\n";
  for (int i = 0; i < 20000; ++i) captured += "  %v" + std::to_string(i) + " = %x\n";
  for (int i = 0; i < 20000; ++i) captured += "  %w = %v" + std::to_string(i) + "\n";
  for (int i = 0; i < 150; ++i) jumps += "no_grad\n";
  for (int i = 0; i < 20000; ++i) jumps += "continue\n";
  for (int i = 0; i < 150; ++i) jumps += "end\n";
  EXPECT_EQ(Run(functions), "");
  EXPECT_EQ(Run(captured + "end\n"), "");
  EXPECT_EQ(Run(jumps + "end\n"), "");
  std::string parameters = "def f(";
  for (int i = 0; i < 300; ++i) parameters += "%p" + std::to_string(i) + ", ";
  EXPECT_EQ(Run(parameters + "%q)\nend\n"), "a function has at most 255 parameters");
}

TEST_F(ScriptTest, DeeplyNestedTextIsAnErrorOrRuns) {
  for (const char* open : {"(", "[", "-", "f(", "%x[", "not ", "2**"}) {
    std::string text = "%y = ";
    for (int i = 0; i < 20000; ++i) text += open;
    EXPECT_NE(Run(text), "") << open;
  }
  const auto nested = [](int depth) {
    std::string blocks;
    for (int i = 0; i < depth; ++i) blocks += "if 1\n";
    for (int i = 0; i < depth; ++i) blocks += "end\n";
    return blocks;
  };
  EXPECT_EQ(Run(nested(200)), "");
  EXPECT_EQ(Run(nested(3000)), "blocks are nested more than 200 deep");
}

}  // namespace
}  // namespace hlokit::lazy
