// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as StableHLO: as a portable artifact if they begin like one, else as MLIR text. What is read is
// verified, printed in both forms, which must read again as the same program, and converted to HLO, which is written as
// StableHLO. What the reader and the conversion share between equal operations must make no difference, and an
// operation with a syntax error must be the only one with an error. These comparisons read a program several times, so
// HLOKIT_FUZZ_COMPARE_EVERY=N makes them for one of N inputs only (by the checksum of the input; 1 if not given).
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/stablehlo_program.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/export/export.h"
#include "parser/stablehlo/import/convert.h"
#include "parser/stablehlo/verify/verify.h"

namespace {

using namespace hlokit;

constexpr size_t kMaxPrinted = 1 << 20;

// Whether the input is one of those that are compared with other ways to read and convert them.
bool IsCompared(const std::string& text) {
  static const uint64_t every = [] {
    const char* value = std::getenv("HLOKIT_FUZZ_COMPARE_EVERY");
    const uint64_t number = value == nullptr ? 1 : std::strtoull(value, nullptr, 10);
    return number == 0 ? 1 : number;
  }();
  return every == 1 || XXH3_64bits(text.data(), text.size()) % every == 0;
}

std::unique_ptr<mlir::Module> Read(const std::string& text, DiagnosticSink* sink) {
  mlir::MlirOptions options;
  options.max_literal_bytes = 1 << 20;
  options.verify = false;
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

[[noreturn]] void Fail(const char* what, const std::string& text, const std::string& other) {
  std::cerr << what << ":\n" << text << "\n----\n" << other << "\n";
  std::abort();
}

std::string MessagesOf(const DiagnosticSink& sink) {
  std::string messages;
  for (const Diagnostic& diagnostic : sink.diagnostics()) messages += diagnostic.message + "\n";
  return messages;
}

// Ends the program unless `printed` reads as the same program if no two of its lines are equal, so that no operation
// takes attributes and types of an earlier one.
void ExpectSameWithDistinctLines(const std::string& printed) {
  if (printed.size() > kMaxPrinted) return;
  std::string distinct;
  int64_t line = 0;
  for (const char c : printed) {
    if (c == '\n') distinct += " // " + std::to_string(line++);
    distinct += c;
  }
  ExpectPrints(distinct, printed, {});
}

// Ends the program unless a syntax error in one operation of `printed` is the only error.
void ExpectOneError(const std::string& printed) {
  if (printed.size() > kMaxPrinted) return;
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = Read(printed, &sink);
  std::vector<uint32_t> offsets;
  for (const mlir::Operation& op : program->operations) {
    const bool alone = op.region_count == 0 && op.successor_count == 0 && op.result_count != 0;
    // Its name is after `=`, not within another operation, as that of a reducer.
    if (alone && op.offset >= 2 && printed.compare(op.offset - 2, 2, "= ") == 0) offsets.push_back(op.offset);
  }
  if (offsets.empty()) return;
  const uint32_t begin = offsets[printed.size() % offsets.size()];
  const size_t end = printed.find('\n', begin);
  const std::string damaged = printed.substr(0, begin) + "stablehlo.add ?" + printed.substr(end);
  DiagnosticSink errors;
  if (Read(damaged, &errors) != nullptr || errors.diagnostics().size() != 1 ||
      errors.diagnostics()[0].range.offset < begin || errors.diagnostics()[0].range.offset > end) {
    Fail("one damaged operation has other errors", damaged, MessagesOf(errors));
  }
}

// Converts the program, and if `compared` again with no operation known to be as another.
std::unique_ptr<Module> Convert(mlir::Module* program, bool compared) {
  DiagnosticSink sink, other_sink;
  std::unique_ptr<Module> module = stablehlo::ConvertToHlo(*program, {}, &sink);
  if (module == nullptr && !sink.has_errors()) std::abort();
  if (!compared) return module;
  bool repeats = false;
  for (mlir::Operation& op : program->operations) {
    repeats = repeats || op.same_as.valid();
    op.same_as = mlir::OperationId();
  }
  if (!repeats) return module;
  const std::unique_ptr<Module> other = stablehlo::ConvertToHlo(*program, {}, &other_sink);
  const std::string text = module == nullptr ? MessagesOf(sink) : ToString(*module, PrintOptions::Lossless());
  const std::string other_text = other == nullptr ? MessagesOf(other_sink) : ToString(*other, PrintOptions::Lossless());
  if (text != other_text) Fail("repeated conversions differ", text, other_text);
  return module;
}

// Writes a module as StableHLO, which must read again.
void ExpectExports(const Module& module) {
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(module, &sink);
  if (program == nullptr) {
    if (!sink.has_errors()) std::abort();
    return;
  }
  const std::string printed = mlir::PrintMlir(*program);
  ExpectPrints(printed, printed, {});
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
  const bool compared = IsCompared(text);
  DiagnosticSink verdict;
  stablehlo::VerifyProgram(*program, &verdict);
  if (compared && !verdict.has_errors()) {
    // One check of each input: inputs that differ little in size are many.
    const std::string custom = mlir::PrintMlir(*program, {});
    switch (custom.size() % 4) {
      case 0:
        ExpectPrints(custom, custom, {});
        break;
      case 1:
        ExpectPrints(mlir::PrintMlir(*program, {.generic = true}), custom, {});
        break;
      case 2:
        ExpectSameWithDistinctLines(custom);
        break;
      default:
        ExpectOneError(custom);
    }
  }
  const std::unique_ptr<Module> module = Convert(program.get(), compared);
  if (module == nullptr) return 0;
  DiagnosticSink module_verdict;
  VerifyModule(*module, VerifierOptions(), &module_verdict);
  ToString(*module);
  if (compared && !module_verdict.has_errors()) ExpectExports(*module);
  return 0;
}
