// SPDX-License-Identifier: Apache-2.0
// Values of small arrays of integers. Internal to this directory.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_FOLD_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_FOLD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "parser/mlir/module.h"
#include "parser/stablehlo/refine/refined_program.h"

namespace hlokit::stablehlo {

// Arrays with more elements are not computed: sizes are arrays of the rank of another.
inline constexpr int64_t kMaxFoldedElements = 1024;

// Returns the elements of a constant attribute of integers; nullopt for others, and for more than kMaxFoldedElements.
std::optional<std::vector<int64_t>> ElementsOf(const mlir::NodeTable& nodes, mlir::NodeId attribute, mlir::NodeId type);

// Returns true if the constant of a value has as many elements as its type, a static one of integers.
bool HasElements(const mlir::NodeTable& nodes, const RefinedValue& value);

// Returns the elements of the only result of an operation, of a static type; nullopt if they are not known, or the
// operation has no value for them.
std::optional<std::vector<int64_t>> Fold(const mlir::NodeTable& nodes, const RefinedOp& op,
                                         const std::vector<RefinedValue>& values);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_FOLD_H_
