// SPDX-License-Identifier: Apache-2.0
// Shapes and attribute values of lazy IR text, in the spellings of PyTorch/XLA and of torch's TorchScript backend:
// f32[2,3]{1,0} and [Float[2,3]], (1, 2) and `1 2`.
#ifndef HLOKIT_TRACER_TEXT_IR_VALUES_H_
#define HLOKIT_TRACER_TEXT_IR_VALUES_H_

#include <optional>
#include <string_view>
#include <vector>

#include "ir/types/element_type.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

struct TextShape {
  ElementType type;
  std::vector<int64_t> dims;
  friend bool operator==(const TextShape&, const TextShape&) = default;
};

// Returns the shapes of a node's results; nullopt if the text is not of static arrays of less than 2^63 elements.
std::optional<std::vector<TextShape>> ParseTextShapes(std::string_view text);

// Returns the value of an attribute; nullopt if it is not of the argument's type.
std::optional<IValue> ParseTextValue(const ArgSpec& spec, std::string_view text);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_IR_VALUES_H_
