// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as XLA's protocol buffers. A module that is read is written again, with all that the file says
// beyond it, and must be read again as the same module.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "parser/proto/proto_file.h"
#include "parser/text/byte_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 16) return 0;
  ParseOptions options;
  options.max_literal_bytes = 1 << 20;
  auto source = std::make_shared<const SourceBuffer>("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  const std::optional<ProtoForm> form = DetectProto(source->text());
  if (!form) return 0;
  DiagnosticSink sink;
  std::unique_ptr<const ProtoFileParts> parts;
  const std::unique_ptr<Module> module =
      ParseProtoModule(*source, source->text(), *form, options, &sink, nullptr, &parts);
  RenderText(sink, *source);
  if (module == nullptr) {
    if (!sink.has_errors()) std::abort();  // a rejection has a diagnostic
    return 0;
  }
  if (parts->file->argument_lists() > 0) {
    ByteLimit limit(options.max_literal_bytes);
    parts->file->ReadArguments(0, &module->context(), &limit).status().IgnoreError();
  }
  DiagnosticSink verdict;
  VerifyModule(*module, VerifierOptions(), &verdict);
  const std::string text = ToString(*module, PrintOptions::Lossless());
  const absl::StatusOr<std::string> bytes =
      WriteModuleAs(*module, {parts->file->form().message, ProtoEncoding::kBinary}, parts.get());
  if (!bytes.ok()) return 0;  // too large for a message
  auto again_source = std::make_shared<const SourceBuffer>("written", *bytes);
  DiagnosticSink again_sink;
  const std::unique_ptr<Module> again = ParseProtoModule(
      *again_source, again_source->text(), {parts->file->form().message, ProtoEncoding::kBinary}, options, &again_sink);
  if (again == nullptr || ToString(*again, PrintOptions::Lossless()) != text) std::abort();
  return 0;
}
