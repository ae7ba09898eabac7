// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/module_file.h"

#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "parser/formats/module_formats.h"

namespace hlokit::cli {

namespace {

// Returns what follows the last dot of a file's name, with it; "" if there is none but one that begins the name.
std::string_view SuffixOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot);
}

}  // namespace

std::optional<std::string_view> FormatOfPath(std::string_view path) {
  if (const ModuleFormat* format = ModuleFormatOfPath(path)) return format->name;
  if (SuffixOf(path).empty()) return "hlo";
  return std::nullopt;
}

int UnknownSuffixError(std::string_view tool, std::string_view path, std::string_view hint) {
  std::vector<std::string_view> suffixes;
  for (const ModuleFormat& format : ModuleFormats()) {
    suffixes.insert(suffixes.end(), format.suffixes.begin(), format.suffixes.end());
  }
  std::string message = StrCat(path, ": `", SuffixOf(path), "` is the suffix of no format");
  StrAppend(&message, DidYouMeanSuffix(SuffixOf(path), suffixes), "; the suffixes are");
  for (size_t i = 0; i < suffixes.size(); ++i) StrAppend(&message, i == 0 ? " " : ", ", suffixes[i]);
  if (!hint.empty()) StrAppend(&message, "; ", hint);
  return UsageError(tool, message);
}

std::optional<std::string> ModuleInFormat(const Module& module, std::string_view format, const SourceBuffer& source,
                                          DiagnosticReporter* diagnostics) {
  const ModuleFormat* const known = FindModuleFormat(format);
  if (known == nullptr) {
    diagnostics->ShowError(source.name(), StrCat("there is no format `", format, "`"), kUsage);
    return std::nullopt;
  }
  DiagnosticSink sink;
  std::optional<std::string> written = known->write(module, nullptr, &sink);
  diagnostics->Show(sink, source);
  if (sink.has_errors()) return std::nullopt;
  return written;
}

}  // namespace hlokit::cli
