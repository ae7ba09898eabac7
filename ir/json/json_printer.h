// SPDX-License-Identifier: Apache-2.0
// Module -> JSON: everything in a module, in a stable machine-readable format. docs/json.md describes it;
// parser/json/json_parser.h parses it into the same module.
#ifndef HLOKIT_IR_JSON_JSON_PRINTER_H_
#define HLOKIT_IR_JSON_JSON_PRINTER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/text_writer.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// The values of "format" and "version". Incompatible changes increment the version; new keys do not.
inline constexpr std::string_view kJsonFormat = "hlokit-module";
inline constexpr int64_t kJsonVersion = 1;

void PrintJson(TextWriter& out, const Module& module);
std::string ToJson(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_IR_JSON_JSON_PRINTER_H_
