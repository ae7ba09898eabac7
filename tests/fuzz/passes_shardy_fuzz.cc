// SPDX-License-Identifier: Apache-2.0
// Reads Shardy's forms in the frontend attributes of arbitrary modules (xla.sdy.meshes, xla.sdy.sharding, manual
// computations between custom-calls). A valid module stays valid, or the attribute that names nothing is an error with
// a message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/sharding/shardy_import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 14) return 0;
  auto source = std::make_shared<const SourceBuffer>("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  ParseOptions options;
  options.max_literal_bytes = 1 << 16;
  DiagnosticSink sink;
  const std::unique_ptr<Module> module = ParseModule(source, options, &sink);
  if (module == nullptr) return 0;
  DiagnosticSink before;
  VerifyModule(*module, VerifierOptions(), &before);
  if (before.has_errors()) return 0;
  const absl::StatusOr<int64_t> read = sharding::ImportShardy(*module);
  if (!read.ok()) {
    if (read.status().message().empty()) std::abort();
    return 0;
  }
  DiagnosticSink after;
  VerifyModule(*module, VerifierOptions(), &after);
  if (!after.has_errors()) return 0;
  std::cerr << after.diagnostics()[0].message << "\n" << ToString(*module) << "\n";
  std::abort();
}
