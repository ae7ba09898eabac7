// SPDX-License-Identifier: Apache-2.0
// The formats that modules are written in, one per row of a table. Reading needs no name: ParseModule tells formats
// apart by their contents.
#ifndef HLOKIT_PARSER_FORMATS_MODULE_FORMATS_H_
#define HLOKIT_PARSER_FORMATS_MODULE_FORMATS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "parser/text/foreign_parts.h"

namespace hlokit {

struct ModuleFormat {
  std::string_view name;  // as in --to=NAME
  std::string_view description;
  // Ends of file names, the longer one of two that fit counts.
  absl::Span<const std::string_view> suffixes;
  bool is_proto;  // one of XLA's messages, which the parts of a file of such go into
  // `parts`: those of the file that the module was read from (ParseModuleAndParts); may be null.
  absl::StatusOr<std::string> (*write)(const Module& module, const ForeignParts* parts);
};

absl::Span<const ModuleFormat> ModuleFormats();
// Return null if there is none.
const ModuleFormat* FindModuleFormat(std::string_view name);
const ModuleFormat* ModuleFormatOfPath(std::string_view path);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_FORMATS_MODULE_FORMATS_H_
