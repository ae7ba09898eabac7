// SPDX-License-Identifier: Apache-2.0
// Canonical form of stored attributes, independent of the creator of the instruction: defaulted ones are present,
// default values are elided.
#ifndef HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_
#define HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/ops/attribute.h"
#include "ir/types/element_type.h"

namespace hlokit {

// Returns true for a value that is not stored, since its absence has the same meaning (DefaultElision).
bool IsElided(const Module& module, Opcode opcode, AttrValue value);

// Applies the rules of single opcodes to the attributes from index `begin` on, as XLA does when it creates the
// instruction: the default comparison type and API version are dropped; the dimensions of a map and of the broadcast of
// a scalar and the shape of an outfeed are added; the callee of a custom-call becomes a list. Call before
// CompleteAttributes.
void NormalizeAttributes(Module* module, Opcode opcode, absl::Span<const InstructionId> operands, size_t begin,
                         std::vector<AttrValue>* attrs);

// Brings the attributes of an `opcode`, `attrs` from index `begin` on, into canonical form. Returns the first missing
// required one; the form is then incomplete.
std::optional<Attr> CompleteAttributes(const Module& module, Opcode opcode, size_t begin,
                                       std::vector<AttrValue>* attrs);

// Returns the default comparison type of an element type.
ComparisonType DefaultComparison(ElementType type);
// Returns the type of comparison that a total or partial order of elements is; nullopt: the default one.
std::optional<ComparisonType> ComparisonOfOrder(bool total, ElementType type);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_
