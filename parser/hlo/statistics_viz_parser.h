// SPDX-License-Identifier: Apache-2.0
// Parses statistics, `{visualizing_index=1,stat-0=0.5,stat-1=33}`.
#ifndef HLOKIT_PARSER_HLO_STATISTICS_VIZ_PARSER_H_
#define HLOKIT_PARSER_HLO_STATISTICS_VIZ_PARSER_H_

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Returns the empty list for `{}`.
bool ParseStatistics(TextCursor& in, Context* context, ListId* statistics);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_STATISTICS_VIZ_PARSER_H_
