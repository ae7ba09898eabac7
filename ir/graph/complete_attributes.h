// SPDX-License-Identifier: Apache-2.0
// The form in which attributes are stored, whoever makes an instruction: what the opcode implies is there, what says no
// more than its absence is not.
#ifndef HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_
#define HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "ir/graph/module.h"
#include "ir/ops/attribute.h"
#include "ir/types/element_type.h"

namespace hlokit {

// Returns true for a value that is not stored, since its absence says the same (DefaultElision).
bool IsElided(const Module& module, AttrValue value);

// Brings the attributes of an `opcode`, `attrs` from number `begin` on, into that form. Returns the first required one
// that is missing; then only some of it is done.
std::optional<Attr> CompleteAttributes(const Module& module, Opcode opcode, size_t begin,
                                       std::vector<AttrValue>* attrs);

// Returns how a compare that does not say so compares elements of a type.
ComparisonType DefaultComparison(ElementType type);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_COMPLETE_ATTRIBUTES_H_
