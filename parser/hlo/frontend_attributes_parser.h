// SPDX-License-Identifier: Apache-2.0
// Parses frontend attributes, `{key="text",other.key={braced text}}`.
#ifndef HLOKIT_PARSER_HLO_FRONTEND_ATTRIBUTES_PARSER_H_
#define HLOKIT_PARSER_HLO_FRONTEND_ATTRIBUTES_PARSER_H_

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Requires: the text outlives the context, since strings point into it.
bool ParseFrontendAttributes(TextCursor& in, Context* context, ListId* attributes);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_FRONTEND_ATTRIBUTES_PARSER_H_
