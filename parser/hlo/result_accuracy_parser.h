// SPDX-License-Identifier: Apache-2.0
// Parses a result accuracy, `{mode=highest}` or `{tolerance={atol=0,rtol=0.5,ulps=2}}`.
#ifndef HLOKIT_PARSER_HLO_RESULT_ACCURACY_PARSER_H_
#define HLOKIT_PARSER_HLO_RESULT_ACCURACY_PARSER_H_

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Returns the empty list for the default mode.
bool ParseResultAccuracy(TextCursor& in, Context* context, ListId* accuracy);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_RESULT_ACCURACY_PARSER_H_
