// SPDX-License-Identifier: Apache-2.0
// Parses shardings into XLA's canonical form: ir/sharding/sharding.h has the forms.
#ifndef HLOKIT_PARSER_HLO_SHARDING_PARSER_H_
#define HLOKIT_PARSER_HLO_SHARDING_PARSER_H_

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Parses `{...}`. A single sharding of a whole tuple stays single: see NormalizeForShape. Requires: the text outlives
// the context, since strings of metadata point into it.
bool ParseSharding(TextCursor& in, Context* context, ListId* sharding);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_SHARDING_PARSER_H_
