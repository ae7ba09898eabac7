// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/graph_diff.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"

namespace hlokit::lazy {
namespace {

constexpr int32_t kNoMatch = -1;
constexpr size_t kMaxCells = size_t{1} << 26;  // of the alignment table
constexpr int64_t kContext = 3;                // lines shown around a difference

// Returns the key of a node, without its operands.
std::string KeyOf(const TextNode& node) {
  std::string key = StrCat(node.op, " ", node.shape, " ", node.operands.size());
  for (const auto& [name, value] : node.tags) {
    if (!IsLocationTag(name)) StrAppend(&key, ", ", name, "=", value);
  }
  return key;
}

// Matches keys in order: equal ends, then a longest common subsequence of the rest or, where that would be too slow,
// only keys that are unique in both.
std::vector<int32_t> Align(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<int32_t> match(a.size(), kNoMatch);
  size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) {
    match[begin] = static_cast<int32_t>(begin);
    ++begin;
  }
  size_t end_a = a.size(), end_b = b.size();
  while (end_a > begin && end_b > begin && a[end_a - 1] == b[end_b - 1]) match[--end_a] = static_cast<int32_t>(--end_b);
  const size_t rows = end_a - begin, columns = end_b - begin;
  if (rows == 0 || columns == 0) return match;
  if (rows > kMaxCells / columns) {
    absl::flat_hash_map<uint32_t, int64_t> once;  // key -> index in b, -1 if there are several
    for (size_t j = begin; j < end_b; ++j) {
      const auto [it, fresh] = once.emplace(b[j], static_cast<int64_t>(j));
      if (!fresh) it->second = -1;
    }
    int64_t last = -1;
    for (size_t i = begin; i < end_a; ++i) {
      const auto it = once.find(a[i]);
      if (it == once.end() || it->second <= last) continue;
      match[i] = static_cast<int32_t>(it->second);
      last = it->second;
    }
    return match;
  }
  std::vector<uint32_t> length((rows + 1) * (columns + 1), 0);
  const auto at = [&](size_t i, size_t j) -> uint32_t& { return length[i * (columns + 1) + j]; };
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      at(i, j) = a[begin + i] == b[begin + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  for (size_t i = 0, j = 0; i < rows && j < columns;) {
    if (a[begin + i] == b[begin + j]) {
      match[begin + i] = static_cast<int32_t>(begin + j);
      ++i;
      ++j;
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      ++i;
    } else {
      ++j;
    }
  }
  return match;
}

std::string Place(const TextNode& node) {
  const std::string_view location = node.tag("location");
  return location.empty() ? "" : StrCat(" (", location, ")");
}

// Describes the first difference of two nodes.
std::string Compare(const TextGraph& ga, size_t ia, const TextGraph& gb, size_t ib) {
  const TextNode& a = ga.nodes[ia];
  const TextNode& b = gb.nodes[ib];
  const std::string where = StrCat("%", a.id, Place(a), " and %", b.id, Place(b), ": ");
  if (a.op != b.op) return StrCat(where, "op ", a.op, " became ", b.op);
  if (a.shape != b.shape) return StrCat(where, "the shape of ", a.op, " became ", b.shape, ", it was ", a.shape);
  for (const auto& [name, value] : a.tags) {
    if (!IsLocationTag(name) && b.tag(name) != value) {
      const std::string_view now = b.tag(name);
      return StrCat(where, a.op == "prim::Constant" ? "the constant" : StrCat(name, " of ", a.op), " became ",
                    now.empty() ? "absent" : now, ", it was ", value);
    }
  }
  for (const auto& [name, value] : b.tags) {
    if (!IsLocationTag(name) && a.tag(name).empty()) return StrCat(where, a.op, " has ", name, "=", value, " now");
  }
  if (a.operands.size() != b.operands.size()) {
    return StrCat(where, a.op, " has ", b.operands.size(), " operands, it had ", a.operands.size());
  }
  return "";
}

}  // namespace

GraphDiff DiffGraphs(const TextGraph& a, const TextGraph& b) {
  absl::flat_hash_map<std::string, uint32_t> keys;
  const auto encode = [&](const TextGraph& g) {
    std::vector<uint32_t> out;
    for (const TextNode& node : g.nodes) {
      out.push_back(keys.emplace(KeyOf(node), static_cast<uint32_t>(keys.size())).first->second);
    }
    return out;
  };
  const std::vector<uint32_t> keys_a = encode(a), keys_b = encode(b);
  const std::vector<int32_t> match = Align(keys_a, keys_b);

  std::vector<bool> taken(b.nodes.size(), false);
  for (int32_t m : match) {
    if (m != kNoMatch) taken[m] = true;
  }

  GraphDiff diff;
  struct Line {
    char mark;
    std::string text;
  };
  std::vector<Line> lines;
  size_t j = 0;
  const auto note = [&](std::string sentence) {
    if (diff.first.empty()) diff.first = std::move(sentence);
  };
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    if (match[i] == kNoMatch) {
      // At the same position in both: a changed node.
      const bool paired = j < b.nodes.size() && !taken[j];
      note(paired ? Compare(a, i, b, j)
                  : StrCat("%", a.nodes[i].id, Place(a.nodes[i]), ": ", a.nodes[i].op, " is not there any more"));
      lines.push_back({'-', PrintNode(a, i)});
      continue;
    }
    for (; j < static_cast<size_t>(match[i]); ++j) {
      note(StrCat("%", b.nodes[j].id, Place(b.nodes[j]), ": ", b.nodes[j].op, " is new"));
      lines.push_back({'+', PrintNode(b, j)});
    }
    ++diff.matched;
    std::string rewired;
    const TextNode& na = a.nodes[i];
    const TextNode& nb = b.nodes[j];
    for (size_t k = 0; k < na.operands.size() && k < nb.operands.size(); ++k) {
      const TextOperand& oa = na.operands[k];
      const TextOperand& ob = nb.operands[k];
      if (match[oa.node] == static_cast<int32_t>(ob.node) && oa.output == ob.output) continue;
      // A node that itself differs is reported there.
      if (match[oa.node] == kNoMatch) continue;
      if (rewired.empty()) {
        rewired = StrCat("%", na.id, Place(na), " and %", nb.id, Place(nb), ": operand ", k, " of ", na.op, " became %",
                         b.nodes[ob.node].id, ", it was %", b.nodes[match[oa.node]].id);
      }
    }
    if (rewired.empty()) {
      lines.push_back({' ', PrintNode(b, j)});
    } else {
      note(std::move(rewired));
      lines.push_back({'~', PrintNode(b, j)});
    }
    ++j;
  }
  for (; j < b.nodes.size(); ++j) {
    note(StrCat("%", b.nodes[j].id, Place(b.nodes[j]), ": ", b.nodes[j].op, " is new"));
    lines.push_back({'+', PrintNode(b, j)});
  }
  diff.equal = diff.first.empty();
  if (diff.equal) return diff;
  // Lines near a difference.
  std::vector<bool> shown(lines.size(), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].mark == ' ') continue;
    const int64_t from = std::max<int64_t>(0, static_cast<int64_t>(i) - kContext);
    const int64_t to = std::min<int64_t>(static_cast<int64_t>(lines.size()) - 1, static_cast<int64_t>(i) + kContext);
    for (int64_t k = from; k <= to; ++k) shown[k] = true;
  }
  int64_t hidden = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!shown[i]) {
      ++hidden;
      continue;
    }
    if (hidden > 0) StrAppend(&diff.text, "  ... ", hidden, " nodes in both\n");
    hidden = 0;
    StrAppend(&diff.text, lines[i].mark, " ", lines[i].text, "\n");
  }
  if (hidden > 0) StrAppend(&diff.text, "  ... ", hidden, " nodes in both\n");
  return diff;
}

}  // namespace hlokit::lazy
