// SPDX-License-Identifier: Apache-2.0
// Human-readable descriptions of opcodes and attributes from the tables: the source of docs/ops.md.
#ifndef HLOKIT_IR_OPS_OP_REFERENCE_H_
#define HLOKIT_IR_OPS_OP_REFERENCE_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/core/text_writer.h"
#include "ir/ops/opcode.h"

namespace hlokit {

// Returns one line: the operation.
std::string_view MeaningOf(Opcode opcode);
// Returns one line: how the result shape is determined.
std::string_view DescribeShapeRule(ShapeRule rule);
// Returns the syntax of values of the type, by an example or its components.
std::string_view DescribeAttrType(AttrType type);
// Returns "commutative", "side effect", ...
std::vector<std::string_view> TraitNames(Opcode opcode);
// Returns "2", "0 or more", "1 to 3".
std::string OperandCountText(Opcode opcode);

// Writes one opcode as a section of the reference, in Markdown.
void WriteOpSection(TextWriter& out, Opcode opcode);
// Writes the whole reference, in Markdown.
void WriteOpReference(TextWriter& out);

}  // namespace hlokit

#endif  // HLOKIT_IR_OPS_OP_REFERENCE_H_
