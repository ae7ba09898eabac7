// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/module_file.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "parser/bytecode/writer.h"
#include "parser/formats/module_formats.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/export/export.h"

namespace hlokit::cli {

namespace {

constexpr std::string_view kStablehloSuffixes[] = {".mlir"};
constexpr std::string_view kArtifactSuffixes[] = {".mlir.bc", ".mlirbc"};

bool EndsWithAny(std::string_view path, absl::Span<const std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(), [&](std::string_view s) { return path.ends_with(s); });
}

// Returns what follows the last dot of a file's name, with it; "" if there is none but one that begins the name.
std::string_view SuffixOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot);
}

}  // namespace

std::optional<std::string_view> FormatOfPath(std::string_view path) {
  if (EndsWithAny(path, kStablehloSuffixes)) return kStablehloFormat;
  if (EndsWithAny(path, kArtifactSuffixes)) return kArtifactFormat;
  if (const ModuleFormat* format = ModuleFormatOfPath(path)) return format->name;
  if (SuffixOf(path).empty()) return "hlo";
  return std::nullopt;
}

int UnknownSuffixError(std::string_view tool, std::string_view path, std::string_view hint) {
  std::vector<std::string_view> suffixes;
  const auto add = [&](absl::Span<const std::string_view> more) {
    suffixes.insert(suffixes.end(), more.begin(), more.end());
  };
  for (const ModuleFormat& format : ModuleFormats()) add(format.suffixes);
  add(kStablehloSuffixes);
  add(kArtifactSuffixes);
  std::string message = StrCat(path, ": `", SuffixOf(path), "` is the suffix of no format");
  StrAppend(&message, DidYouMeanSuffix(SuffixOf(path), suffixes), "; the suffixes are");
  for (size_t i = 0; i < suffixes.size(); ++i) StrAppend(&message, i == 0 ? " " : ", ", suffixes[i]);
  if (!hint.empty()) StrAppend(&message, "; ", hint);
  return UsageError(tool, message);
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
