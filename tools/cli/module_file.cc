// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/module_file.h"

#include <memory>
#include <utility>

#include "parser/bytecode/writer.h"
#include "parser/core/module_formats.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/export.h"

namespace hlokit::cli {

std::string_view FormatOfPath(std::string_view path) {
  if (path.ends_with(".mlir")) return kStablehloFormat;
  if (path.ends_with(".mlir.bc")) return kArtifactFormat;
  const ModuleFormat* format = ModuleFormatOfPath(path);
  return format == nullptr ? "hlo" : format->name;
}

std::optional<std::string> ModuleInFormat(const Module& module, std::string_view format, const SourceBuffer& source,
                                          DiagnosticReporter* diagnostics) {
  if (const ModuleFormat* known = FindModuleFormat(format)) {
    absl::StatusOr<std::string> written = known->write(module, nullptr);
    if (written.ok()) return *std::move(written);
    diagnostics->ShowError(source.name(), std::string(written.status().message()), kRejected);
    return std::nullopt;
  }
  DiagnosticSink sink;
  const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(module, &sink);
  std::optional<std::string> written;
  if (program != nullptr) {
    written = format == kArtifactFormat ? bytecode::WriteArtifact(program.get(), &sink) : mlir::PrintMlir(*program, {});
  }
  diagnostics->Show(sink, source);
  if (sink.has_errors()) return std::nullopt;
  return written;
}

}  // namespace hlokit::cli
