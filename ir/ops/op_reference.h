// SPDX-License-Identifier: Apache-2.0
// What the tables say of opcodes and attributes, in words: docs/ops.md is made of it.
#ifndef HLOKIT_IR_OPS_OP_REFERENCE_H_
#define HLOKIT_IR_OPS_OP_REFERENCE_H_

#include <string>
#include <string_view>
#include <vector>

#include "ir/core/text_writer.h"
#include "ir/ops/opcode.h"

namespace hlokit {

// One line: what the operation does.
std::string_view MeaningOf(Opcode opcode);
// One line: how the result shape follows.
std::string_view DescribeShapeRule(ShapeRule rule);
// How values of the type are written, by an example or its parts.
std::string_view DescribeAttrType(AttrType type);
// "commutative", "side effect", ...
std::vector<std::string_view> TraitNames(Opcode opcode);
// "2", "0 or more", "1 to 3".
std::string OperandCountText(Opcode opcode);

// One opcode as a section of the reference, in Markdown.
void WriteOpSection(TextWriter& out, Opcode opcode);
// The whole reference, in Markdown.
void WriteOpReference(TextWriter& out);

}  // namespace hlokit

#endif  // HLOKIT_IR_OPS_OP_REFERENCE_H_
