// SPDX-License-Identifier: Apache-2.0
// Sizes as jax.export writes them: "b", "2*b + 1", "floordiv(b, 2)", "max(a, b)". Internal to this directory.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_SIZE_EXPRESSION_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_SIZE_EXPRESSION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlokit::stablehlo {

using SizeVariables = std::map<std::string, int64_t, std::less<>>;

// Returns the names of the variables in an expression, each once, in the order of their first use.
std::vector<std::string> VariablesOf(std::string_view expression);

// Returns the value; nullopt if a variable has none, or the text is no such expression.
std::optional<int64_t> EvaluateSize(std::string_view expression, const SizeVariables& variables);

// Returns the value of the only variable without one with which the expression has this value; nullopt if there is none
// up to `size`, or if several variables have no value.
std::optional<int64_t> SolveSize(std::string_view expression, int64_t size, const SizeVariables& variables);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_SIZE_EXPRESSION_H_
