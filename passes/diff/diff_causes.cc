// SPDX-License-Identifier: Apache-2.0
#include "passes/diff/diff_causes.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/graph/source_line.h"
#include "ir/types/fold_shape.h"

namespace hlokit {
namespace {

constexpr size_t kMaxExamples = 3;
constexpr size_t kMaxPatterns = 4;  // of one attribute that are lines of their own, or named in one line

constexpr std::string_view kSizes = "sizes";

enum class Rank : uint8_t { kProgram, kShape, kConsequence, kAnnotation };

// Returns the factor from `before` to `after` as "x 2" or "x 1/2"; "" for zeros.
std::string FactorText(int64_t before, int64_t after) {
  if (before <= 0 || after <= 0) return "";
  const int64_t common = std::gcd(before, after);
  const int64_t up = after / common, down = before / common;
  return down == 1 ? StrCat("x ", up) : StrCat("x ", up, "/", down);
}

// A number in a text, or the text between numbers.
struct Token {
  std::string_view text;
  std::optional<int64_t> number;
};

std::vector<Token> TokensOf(std::string_view text) {
  std::vector<Token> tokens;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty()) {
    const bool digits = is_digit(text[0]);
    size_t end = 1;
    while (end < text.size() && is_digit(text[end]) == digits) ++end;
    Token token{text.substr(0, end), std::nullopt};
    int64_t value = 0;
    if (digits && std::from_chars(text.data(), text.data() + end, value).ec == std::errc()) token.number = value;
    tokens.push_back(token);
    text.remove_prefix(end);
  }
  return tokens;
}

// Returns the factor of all numbers that differ, if the texts are otherwise equal and there is one; else "".
std::string CommonFactor(std::string_view before, std::string_view after) {
  const std::vector<Token> a = TokensOf(before), b = TokensOf(after);
  if (a.size() != b.size()) return "";
  std::string factor;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].text == b[k].text) continue;
    if (!a[k].number || !b[k].number) return "";
    const std::string here = FactorText(*a[k].number, *b[k].number);
    if (here.empty() || (!factor.empty() && factor != here)) return "";
    factor = here;
  }
  return factor;
}

// Pairs that differ in the same way.
struct Group {
  int64_t pairs = 0;
  std::vector<Instruction> examples;
  std::map<std::string, int64_t> patterns;  // "128 -> 64" and in how many pairs

  void Add(Instruction example) {
    ++pairs;
    if (examples.size() < kMaxExamples) examples.push_back(example);
  }
};

class CauseCollector {
 public:
  void Visit(const ChangedInstruction& changed);
  std::vector<DiffCause> Finish();

 private:
  using Key = std::tuple<Rank, std::string, std::string>;  // what, and how where that is one pattern

  void Add(Rank rank, std::string_view what, std::string_view change, std::string_view pattern, Instruction example);
  void VisitText(const ChangedInstruction& changed, std::string_view text);
  void VisitShapes(Instruction a, Instruction b);
  void VisitMetadata(Instruction a, Instruction b);
  void VisitAttribute(Rank rank, std::string_view what, std::string_view before, std::string_view after,
                      Instruction example);

  // By the texts before and after.
  using PatternGroups = std::map<std::pair<std::string, std::string>, Group>;
  void MergeRareSizes();
  void AddAttribute(Rank rank, const std::string& what, const PatternGroups& patterns);

  std::map<Key, Group> groups_;
  std::map<std::pair<Rank, std::string>, PatternGroups> attributes_;  // by name
  absl::flat_hash_set<std::string> counted_;                          // groups that the current pair is in
};

void CauseCollector::Add(Rank rank, std::string_view what, std::string_view change, std::string_view pattern,
                         Instruction example) {
  Group& group = groups_[{rank, std::string(what), std::string(change)}];
  if (counted_.insert(StrCat(what, "\n", change)).second) group.Add(example);
  if (!pattern.empty() && counted_.insert(StrCat(what, "\n", change, "\n", pattern)).second) {
    ++group.patterns[std::string(pattern)];
  }
}

void CauseCollector::VisitShapes(Instruction a, Instruction b) {
  const std::vector<Shape> before = Leaves(a.shape()), after = Leaves(b.shape());
  if (before.size() != after.size()) {
    Add(Rank::kShape, "elements of a tuple", StrCat(before.size(), " -> ", after.size()), "", b);
    return;
  }
  for (size_t k = 0; k < before.size(); ++k) {
    const Shape x = before[k], y = after[k];
    if (x == y) continue;
    if (!x.IsArray() || !y.IsArray()) {
      Add(Rank::kShape, "shape", StrCat(ToString(x, false), " -> ", ToString(y, false)), "", b);
      continue;
    }
    if (x.element_type() != y.element_type()) {
      Add(Rank::kProgram, "element type", StrCat(ToString(x.element_type()), " -> ", ToString(y.element_type())), "",
          b);
    }
    if (x.rank() != y.rank()) {
      Add(Rank::kShape, "rank", StrCat(x.rank(), " -> ", y.rank()), "", b);
      continue;
    }
    bool same_sizes = true;
    for (int64_t d = 0; d < x.rank(); ++d) {
      if (x.dim(d) == y.dim(d)) continue;
      same_sizes = false;
      Add(Rank::kShape, kSizes, FactorText(x.dim(d), y.dim(d)), StrCat(x.dim(d), " -> ", y.dim(d)), b);
    }
    if (same_sizes && x.element_type() == y.element_type()) {
      const auto layout = [](Shape shape) {
        const std::string text = ToString(shape, true);
        const size_t brace = text.find('{');
        return brace == std::string::npos ? "none" : text.substr(brace);
      };
      Add(Rank::kShape, "layout", StrCat(layout(x), " -> ", layout(y)), "", b);
    }
  }
}

// Returns what differs between two texts, without what both begin and end with up to a boundary of words.
std::string MiddleChange(std::string_view a, std::string_view b) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  while (begin > 0 && is_word(a[begin - 1])) --begin;
  size_t end = 0;
  while (end + begin < a.size() && end + begin < b.size() && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  while (end > 0 && is_word(a[a.size() - end])) --end;
  const std::string_view x = a.substr(begin, a.size() - begin - end), y = b.substr(begin, b.size() - begin - end);
  return StrCat(x.empty() ? "nothing" : x, " -> ", y.empty() ? "nothing" : y);
}

void CauseCollector::VisitMetadata(Instruction a, Instruction b) {
  const std::string_view name_a = OpNameOf(a), name_b = OpNameOf(b);
  const std::string line_a = SourceLineOf(a), line_b = SourceLineOf(b);
  if (name_a != name_b) VisitAttribute(Rank::kAnnotation, "op_name", name_a, name_b, b);
  if (line_a == line_b) {
    if (name_a == name_b) Add(Rank::kAnnotation, "metadata", "other fields", "", b);
    return;
  }
  const size_t colon_a = line_a.rfind(':'), colon_b = line_b.rfind(':');
  const std::string file_a = line_a.substr(0, colon_a), file_b = line_b.substr(0, colon_b);
  if (file_a != file_b) {
    Add(Rank::kAnnotation, "source_file", MiddleChange(file_a, file_b), "", b);
    return;
  }
  int64_t from = 0, to = 0;
  std::from_chars(line_a.data() + colon_a + 1, line_a.data() + line_a.size(), from);
  std::from_chars(line_b.data() + colon_b + 1, line_b.data() + line_b.size(), to);
  Add(Rank::kAnnotation, "source_line", StrCat(file_a, to >= from ? " +" : " ", to - from), "", b);
}

void CauseCollector::VisitAttribute(Rank rank, std::string_view what, std::string_view before, std::string_view after,
                                    Instruction example) {
  attributes_[{rank, std::string(what)}][{std::string(before), std::string(after)}].Add(example);
}

void CauseCollector::VisitText(const ChangedInstruction& changed, std::string_view text) {
  const size_t colon = text.find(": ");
  std::string_view what = text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 2);
  const size_t versus = rest.find(" vs ");
  const std::string_view before = rest.substr(0, versus);
  const std::string_view after = versus == std::string_view::npos ? std::string_view() : rest.substr(versus + 4);
  constexpr std::string_view kAttribute = "attribute ";
  if (what == "shape") return VisitShapes(changed.a, changed.b);
  if (what == "metadata") return VisitMetadata(changed.a, changed.b);
  if (what == "name") return Add(Rank::kAnnotation, "name", "other names", "", changed.b);
  if (what == "computation") {
    return Add(Rank::kConsequence, "moved", "to a computation that is not the counterpart", "", changed.b);
  }
  if (what.starts_with("value") || what.starts_with("literal")) {
    // Of constants, each with its own numbers.
    const bool scalar = changed.b.shape().IsArray() && changed.b.shape().element_count() == 1;
    if (!scalar) return Add(Rank::kProgram, "value", "elements of constants", "", changed.b);
    const size_t last = rest.rfind(": ");
    const std::string_view values = last == std::string_view::npos ? rest : rest.substr(last + 2);
    const size_t split = values.find(" vs ");
    if (split == std::string_view::npos) return Add(Rank::kProgram, "value", values, "", changed.b);
    return VisitAttribute(Rank::kProgram, "value", values.substr(0, split), values.substr(split + 4), changed.b);
  }
  if (what.starts_with(kAttribute)) {
    what.remove_prefix(kAttribute.size());
    const bool annotates = what == "sharding" || what == "frontend_attributes";
    return VisitAttribute(annotates ? Rank::kAnnotation : Rank::kProgram, what, before, after, changed.b);
  }
  if (what == "opcode" || what == "parameter number") {
    return VisitAttribute(Rank::kProgram, what, before, after, changed.b);
  }
  Add(Rank::kConsequence, "operands", "other instructions are read or called", "", changed.b);
}

void CauseCollector::Visit(const ChangedInstruction& changed) {
  counted_.clear();
  for (const std::string& text : changed.differences) VisitText(changed, text);
}

// Names the patterns of a group, the most frequent first.
std::string PatternsText(const std::map<std::string, int64_t>& patterns) {
  std::vector<std::pair<std::string, int64_t>> sorted(patterns.begin(), patterns.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t k = 0; k < std::min(sorted.size(), kMaxPatterns); ++k) {
    StrAppend(&text, k == 0 ? "" : ", ", sorted[k].first);
  }
  if (sorted.size() > kMaxPatterns) StrAppend(&text, " and ", sorted.size() - kMaxPatterns, " more");
  return text;
}

// An attribute with a few patterns has a line for each. Of others those with one factor are a line, if they are many,
// and the rest is another.
void CauseCollector::AddAttribute(Rank rank, const std::string& what, const PatternGroups& patterns) {
  constexpr int64_t kMinShare = 8;  // a factor has at least one in so many of the pairs
  const bool few = patterns.size() <= kMaxPatterns;
  std::map<std::string, int64_t> pairs_by_factor;
  int64_t all = 0;
  for (const auto& [texts, group] : patterns) {
    pairs_by_factor[CommonFactor(texts.first, texts.second)] += group.pairs;
    all += group.pairs;
  }
  for (const auto& [texts, group] : patterns) {
    const std::string pattern = StrCat(texts.first, " -> ", texts.second);
    const std::string factor = CommonFactor(texts.first, texts.second);
    const bool frequent = !factor.empty() && pairs_by_factor[factor] * kMinShare >= all;
    Group& into = groups_[{rank, what, few ? pattern : frequent ? factor : "various"}];
    into.pairs += group.pairs;
    for (Instruction example : group.examples) {
      if (into.examples.size() < kMaxExamples) into.examples.push_back(example);
    }
    if (!few) into.patterns[pattern] += group.pairs;
  }
}

// Sizes whose factors are rare are one line.
void CauseCollector::MergeRareSizes() {
  constexpr size_t kMaxFactors = 4;
  std::vector<std::pair<int64_t, Key>> factors;  // by pairs
  for (const auto& [key, group] : groups_) {
    if (std::get<1>(key) == kSizes) factors.emplace_back(-group.pairs, key);
  }
  std::sort(factors.begin(), factors.end());
  for (size_t k = kMaxFactors; k < factors.size(); ++k) {
    const auto found = groups_.find(factors[k].second);
    const Group rare = found->second;
    groups_.erase(found);
    // A pair with several of them counts several times: this is a bound.
    Group& into = groups_[{Rank::kShape, std::string(kSizes), "various"}];
    into.pairs += rare.pairs;
    for (Instruction example : rare.examples) {
      if (into.examples.size() < kMaxExamples) into.examples.push_back(example);
    }
    for (const auto& [pattern, pairs] : rare.patterns) into.patterns[pattern] += pairs;
  }
}

std::vector<DiffCause> CauseCollector::Finish() {
  for (const auto& [key, patterns] : attributes_) AddAttribute(key.first, key.second, patterns);
  MergeRareSizes();
  std::vector<std::pair<Rank, DiffCause>> causes;
  for (auto& [key, group] : groups_) {
    std::string change = std::get<2>(key);
    if (!group.patterns.empty()) {
      const std::string patterns = PatternsText(group.patterns);
      change = change.empty() ? patterns : StrCat(change, " (", patterns, ")");
    }
    causes.push_back({std::get<0>(key), {std::get<1>(key), std::move(change), group.pairs, group.examples}});
  }
  std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.pairs > b.second.pairs;
  });
  std::vector<DiffCause> result;
  for (auto& [rank, cause] : causes) result.push_back(std::move(cause));
  return result;
}

}  // namespace

std::vector<DiffCause> CausesOf(const ModuleDiff& diff) {
  CauseCollector collector;
  for (const ChangedInstruction& changed : diff.changed) collector.Visit(changed);
  return collector.Finish();
}

}  // namespace hlokit
