// SPDX-License-Identifier: Apache-2.0
// Reads origins and the header tables about them: ir/text/original_value.h has the forms.
#ifndef HLOKIT_PARSER_HLO_ORIGINAL_VALUE_PARSER_H_
#define HLOKIT_PARSER_HLO_ORIGINAL_VALUE_PARSER_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "ir/graph/module_header.h"
#include "parser/core/text_cursor.h"

namespace hlokit {

bool ParseOriginalValue(TextCursor& in, Context* context, ListId* value);

// Replaces the text of a recovery module by the one to keep (XLA keeps what it prints). False, with a report, if it is
// no module; `range` is where it stands in quotes.
using KeepModuleText = std::function<bool(std::string* text, SourceRange range)>;

// What stands after `origin_recovery_table=`. Without `keep` the texts stay as they are.
bool ParseOriginRecoveryTable(TextCursor& in, Context* context, const KeepModuleText& keep,
                              std::vector<OriginRecoveryEntry>* table);

// What stands after `debug_attributes=`.
bool ParseDebugAttributes(TextCursor& in, Context* context, std::vector<DebugAttribute>* attributes);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_ORIGINAL_VALUE_PARSER_H_
