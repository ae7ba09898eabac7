// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes. Accepted modules are verified, printed, parsed again and hashed, and must be unchanged.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/core/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
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
  const std::string text = ToString(*module, PrintOptions::ShortParsable());
  auto again_source = std::make_shared<const SourceBuffer>("printed", text);
  DiagnosticSink again_sink;
  ParseOptions again_options;
  again_options.allow_unknown = true;
  again_options.max_literal_bytes = 1 << 24;
  const std::unique_ptr<Module> again = ParseModule(again_source, again_options, &again_sink);
  if (again == nullptr) return 0;
  Fingerprint(*again);
  return 0;
}
