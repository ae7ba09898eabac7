// SPDX-License-Identifier: Apache-2.0
// train FILE STEPS: compiles the training step of train_step.hlo once and runs it on its own results.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "interp/exact/evaluator.h"
#include "interp/exact/instruction_evaluator.h"
#include "io/files/read_file.h"
#include "ir/core/source_buffer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"

using hlokit::Literal;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto source = hlokit::ReadFile(argv[1]);
  if (!source.ok()) return 2;
  hlokit::DiagnosticSink sink;
  const std::unique_ptr<hlokit::Module> module = hlokit::ParseModule(*source, {}, &sink);
  if (module != nullptr) hlokit::VerifyModule(*module, {}, &sink);
  if (sink.has_errors()) {
    std::cerr << hlokit::RenderText(sink, **source);
    return 1;
  }

  // Optimize it. Passes may evaluate constants, which the interpreter does for them.
  absl::StatusOr<hlokit::Pipeline> pipeline = hlokit::Pipeline::Parse("simplify");
  hlokit::PipelineOptions options;
  options.context = hlokit::interp::EvaluatingContext();
  if (!pipeline.ok() || !pipeline->Run(*module, options).ok()) return 1;

  // Prepare it once, for any number of runs. A file may hold an endless loop: no run may take more than a second.
  hlokit::interp::EvaluatorOptions limits;
  limits.limits.max_seconds = 1;
  const auto step = hlokit::interp::Evaluator::Prepare(*module, limits, &sink);
  if (step == nullptr || step->argument_shapes().size() != 11 || step->result_shapes().size() != 9) {
    std::cerr << "train: error: expected a step of 11 parameters and 9 results\n";
    return 1;
  }

  // Parameters 0 to 3 are weights, 4 to 7 their momenta; then come images, labels and the learning rate.
  std::vector<Literal> arguments = hlokit::interp::MakeFakeArguments(*module, /*seed=*/1);
  for (size_t k = 4; k < 8; ++k) arguments[k] = Literal::Zeros(arguments[k].shape());
  for (int32_t n = 0; n < 8; ++n) arguments[9].values<int32_t>()[n] = n % 4;
  arguments[10].values<float>()[0] = 0.1f;
  for (int n = 0; n < std::atoi(argv[2]); ++n) {
    std::optional<std::vector<Literal>> results = step->Run(arguments, &sink);
    if (!results) {
      std::cerr << hlokit::RenderText(sink, **source);
      return 1;
    }
    for (size_t k = 0; k < 8; ++k) arguments[k] = std::move((*results)[k]);
    std::cout << "step " << n << ": loss " << (*results)[8].values<float>()[0] << "\n";
  }
}
