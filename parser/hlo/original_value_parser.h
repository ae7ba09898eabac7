// SPDX-License-Identifier: Apache-2.0
// Parses original values and the header tables about them: ir/text/original_value.h has the forms.
#ifndef HLOKIT_PARSER_HLO_ORIGINAL_VALUE_PARSER_H_
#define HLOKIT_PARSER_HLO_ORIGINAL_VALUE_PARSER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "ir/graph/module_header.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

bool ParseOriginalValue(TextCursor& in, Context* context, ListId* value);

// Replaces the text of a recovery module by its canonical form (XLA keeps what it prints). Reports an error and returns
// false if it is not a module; `range` is its location in quotes.
using KeepModuleText = std::function<bool(std::string* text, SourceRange range)>;

// Parses the value of `origin_recovery_table=`. Without `keep` the texts are unchanged.
bool ParseOriginRecoveryTable(TextCursor& in, Context* context, const KeepModuleText& keep,
                              std::vector<OriginRecoveryEntry>* table);

// Parses the value of `debug_attributes=`.
bool ParseDebugAttributes(TextCursor& in, Context* context, std::vector<DebugAttribute>* attributes);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_ORIGINAL_VALUE_PARSER_H_
