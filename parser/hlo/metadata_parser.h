// SPDX-License-Identifier: Apache-2.0
// Parses the metadata of instructions and shardings, `{op_name="jit(f)/add" stack_frame_id=34}`.
#ifndef HLOKIT_PARSER_HLO_METADATA_PARSER_H_
#define HLOKIT_PARSER_HLO_METADATA_PARSER_H_

#include "ir/core/ids.h"
#include "ir/graph/context.h"
#include "parser/text/stack_frame_numbering.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Returns an invalid id if all fields are empty. Requires: the text outlives the context, since strings point into it.
// `frames` renumbers stack frames; without it they are unchanged.
bool ParseMetadata(TextCursor& in, Context* context, MetadataId* metadata, StackFrameNumbering* frames = nullptr);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_METADATA_PARSER_H_
