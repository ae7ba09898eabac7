// SPDX-License-Identifier: Apache-2.0
// Reads replica groups: ir/replica_groups.h has the forms.
#ifndef HLOKIT_PARSER_REPLICA_GROUPS_PARSER_H_
#define HLOKIT_PARSER_REPLICA_GROUPS_PARSER_H_

#include "ir/context.h"
#include "ir/ids.h"
#include "parser/reader.h"

namespace hlokit {

bool ParseReplicaGroups(Reader& in, Context* context, ListId* groups);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_REPLICA_GROUPS_PARSER_H_
