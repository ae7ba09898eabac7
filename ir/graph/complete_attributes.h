// SPDX-License-Identifier: Apache-2.0
// Canonical form of stored attributes, independent of the creator of the instruction: defaulted ones are present,
// default values are elided.
#ifndef HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_
#define HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "ir/graph/module.h"
#include "ir/ops/attribute.h"
#include "ir/types/element_type.h"

namespace hlokit {

// Returns true for a value that is not stored, since its absence has the same meaning (DefaultElision).
bool IsElided(const Module& module, AttrValue value);

// Brings the attributes of an `opcode`, `attrs` from index `begin` on, into canonical form. Returns the first missing
// required one; the form is then incomplete.
std::optional<Attr> CompleteAttributes(const Module& module, Opcode opcode, size_t begin,
                                       std::vector<AttrValue>* attrs);

// Returns the default comparison type of an element type.
ComparisonType DefaultComparison(ElementType type);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_
