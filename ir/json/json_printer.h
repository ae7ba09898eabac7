// SPDX-License-Identifier: Apache-2.0
// Module -> JSON: everything a module holds, in a form that stays as it is, for programs to read. docs/json.md
// describes it; parser/json/json_parser.h reads it back into the same module.
#ifndef HLOKIT_IR_JSON_JSON_PRINTER_H_
#define HLOKIT_IR_JSON_JSON_PRINTER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/core/text_writer.h"
#include "ir/graph/module.h"

namespace hlokit {

// The values of "format" and "version". A change that old readers would take for something else raises the version; new
// keys do not.
inline constexpr std::string_view kJsonFormat = "hlokit-module";
inline constexpr int64_t kJsonVersion = 1;

void PrintJson(TextWriter& out, const Module& module);
std::string ToJson(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_IR_JSON_JSON_PRINTER_H_
