// SPDX-License-Identifier: Apache-2.0
// Types of results from those of operands. Internal to this directory.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_INFER_TYPES_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_INFER_TYPES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "parser/mlir/module.h"
#include "parser/stablehlo/refine/refined_program.h"

namespace hlokit::stablehlo {

// Returns the tensor type with the sizes in place of those that it leaves open; kDynamicSize: still open. Other types,
// and sizes of another rank, change nothing.
mlir::NodeId WithSizes(mlir::NodeTable* nodes, mlir::NodeId type, absl::Span<const int64_t> sizes);

// Gives the results of an operation types with the sizes that follow from its operands, their known values, and its
// attributes. Operations whose results depend on regions are not among them.
void InferTypes(mlir::NodeTable* nodes, const RefinedOp& op, std::vector<RefinedValue>* values);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_INFER_TYPES_H_
