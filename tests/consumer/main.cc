// SPDX-License-Identifier: Apache-2.0
// Parses a module, removes its dead code, and evaluates it: uses each library.
#include <iostream>

#include "interp/exact/evaluator.h"
#include "ir/core/diagnostic.h"
#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"

int main() {
  absl::StatusOr<std::unique_ptr<hlokit::Module>> module = hlokit::ParseModuleText(R"(HloModule m
ENTRY main {
  two = s32[] constant(2)
  dead = s32[] negate(two)
  ROOT four = s32[] add(two, two)
})");
  if (!module.ok()) return 1;
  absl::StatusOr<hlokit::Pipeline> pipeline = hlokit::Pipeline::Parse("dce");
  if (!pipeline.ok() || !pipeline->Run(**module, {}, {}).ok()) return 1;
  hlokit::DiagnosticSink sink;
  const auto evaluator = hlokit::interp::Evaluator::Prepare(**module, {}, &sink);
  if (evaluator == nullptr) return 1;
  const auto results = evaluator->Run({}, &sink);
  if (!results || results->size() != 1) return 1;
  const int32_t four = (*results)[0].values<int32_t>()[0];
  std::cout << "2 + 2 is " << four << "\n";
  return four == 4 ? 0 : 1;
}
