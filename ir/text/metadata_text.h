// SPDX-License-Identifier: Apache-2.0
// Metadata as text. PrintMetadata and PrintQuoted themselves are declared in printer.h.
#ifndef HLOKIT_IR_TEXT_METADATA_TEXT_H_
#define HLOKIT_IR_TEXT_METADATA_TEXT_H_

#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/graph/metadata.h"
#include "ir/text/printer.h"

namespace hlokit {

// `op_name="x" stack_frame_id=3`: what stands between the braces. For those who print another frame than the stored
// one.
void PrintMetadataFields(TextWriter& out, const Context& context, const Metadata& metadata);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_METADATA_TEXT_H_
