// SPDX-License-Identifier: Apache-2.0
// Recovery from errors: one run reports the errors of several operations. What an operation with an error defines is
// marked, so that its uses report no errors.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "parser/mlir/operation_parser.h"

namespace hlokit::mlir {
namespace {

// What begins on a line.
enum class LineStart : uint8_t {
  kOther,
  kDefinition,  // `%a, %b:2 = name`: always an operation, unless in a region
  kOperation,   // one without results, a label, or an alias
  kFunction,    // a function or a module
};

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '.' || c == '-';
}

bool StartsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Requires: a NUL follows the line, as the text.
LineStart ClassifyLine(const char* p) {
  if (*p == '%') {
    // Not `%a = %b`, an argument of a loop.
    while (IsNameCharacter(*p) || *p == '%' || *p == ',' || *p == ':' || *p == ' ') ++p;
    if (*p != '=') return LineStart::kOther;
    ++p;
    while (*p == ' ') ++p;
    return StartsWord(*p) || *p == '"' ? LineStart::kDefinition : LineStart::kOther;
  }
  if (*p == '^' || *p == '#' || *p == '!') return LineStart::kOperation;
  const bool quoted = *p == '"';
  if (quoted) ++p;
  const char* q = p;
  while (IsNameCharacter(*q)) ++q;
  const std::string_view word(p, static_cast<size_t>(q - p));
  if (word == "func.func" || word == "builtin.module" || (word == "module" && !quoted)) return LineStart::kFunction;
  if (quoted) return *q == '"' && q[1] == '(' ? LineStart::kOperation : LineStart::kOther;
  if (word == "return" || word == "call" || word == "call_indirect" || word == "constant") return LineStart::kOperation;
  return !word.empty() && StartsWord(word[0]) && word.find('.') != std::string_view::npos ? LineStart::kOperation
                                                                                          : LineStart::kOther;
}

// Returns where a string that begins at `p` ends: after its quote, or at the end of the line.
const char* EndOfString(const char* p, const char* end) {
  for (++p; p < end && *p != '\n'; ++p) {
    if (*p == '"') return p + 1;
    if (*p == '\\' && p + 1 < end && p[1] != '\n') ++p;
  }
  return p;
}

struct NextStart {
  const char* at = nullptr;  // null: the text ends before
  bool function = false;
};

// Returns where the next operation after the one at `begin` starts, or the region ends. The error is at `error`, before
// which no function starts.
NextStart FindNextStart(const char* begin, const char* error, const char* end) {
  std::vector<char> open;
  size_t braces = 0;  // in `open`
  bool line_start = false;
  for (const char* p = begin; p < end;) {
    const char c = *p;
    if (c == '\n') {
      line_start = true;
      ++p;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      ++p;
      continue;
    }
    if (line_start) {
      const LineStart kind = ClassifyLine(p);
      if (kind == LineStart::kFunction && p >= error) return {p, true};
      if (kind == LineStart::kDefinition && braces == 0) return {p, false};
      if (kind == LineStart::kOperation && open.empty()) return {p, false};
    }
    line_start = false;
    if (c == '"') {
      p = EndOfString(p, end);
      continue;
    }
    if (c == '/' && p[1] == '/') {
      p = std::find(p, end, '\n');
      continue;
    }
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c);
      braces += c == '{' ? 1 : 0;
    } else if (c == ')' || c == ']') {
      if (!open.empty() && open.back() == (c == ')' ? '(' : '[')) open.pop_back();
    } else if (c == '}') {
      if (braces == 0) return {p, false};
      while (open.back() != '{') open.pop_back();
      open.pop_back();
      --braces;
    }
    ++p;
  }
  return {};
}

}  // namespace

void OperationParser::DropOperations(size_t keep) {
  Unwind(keep < regions_.size() ? regions_[keep].scope : shadowed_.size());
  regions_.resize(keep);
  arguments_.clear();
  has_arguments_ = false;
  const size_t open = keep - 1;
  if (ops_.size() <= open) return;
  const OpenOperation& first = ops_[open];
  results_.resize(first.results);
  operands_.resize(first.operands);
  attributes_.resize(first.attributes);
  region_list_.resize(first.regions);
  operand_types_.resize(first.operand_types);
  result_types_.resize(first.result_types);
  ops_.resize(open);
}

void OperationParser::GiveUp() {
  in_.set_at(in_.end());
  DropOperations(1);
}

void OperationParser::LeaveFunction() {
  size_t keep = regions_.size();
  const OpDefinition* const module = &DefinitionOf(OpKind::kBuiltinModule);
  while (keep > 1 && ops_[keep - 2].definition != module) --keep;
  DropOperations(keep);
}

void OperationParser::Recover(const char* start) {
  if (static_cast<int64_t>(ops_.size()) >= options_.max_nesting ||
      static_cast<int64_t>(m_.operations.size()) >= options_.max_operations) {
    return GiveUp();
  }
  // Region i is one of operation i - 1, so an operation more is the one with the error.
  const char* const error = in_.at();
  std::vector<std::string_view> names;
  if (ops_.size() >= regions_.size()) {
    const OpenOperation& failed = ops_[regions_.size() - 1];
    for (size_t i = failed.results; i < results_.size(); ++i) names.push_back(results_[i].name);
    in_.Seek(failed.offset);
    start = in_.at();
  } else if (*start == '^') {
    // A label with its arguments.
    for (const char* p = start; p < in_.end() && *p != '\n';) {
      in_.set_at(p + 1);
      if (*p == '%') names.push_back(in_.SuffixName());
      p = in_.at();
    }
  }
  DropOperations(regions_.size());
  for (std::string_view name : names) DefineFailed(name);
  const NextStart next = FindNextStart(start, error, in_.end());
  if (next.at == nullptr) return GiveUp();
  in_.set_at(next.at);
  if (next.function) LeaveFunction();
}

}  // namespace hlokit::mlir
