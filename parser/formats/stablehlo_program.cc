// SPDX-License-Identifier: Apache-2.0
#include "parser/formats/stablehlo_program.h"

#include "parser/bytecode/container.h"
#include "parser/bytecode/jax_export.h"
#include "parser/bytecode/reader.h"
#include "parser/formats/foreign_format.h"
#include "parser/mlir/parser.h"
#include "parser/stablehlo/verify/verify.h"

namespace hlokit {

bool LooksLikeStablehlo(std::string_view text) {
  return bytecode::IsBytecode(text) || LooksLikeMlir(text) || bytecode::ArtifactOfJaxExport(text).has_value();
}

std::unique_ptr<mlir::Module> ParseStablehloProgram(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                                    const mlir::MlirOptions& options, DiagnosticSink* sink) {
  if (const std::optional<std::string_view> artifact = bytecode::ArtifactOfJaxExport(text)) text = *artifact;
  std::unique_ptr<mlir::Module> program = bytecode::IsBytecode(text)
                                              ? bytecode::ReadArtifact(std::move(source), text, options, sink)
                                              : mlir::ParseMlir(std::move(source), text, options, sink);
  if (program == nullptr || !options.verify) return program;
  stablehlo::VerifyProgram(*program, sink);
  return sink->has_errors() ? nullptr : std::move(program);
}

}  // namespace hlokit
