// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as StableHLO: as a portable artifact if they begin like one, else as MLIR text. What is read is
// verified, printed in both forms, which must read again as the same program, and converted to HLO.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/core/stablehlo_program.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/convert.h"
#include "parser/stablehlo/verify.h"

namespace {

using namespace hlokit;

constexpr size_t kMaxPrinted = 1 << 20;

std::unique_ptr<mlir::Module> Read(const std::string& text, DiagnosticSink* sink) {
  mlir::MlirOptions options;
  options.max_literal_bytes = 1 << 20;
  auto source = std::make_shared<const SourceBuffer>("fuzz", text);
  return ParseStablehloProgram(source, source->text(), options, sink);
}

// Ends the program unless `printed` reads as a program that prints as `wanted`.
void ExpectPrints(const std::string& printed, const std::string& wanted, const mlir::MlirPrintOptions& options) {
  if (printed.size() > kMaxPrinted) return;
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> again = Read(printed, &sink);
  if (again != nullptr && mlir::PrintMlir(*again, options) == wanted) return;
  std::cerr << "printed:\n"
            << printed << "\nreads as:\n"
            << (again == nullptr ? sink.diagnostics()[0].message : mlir::PrintMlir(*again, options)) << "\n";
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 16) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = Read(text, &sink);
  RenderText(sink, SourceBuffer("fuzz", text));
  if (program == nullptr) {
    if (!sink.has_errors()) std::abort();  // a rejection has a diagnostic
    return 0;
  }
  DiagnosticSink verdict;
  stablehlo::VerifyProgram(*program, &verdict);
  if (!verdict.has_errors()) {
    const std::string custom = mlir::PrintMlir(*program, {}), generic = mlir::PrintMlir(*program, {.generic = true});
    ExpectPrints(custom, custom, {});
    ExpectPrints(generic, custom, {});
  }
  DiagnosticSink conversion;
  const std::unique_ptr<Module> module = stablehlo::ConvertToHlo(*program, {}, &conversion);
  if (module == nullptr) {
    if (!conversion.has_errors()) std::abort();
    return 0;
  }
  DiagnosticSink module_verdict;
  VerifyModule(*module, VerifierOptions(), &module_verdict);
  ToString(*module);
  return 0;
}
