// SPDX-License-Identifier: Apache-2.0
// Conversion of a program to other float types or sizes.
#ifndef HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_
#define HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_

#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit {

// Converts every array with elements of one of the float types `from` to the float type `to`: shapes, constant values
// (rounded), shapes in attributes and the entry layout. A program that depends on the width of a type (bitcast-convert,
// a custom call) may become invalid.
void ConvertFloatTypes(Module* module, absl::Span<const ElementType> from, ElementType to);

// Returns the float type that programs compute in of this name: f64, f32, f16 or bf16.
std::optional<ElementType> ComputeTypeFromText(std::string_view name);
// Converts all arrays of these types to one of them, and verifies the module. Returns false if it depends on its types;
// errors are in the sink.
bool ConvertComputeTypes(Module* module, ElementType to, DiagnosticSink* sink);

// Replaces every dimension of size `from` by one of size `to`, also in slices of whole dimensions. Constants of such
// shapes lose their values. A program that depends on the size (a reshape that merges the dimension, a pad, a custom
// call) becomes invalid.
void ReplaceDimensionSizes(Module* module, int64_t from, int64_t to);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_
