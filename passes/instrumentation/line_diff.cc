// SPDX-License-Identifier: Apache-2.0
// The line diff of printing.h: Myers' O(ND) algorithm between the common prefix and suffix, bounded; beyond the bound
// the middle counts as replaced, which is still a correct diff.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/core/str_cat.h"
#include "passes/instrumentation/printing.h"

namespace hlokit {
namespace {

constexpr int64_t kMaxEdits = 2000;
constexpr size_t kContext = 3;

using Lines = std::vector<std::string_view>;

Lines SplitLines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

enum class Edit : char { kKeep = ' ', kRemove = '-', kAdd = '+' };

// Returns the edits that turn `a` into `b`.
std::vector<Edit> Edits(absl::Span<const std::string_view> a, absl::Span<const std::string_view> b) {
  const int64_t n = static_cast<int64_t>(a.size()), m = static_cast<int64_t>(b.size());
  const int64_t bound = std::min(n + m, kMaxEdits);
  // reach[d][k + d]: position in `a` that d edits reach on diagonal k.
  std::vector<std::vector<int64_t>> reach;
  for (int64_t d = 0; d <= bound; ++d) {
    std::vector<int64_t>& now = reach.emplace_back(static_cast<size_t>(2 * d + 1), 0);
    for (int64_t k = -d; k <= d; k += 2) {
      const auto last = [&](int64_t diagonal) {
        return reach[static_cast<size_t>(d - 1)][static_cast<size_t>(diagonal + d - 1)];
      };
      int64_t x = 0;
      if (d > 0) x = k == -d || (k != d && last(k - 1) < last(k + 1)) ? last(k + 1) : last(k - 1) + 1;
      int64_t y = x - k;
      while (x < n && y < m && x >= 0 && y >= 0 && a[static_cast<size_t>(x)] == b[static_cast<size_t>(y)]) ++x, ++y;
      now[static_cast<size_t>(k + d)] = x;
      if (x < n || y < m) continue;
      std::vector<Edit> edits;
      int64_t diagonal = k;
      for (int64_t e = d; e > 0; --e) {
        const auto before = [&](int64_t q) {
          return reach[static_cast<size_t>(e - 1)][static_cast<size_t>(q + e - 1)];
        };
        const bool down = diagonal == -e || (diagonal != e && before(diagonal - 1) < before(diagonal + 1));
        const int64_t from = down ? diagonal + 1 : diagonal - 1;
        const int64_t start = before(from) + (down ? 0 : 1);
        for (; x > start; --x) edits.push_back(Edit::kKeep);
        edits.push_back(down ? Edit::kAdd : Edit::kRemove);
        x = before(from);
        diagonal = from;
      }
      for (; x > 0; --x) edits.push_back(Edit::kKeep);
      std::reverse(edits.begin(), edits.end());
      return edits;
    }
  }
  std::vector<Edit> edits(a.size(), Edit::kRemove);
  edits.insert(edits.end(), b.size(), Edit::kAdd);
  return edits;
}

}  // namespace

std::string LineDiff(std::string_view before, std::string_view after) {
  const Lines a = SplitLines(before), b = SplitLines(after);
  size_t start = 0, end = 0;
  while (start < a.size() && start < b.size() && a[start] == b[start]) ++start;
  while (end + start < a.size() && end + start < b.size() && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  std::vector<Edit> edits(start, Edit::kKeep);
  const absl::Span<const std::string_view> left(a), right(b);
  const std::vector<Edit> middle =
      Edits(left.subspan(start, a.size() - start - end), right.subspan(start, b.size() - start - end));
  edits.insert(edits.end(), middle.begin(), middle.end());
  edits.insert(edits.end(), end, Edit::kKeep);

  std::vector<uint8_t> shown(edits.size(), 0);
  for (size_t i = 0; i < edits.size(); ++i) {
    if (edits[i] == Edit::kKeep) continue;
    for (size_t k = i - std::min(i, kContext); k < std::min(edits.size(), i + kContext + 1); ++k) shown[k] = 1;
  }
  std::string text;
  size_t x = 0, y = 0;
  for (size_t i = 0; i < edits.size(); ++i) {
    if (shown[i] != 0) {
      if (i == 0 || shown[i - 1] == 0) StrAppend(&text, "@@ -", x + 1, " +", y + 1, " @@\n");
      StrAppend(&text, static_cast<char>(edits[i]), edits[i] == Edit::kAdd ? b[y] : a[x], "\n");
    }
    x += edits[i] == Edit::kAdd ? 0 : 1;
    y += edits[i] == Edit::kRemove ? 0 : 1;
  }
  return text;
}

}  // namespace hlokit
