// SPDX-License-Identifier: Apache-2.0
// Reads shardings: ir/sharding/sharding.h has the forms. What is read is brought into the form XLA keeps and prints.
#ifndef HLOKIT_PARSER_HLO_SHARDING_PARSER_H_
#define HLOKIT_PARSER_HLO_SHARDING_PARSER_H_

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/core/text_cursor.h"

namespace hlokit {

// Reads `{...}`. A sharding that was given once for a whole tuple is left so: see NormalizeForShape. The text must
// outlive the context: strings of metadata point into it.
bool ParseSharding(TextCursor& in, Context* context, ListId* sharding);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_SHARDING_PARSER_H_
