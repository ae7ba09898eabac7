// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes. Accepted modules that are valid are printed in the short and the lossless form, and parsed
// again: the text is that of the same module, and so is the fingerprint of the lossless form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"

namespace {

using namespace hlokit;

constexpr size_t kMaxPrinted = 1 << 20;

[[noreturn]] void Fail(const char* what, const std::string& text, const std::string& other) {
  std::cerr << what << ":\n" << text << "\n----\n" << other << "\n";
  std::abort();
}

// Ends the program unless the text parses.
std::unique_ptr<Module> Reread(const std::string& text) {
  auto source = std::make_shared<const SourceBuffer>("printed", text);
  DiagnosticSink sink;
  ParseOptions options;
  options.allow_unknown = true;
  options.max_literal_bytes = 1 << 24;
  std::unique_ptr<Module> module = ParseModule(source, options, &sink);
  if (module == nullptr) Fail("a printed module does not parse", text, RenderText(sink, *source));
  return module;
}

// Ends the program unless the printed module parses to the same one. The order of computations, and the numbers of
// stack frames, settle with the first text.
void ExpectPrintsTheSame(const Module& module, PrintOptions options) {
  const std::string text = ToString(module, options);
  if (text.size() > kMaxPrinted) return;
  const std::unique_ptr<Module> again = Reread(text);
  options.stable_computation_order = true;
  std::string first = ToString(module, options), second = ToString(*again, options);
  if (first != second && !module.header().stack_frames.empty()) {
    first = second;
    second = ToString(*Reread(first), options);
  }
  if (first != second) Fail("a printed module parses to another one", first, second);
  if (options.syntax_sugar_async_ops) return;
  if (Fingerprint(*again, FingerprintOptions::All()) != Fingerprint(module, FingerprintOptions::All())) {
    Fail("a printed module has another fingerprint", text, ToString(*again, options));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 16) return 0;
  // The first byte selects options, so that both parsers are tested.
  ParseOptions options;
  if (size > 0 && data[0] == '!') {
    options.allow_unknown = true;
    ++data;
    --size;
  }
  options.max_literal_bytes = 1 << 20;
  auto source = std::make_shared<const SourceBuffer>("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = ParseModule(source, options, &sink);
  RenderText(sink, *source);
  if (module == nullptr) {
    if (!sink.has_errors()) std::abort();  // a rejection has a diagnostic
    return 0;
  }
  DiagnosticSink verdict;
  VerifyModule(*module, VerifierOptions(), &verdict);
  if (verdict.has_errors()) {
    ToString(*module);
    return 0;
  }
  ExpectPrintsTheSame(*module, PrintOptions::Lossless());
  // The short form omits control predecessors, but orders instructions by them.
  for (const Computation computation : module->computations()) {
    for (const Instruction instruction : computation.instructions()) {
      if (instruction.has(Attr::kControlPredecessors)) return 0;
    }
  }
  ExpectPrintsTheSame(*module, PrintOptions::ShortParsable());
  return 0;
}
