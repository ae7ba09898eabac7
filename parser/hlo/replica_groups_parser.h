// SPDX-License-Identifier: Apache-2.0
// Parses replica groups: ir/sharding/replica_groups.h has the forms.
#ifndef HLOKIT_PARSER_HLO_REPLICA_GROUPS_PARSER_H_
#define HLOKIT_PARSER_HLO_REPLICA_GROUPS_PARSER_H_

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

bool ParseReplicaGroups(TextCursor& in, Context* context, ListId* groups);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_REPLICA_GROUPS_PARSER_H_
