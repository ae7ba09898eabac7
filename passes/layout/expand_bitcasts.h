// SPDX-License-Identifier: Apache-2.0
// Replaces bitcasts, whose values depend on layouts, by transposes and reshapes, whose values do not: before a module
// that another compiler has given layouts gets new ones.
#ifndef HLOKIT_PASSES_LAYOUT_EXPAND_BITCASTS_H_
#define HLOKIT_PASSES_LAYOUT_EXPAND_BITCASTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"

namespace hlokit {

// Returns the number of bitcasts replaced. Leaves those between tiled arrays, and those between element types of
// different sizes. Modules with a schedule do not change.
absl::StatusOr<int64_t> ExpandBitcasts(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_LAYOUT_EXPAND_BITCASTS_H_
