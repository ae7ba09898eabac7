// SPDX-License-Identifier: Apache-2.0
// The steps of refinement by the names of StableHLO's passes.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_REFINE_PASSES_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_REFINE_PASSES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "parser/stablehlo/refine/refine.h"

namespace hlokit::stablehlo {

// Parses "stablehlo-refine-arguments{types=tensor<8x4xf32>,tensor<i32>},stablehlo-refine-shapes,
// stablehlo-canonicalize-dynamism": some of these in this order, with or without the prefix.
absl::StatusOr<RefineOptions> ParseRefinePasses(std::string_view text);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_REFINE_PASSES_H_
