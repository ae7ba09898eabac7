// SPDX-License-Identifier: Apache-2.0
// my-opt PIPELINE FILE: runs passes of hlokit and logistic-fuser over a module, and checks that it computes the same.
#include <iostream>

#include "check/equivalence/equivalence_check.h"
#include "interp/exact/instruction_evaluator.h"
#include "io/files/read_file.h"
#include "ir/core/source_buffer.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "logistic_fuser.h"
#include "parser/formats/parser.h"
#include "passes/annotations/text.h"
#include "passes/core/pipeline.h"
#include "passes/core/register_passes.h"
#include "passes/instrumentation/reports.h"
#include "passes/instrumentation/verify_each.h"

namespace {

int Fail(const absl::Status& status) {
  std::cerr << "my-opt: error: " << status.message() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return Fail(absl::InvalidArgumentError("usage: my-opt PIPELINE FILE"));

  // The passes of hlokit, and ours.
  hlokit::PassRegistry registry;
  hlokit::RegisterPasses(&registry);
  hlokit::RegisterNamedPipelines(&registry);
  RegisterLogisticFuser(&registry);
  absl::StatusOr<hlokit::Pipeline> pipeline = hlokit::Pipeline::Parse(argv[1], registry);
  if (!pipeline.ok()) return Fail(pipeline.status());

  auto source = hlokit::ReadFile(argv[2]);
  if (!source.ok()) return Fail(source.status());
  hlokit::DiagnosticSink sink;
  const std::unique_ptr<hlokit::Module> module = hlokit::ParseModule(*source, {}, &sink);
  if (module != nullptr) hlokit::VerifyModule(*module, {}, &sink);
  if (sink.has_errors()) {
    std::cerr << hlokit::RenderText(sink, **source);
    return 1;
  }

  // After each pass: does the module verify, and does it compute the same?
  hlokit::VerifyEach verify({});
  hlokit::interp::EquivalenceCheck compare({});
  hlokit::PassStatistics statistics;
  hlokit::PipelineOptions options;
  options.context = hlokit::interp::EvaluatingContext();  // for constant-folding
  hlokit::ReadMetadataSources(*module);
  const auto result = pipeline->Run(*module, options, {&statistics, &compare, &verify});
  if (!result.ok()) return Fail(result.status());
  hlokit::WriteMetadataSources(*module);

  std::cerr << statistics.Text();
  std::cout << hlokit::ToString(*module, hlokit::PrintOptions::ShortParsable());
}
