// SPDX-License-Identifier: Apache-2.0
// Modules given as text for the tests of check/isolation.
#ifndef HLOKIT_TESTS_UNIT_CHECK_ISOLATION_ISOLATION_TEXT_H_
#define HLOKIT_TESTS_UNIT_CHECK_ISOLATION_ISOLATION_TEXT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/isolation/instruction_runner.h"
#include "interp/program/engine_table.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "parser/formats/parser.h"

namespace hlokit::interp {

inline std::unique_ptr<Module> ParseForIsolation(std::string_view text, std::shared_ptr<Context> context = nullptr) {
  DiagnosticSink sink;
  const auto source = std::make_shared<const SourceBuffer>("test.hlo", std::string(text));
  std::unique_ptr<Module> module = ParseModule(source, ParseOptions(), &sink, std::move(context));
  EXPECT_FALSE(sink.has_errors()) << RenderText(sink, *source);
  return module;
}

inline Instruction Named(const Module& module, std::string_view name) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.name() == name) return i;
    }
  }
  ADD_FAILURE() << "no instruction " << name;
  return Instruction();
}

inline Literal Floats(Context& context, std::vector<int64_t> dims, const std::vector<float>& values) {
  Literal literal = Literal::Zeros(context.shapes.Array(ElementType::kF32, dims));
  std::copy(values.begin(), values.end(), literal.values<float>().begin());
  return literal;
}

// Runs the module on generated arguments while the observer sees what it requests. Returns whether the run succeeded.
inline bool RunObserved(const Module& module, EngineKind engine, ObservationRequest request,
                        ExecutionObserver* observer) {
  EvaluatorOptions options;
  options.observation = std::move(request);
  options.observer = observer;
  DiagnosticSink sink;
  const std::unique_ptr<Engine> prepared = PrepareEngine(engine, module, options, &sink);
  return prepared != nullptr && prepared->Run(MakeFakeArguments(module, 1), &sink).has_value();
}

}  // namespace hlokit::interp

#endif  // HLOKIT_TESTS_UNIT_CHECK_ISOLATION_ISOLATION_TEXT_H_
