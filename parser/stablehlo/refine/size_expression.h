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

// What an expression of one open variable says about it.
struct SizeSolution {
  enum class Kind : uint8_t { kOne, kNone, kSeveral };
  Kind kind = Kind::kSeveral;
  int64_t value = 0;  // of kOne
};

// Finds the value of `variable`, the only one that has none in `variables`, with which the expression is `size`. An
// expression that has the variable once and only sums and products is inverted; for others, values up to kMaxTriedSize
// are tried, as long as `*budget` lasts, which falls by the length of the expression for each: kSeveral when it ends.
inline constexpr int64_t kMaxTriedSize = 1 << 16;
SizeSolution SolveSize(std::string_view expression, std::string_view variable, int64_t size,
                       const SizeVariables& variables, int64_t* budget);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_SIZE_EXPRESSION_H_
