// SPDX-License-Identifier: Apache-2.0
// The formats that modules are written in, one per row of a table. Reading needs no name: ParseModule tells formats
// apart by their contents, and StableHLO programs become HLO.
#ifndef HLOKIT_PARSER_FORMATS_MODULE_FORMATS_H_
#define HLOKIT_PARSER_FORMATS_MODULE_FORMATS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "parser/text/foreign_parts.h"

namespace hlokit {

struct ModuleFormat {
  std::string_view name;  // as in --to=NAME
  std::string_view description;
  // Ends of file names, the longer one of two that fit counts.
  absl::Span<const std::string_view> suffixes;
  bool is_proto;      // one of XLA's messages, which the parts of a file of such go into
  bool is_stablehlo;  // a StableHLO program, which is made from a module and no form of it
  // `parts`: those of the file that the module was read from (ParseModuleAndParts); may be null. Returns nullopt after
  // errors, which are in the sink.
  std::optional<std::string> (*write)(const Module& module, const ForeignParts* parts, DiagnosticSink* sink);
};

absl::Span<const ModuleFormat> ModuleFormats();
// Return null if there is none.
const ModuleFormat* FindModuleFormat(std::string_view name);
const ModuleFormat* ModuleFormatOfPath(std::string_view path);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_FORMATS_MODULE_FORMATS_H_
