// SPDX-License-Identifier: Apache-2.0
// Metadata as text. PrintMetadata and PrintQuoted themselves are declared in printer.h.
#ifndef HLOKIT_IR_TEXT_METADATA_TEXT_H_
#define HLOKIT_IR_TEXT_METADATA_TEXT_H_

#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/graph/metadata.h"
#include "ir/text/printer.h"

namespace hlokit {

// Prints `op_name="x" stack_frame_id=3`, the text between the braces. For callers that replace the stored frame.
void PrintMetadataFields(TextWriter& out, const Context& context, const Metadata& metadata);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_METADATA_TEXT_H_
