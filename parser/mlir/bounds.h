// SPDX-License-Identifier: Apache-2.0
// Bounds of dynamic dimensions, the encoding of a tensor type: tensor<?x5xf32, #stablehlo.bounds<3, ?>>.
#ifndef HLOKIT_PARSER_MLIR_BOUNDS_H_
#define HLOKIT_PARSER_MLIR_BOUNDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "parser/mlir/node.h"

namespace hlokit::mlir {

// Returns true, and the bounds, if an encoding has them: kDynamicSize where there is none.
bool ReadBounds(const NodeTable& nodes, NodeId encoding, std::vector<int64_t>* bounds);
// Returns the bounds of a tensor type, as many as dimensions; empty if it has none.
std::vector<int64_t> BoundsOf(const NodeTable& nodes, NodeId type);
// Returns an encoding; invalid if no dimension has a bound.
NodeId MakeBounds(NodeTable* nodes, absl::Span<const int64_t> bounds);
// Returns why tensors of the sizes can't have the bounds, or "".
std::string CheckBounds(absl::Span<const int64_t> sizes, absl::Span<const int64_t> bounds);

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_BOUNDS_H_
