// SPDX-License-Identifier: Apache-2.0
// Conversion of a program to other float types or sizes.
#ifndef HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_
#define HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

// Converts every array with elements of one of the float types `from` to the float type `to`: shapes, constant values
// (rounded), shapes in attributes and the entry layout. A program that depends on the width of a type (bitcast-convert,
// a custom call) may become invalid.
void ConvertFloatTypes(Module* module, absl::Span<const ElementType> from, ElementType to);

// Replaces every dimension of size `from` by one of size `to`, also in slices of whole dimensions. Constants of such
// shapes lose their values. A program that depends on the size (a reshape that merges the dimension, a pad, a custom
// call) becomes invalid.
void ReplaceDimensionSizes(Module* module, int64_t from, int64_t to);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_
