// SPDX-License-Identifier: Apache-2.0
// StableHLO programs whose shapes are known late: dimensions that are `?`, as jax.export with symbolic dimensions and
// tf2xla write them. With the sizes of the arguments such a program becomes one of static shapes, in the steps that
// StableHLO's passes are named for:
//   refine-arguments        gives the arguments of the entry their types
//   refine-shapes           finds the types of all values from them, and the integers that sizes are computed from
//   canonicalize-dynamism   replaces operations that take sizes as operands by those that have them as attributes
// Functions that are called with several sizes become several functions. Assertions of the program about its sizes
// (custom calls of @shape_assertion) are checked, and removed where they hold.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_REFINE_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_REFINE_H_

#include <string>
#include <vector>

#include "ir/core/diagnostic.h"
#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

struct RefineOptions {
  std::string entry;  // the function whose arguments get sizes, with or without @; "": main
  // "b=8": the size of a dimension variable, one that the assertions of the program name, or "argN.D" of dimension D of
  // argument N. "arg0=8x4", "arg0=f32[8,4]": the shape of an argument, by its number or its name.
  std::vector<std::string> sizes;
  bool shapes = true;    // refine-shapes
  bool dynamism = true;  // canonicalize-dynamism
};

// Returns the names of the sizes that the entry leaves open, in the order of its arguments; empty if it leaves none
// open, or if there is no entry. Bounded dimensions are not open.
std::vector<std::string> OpenSizes(const mlir::Module& program, const std::string& entry);

// Replaces the program by the refined one. Returns false after errors.
bool RefineProgram(mlir::Module* program, const RefineOptions& options, DiagnosticSink* sink);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_REFINE_H_
