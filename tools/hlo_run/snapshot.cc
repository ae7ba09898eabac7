// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/snapshot.h"

#include "check/arguments/snapshot.h"
#include "parser/formats/module_formats.h"
#include "tools/cli/module_file.h"

namespace hlokit::run {

bool OpenSnapshot(const cli::InputPart& part, cli::DiagnosticReporter* diagnostics, std::unique_ptr<ProtoFile>* file) {
  DiagnosticSink sink;
  *file = interp::OpenSnapshot(*part.source, part.text, &sink);
  diagnostics->Show(sink, *part.source);
  return !sink.has_errors();
}

std::optional<ProtoEncoding> EncodingOfSnapshot(std::string_view path) {
  const std::optional<std::string_view> format = cli::FormatOfPath(path);
  if (format == "proto" || format == "snapshot" || (format == "hlo" && ModuleFormatOfPath(path) == nullptr)) {
    return ProtoEncoding::kBinary;
  }
  if (format == "textproto") return ProtoEncoding::kText;
  if (format == "proto-json") return ProtoEncoding::kJson;
  return std::nullopt;
}

}  // namespace hlokit::run
