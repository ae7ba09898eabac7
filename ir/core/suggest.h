// SPDX-License-Identifier: Apache-2.0
// What to say to a user about a name that is none of those expected.
#ifndef HLOKIT_IR_CORE_SUGGEST_H_
#define HLOKIT_IR_CORE_SUGGEST_H_

#include <string>
#include <string_view>
#include <vector>

namespace hlokit {

// The candidate nearest to `word` by edit distance, if near enough to be worth a hint; else empty.
std::string_view FindNearest(std::string_view word, const std::vector<std::string_view>& candidates);

// The same as a question, "did you mean `X`?"; without a near one the candidates if they are few enough to read, as in
// "it is one of `A`, `B`"; else empty.
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates);

// Suggestion behind what is wrong, "; did you mean `X`?".
std::string DidYouMeanSuffix(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_SUGGEST_H_
