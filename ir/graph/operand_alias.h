// SPDX-License-Identifier: Apache-2.0
// Reads output_to_operand_aliasing (OperandAliasing in attribute_types.def).
#ifndef HLOKIT_IR_GRAPH_OPERAND_ALIAS_H_
#define HLOKIT_IR_GRAPH_OPERAND_ALIAS_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace hlokit {

// One entry of an output_to_operand_aliasing, spans into the encoded list.
struct OperandAlias {
  absl::Span<const int64_t> output_index;
  int64_t operand = 0;
  absl::Span<const int64_t> operand_index;
};
// Removes and returns the first entry of `encoded`; nullopt at its end (or if it is truncated).
std::optional<OperandAlias> NextOperandAlias(absl::Span<const int64_t>* encoded);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_OPERAND_ALIAS_H_
