// SPDX-License-Identifier: Apache-2.0
// Runs modules given as text on arguments given as text.
#ifndef HLOKIT_TESTS_UNIT_INTERP_EXACT_RUN_TEXT_H_
#define HLOKIT_TESTS_UNIT_INTERP_EXACT_RUN_TEXT_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interp/exact/arguments.h"
#include "interp/exact/evaluator.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/graph/module.h"
#include "ir/text/literal_text.h"
#include "ir/verify/verifier.h"
#include "parser/core/parser.h"

namespace hlokit::interp {

struct TextRun {
  std::vector<std::string> results;  // a leaf each, as literals are printed; those of device 0 first
  std::string error;                 // the first, or empty
};

// `arguments` is the text of all devices' arguments in turn; empty: made up from seed 1.
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
  const std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(*module, options, &sink);
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
