// Reads the metadata of instructions and shardings, `{op_name="jit(f)/add" stack_frame_id=34}`.
#ifndef HLOKIT_PARSER_METADATA_PARSER_H_
#define HLOKIT_PARSER_METADATA_PARSER_H_

#include "ir/context.h"
#include "ir/ids.h"
#include "parser/reader.h"

namespace hlokit {

// None if nothing between the braces says anything. The text must outlive the context: strings point into it.
bool ParseMetadata(Reader& in, Context* context, MetadataId* metadata);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_METADATA_PARSER_H_
