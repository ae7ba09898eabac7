// SPDX-License-Identifier: Apache-2.0
// Runs modules given as text on arguments given as text: on the exact engine, and on the reference evaluator, which
// must agree unless the module is too large for it.
#ifndef HLOKIT_TESTS_UNIT_INTERP_EXACT_RUN_TEXT_H_
#define HLOKIT_TESTS_UNIT_INTERP_EXACT_RUN_TEXT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/comparison/value_comparison.h"
#include "interp/program/engine_table.h"
#include "io/arrays/arguments.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/graph/module.h"
#include "ir/text/literal_text.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {

struct TextRun {
  std::vector<std::string> results;  // one leaf each, as printed literals; those of device 0 first
  std::string error;                 // the first one, or empty
};

// Expects that the reference evaluator returns the same results, or an error if the exact engine has one (no results).
inline void ExpectPlainAgrees(const Module& module, EvaluatorOptions options, const std::vector<Literal>& arguments,
                              const std::optional<std::vector<Literal>>& results) {
  options.limits.max_seconds = std::min(options.limits.max_seconds, 0.2);
  DiagnosticSink sink;
  const auto plain = PrepareEngine(EngineKind::kReference, module, options, &sink);
  std::optional<std::vector<Literal>> expected;
  if (plain != nullptr) expected = plain->Run(arguments, &sink);
  std::string error;
  for (const Diagnostic& d : sink.diagnostics()) error += d.message;
  if (error.find("time limit") != std::string::npos) return;
  ASSERT_EQ(expected.has_value(), results.has_value()) << error;
  if (!results) return;
  ErrorSpec tolerance;
  tolerance.ulp = 1;
  const auto difference = CompareValues(*results, *expected, tolerance);
  ASSERT_TRUE(difference.ok()) << difference.status().message();
  EXPECT_TRUE(difference->equal()) << "against the plain evaluator: " << difference->description;
}

// `arguments` is the text of all devices' arguments in turn; empty: generated from seed 1.
inline TextRun RunText(std::string_view text, std::string_view arguments = "", EvaluatorOptions options = {}) {
  TextRun run;
  DiagnosticSink sink;
  const auto failed = [&] {
    for (const Diagnostic& d : sink.diagnostics()) {
      if (d.severity == Severity::kError) {
        run.error = d.message;
        return true;
      }
    }
    return false;
  };
  const auto source = std::make_shared<const SourceBuffer>("test.hlo", std::string(text));
  const std::unique_ptr<Module> module = ParseModule(source, ParseOptions(), &sink);
  if (failed()) return run;
  VerifyModule(*module, VerifierOptions(), &sink);
  if (failed()) return run;
  const std::unique_ptr<Engine> evaluator = PrepareEngine(EngineKind::kExact, *module, options, &sink);
  if (failed()) return run;
  std::vector<Shape> shapes;
  for (int64_t d = 0; d < evaluator->num_devices(); ++d) {
    shapes.insert(shapes.end(), evaluator->argument_shapes().begin(), evaluator->argument_shapes().end());
  }
  std::vector<Literal> values;
  if (arguments.empty()) {
    values = MakeFakeArguments(shapes, 1);
  } else {
    const SourceBuffer lines("arguments", std::string(arguments));
    std::optional<std::vector<Literal>> read = ReadArguments(lines, shapes, &module->context(), &sink);
    if (failed()) return run;
    values = std::move(*read);
  }
  const std::optional<std::vector<Literal>> results = evaluator->Run(values, &sink);
  ExpectPlainAgrees(*module, options, values, results);
  if (failed()) return run;
  for (const Literal& literal : *results) {
    std::string out;
    {
      TextWriter writer(&out);
      PrintLeaves(writer, {&literal, 1});
    }

    while (!out.empty() && out.back() == '\n') out.pop_back();
    run.results.push_back(out);
  }
  return run;
}

inline TextRun RunOnDevices(std::string_view text, std::string_view arguments, int64_t replicas, int64_t partitions) {
  EvaluatorOptions options;
  options.num_replicas = replicas;
  options.num_partitions = partitions;
  return RunText(text, arguments, options);
}

}  // namespace hlokit::interp

#endif  // HLOKIT_TESTS_UNIT_INTERP_EXACT_RUN_TEXT_H_
