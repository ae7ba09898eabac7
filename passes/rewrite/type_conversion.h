// SPDX-License-Identifier: Apache-2.0
// A program in other float types or of other sizes.
#ifndef HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_
#define HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

// Makes every array whose elements are of one of the float types `from` one of the float type `to`: shapes, the values
// of constants (rounded), shapes in attributes and the layout of the entry. Where the program depends on the width of a
// type (bitcast-convert, a custom call) it may not verify afterwards.
void ConvertFloatTypes(Module* module, absl::Span<const ElementType> from, ElementType to);

// Makes every dimension of size `from` one of size `to`, in slices of whole dimensions too. Constants of such shapes
// lose their values. Where the program depends on the size (a reshape that merges the dimension, a pad, a custom call)
// it does not verify afterwards.
void ReplaceDimensionSizes(Module* module, int64_t from, int64_t to);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_TYPE_CONVERSION_H_
