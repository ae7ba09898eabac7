// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as the FlatBuffers message that jax.export serializes. The artifact that is found lies in the
// bytes and begins as one does; it is the same whatever follows the message, and is read without a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "parser/bytecode/container.h"
#include "parser/bytecode/jax_export.h"
#include "parser/formats/stablehlo_program.h"
#include "parser/mlir/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 16) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::optional<std::string_view> artifact = bytecode::ArtifactOfJaxExport(bytes);
  if (!artifact) return 0;
  if (artifact->data() < bytes.data() || artifact->data() + artifact->size() > bytes.data() + bytes.size())
    std::abort();
  if (!bytecode::IsBytecode(*artifact) || !LooksLikeStablehlo(bytes)) std::abort();
  const std::string longer = bytes + std::string(16, '\x7f');
  const std::optional<std::string_view> same = bytecode::ArtifactOfJaxExport(longer);
  if (!same || *same != *artifact) std::abort();
  auto source = std::make_shared<const SourceBuffer>("fuzz", bytes);
  mlir::MlirOptions options;
  options.max_literal_bytes = 1 << 20;
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = ParseStablehloProgram(source, source->text(), options, &sink);
  if (program == nullptr && !sink.has_errors()) std::abort();  // a rejection has a diagnostic
  return 0;
}
