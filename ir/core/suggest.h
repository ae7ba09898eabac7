// SPDX-License-Identifier: Apache-2.0
// Suggestions for misspelled names.
#ifndef HLOKIT_IR_CORE_SUGGEST_H_
#define HLOKIT_IR_CORE_SUGGEST_H_

#include <string>
#include <string_view>
#include <vector>

namespace hlokit {

// Returns the candidate nearest to `word` by edit distance if it is near enough for a hint, or else the shortest one
// that begins with `word`, or else "".
std::string_view FindNearest(std::string_view word, const std::vector<std::string_view>& candidates);

// Returns a question, "did you mean `X`?"; without a near candidate a list of few candidates, "it is one of `A`, `B`";
// else "".
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates);

// Returns a suggestion to append to a message, "; did you mean `X`?".
std::string DidYouMeanSuffix(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_SUGGEST_H_
