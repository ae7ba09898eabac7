// SPDX-License-Identifier: Apache-2.0
#include "ir/core/suggest.h"

#include <algorithm>

#include "ir/core/str_cat.h"

namespace hlokit {

std::string_view FindNearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  // Damerau-Levenshtein restricted to adjacent swaps, on words short enough for a fixed row.
  constexpr size_t kMaxLength = 64;
  if (word.empty() || word.size() > kMaxLength) return {};
  std::string_view best;
  size_t best_distance = word.size() / 3 + 1;
  for (std::string_view c : candidates) {
    if (c.size() > kMaxLength) continue;
    const size_t gap = c.size() > word.size() ? c.size() - word.size() : word.size() - c.size();
    if (gap > best_distance) continue;
    size_t rows[3][kMaxLength + 1];
    for (size_t j = 0; j <= c.size(); ++j) rows[0][j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t* now = rows[i % 3];
      const size_t* last = rows[(i + 2) % 3];
      const size_t* before = rows[(i + 1) % 3];
      now[0] = i;
      for (size_t j = 1; j <= c.size(); ++j) {
        now[j] = std::min({now[j - 1] + 1, last[j] + 1, last[j - 1] + (word[i - 1] != c[j - 1])});
        if (i > 1 && j > 1 && word[i - 1] == c[j - 2] && word[i - 2] == c[j - 1]) {
          now[j] = std::min(now[j], before[j - 2] + 1);
        }
      }
    }
    const size_t distance = rows[word.size() % 3][c.size()];
    // Of equally near ones the first, or one that the word begins.
    const bool completes = distance == best_distance && c.starts_with(word) && !best.starts_with(word);
    if (distance != 0 && (distance < best_distance + (best.empty() ? 1 : 0) || completes)) {
      best = c;
      best_distance = distance;
    }
  }
  if (!best.empty() || word.size() < 2) return best;
  for (std::string_view c : candidates) {
    if (c.size() > word.size() && c.starts_with(word) && (best.empty() || c.size() < best.size())) best = c;
  }
  return best;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr size_t kMaxListed = 24;
  if (const std::string_view near = FindNearest(word, candidates); !near.empty())
    return StrCat("did you mean `", near, "`?");
  if (candidates.empty() || candidates.size() > kMaxListed) return "";
  std::string list;
  for (std::string_view candidate : candidates) StrAppend(&list, list.empty() ? "`" : ", `", candidate, "`");
  return StrCat(candidates.size() == 1 ? "expected " : "expected one of ", list);
}

std::string DidYouMeanSuffix(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string suggestion = DidYouMean(word, candidates);
  return suggestion.empty() ? suggestion : StrCat("; ", suggestion);
}

}  // namespace hlokit
