// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/verify/verify_rules.h"

#include <algorithm>
#include <cstdlib>

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

namespace {

using Check = bool (Rules::*)();

struct Row {
  OpKind kind;
  std::string_view rules;
};
constexpr Row kRows[] = {
#define CONSTRAINTS(kind, rules) {OpKind::kind, rules},
#include "parser/stablehlo/verify/constraints.def"
};

// The checks of a list of rules. A rule that is not in rules.def ends the program: a test reads every row.
std::vector<Check> ReadRules(std::string_view text) {
  struct Rule {
    std::string_view name;
    Check check;
  };
  static constexpr Rule kRules[] = {
#define RULE(name, function, description) {name, &Rules::function},
#include "parser/stablehlo/verify/rules.def"
  };
  std::vector<Check> checks;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const auto* const found =
        std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) { return rule.name == word; });
    if (found == std::end(kRules)) std::abort();
    checks.push_back(found->check);
  }
  return checks;
}

// By kind.
std::vector<std::vector<Check>> ReadConstraints() {
  std::vector<std::vector<Check>> table(mlir::kOpKindCount);
  for (const Row& row : kRows) {
    table[static_cast<size_t>(row.kind)] = ReadRules(row.rules);
  }
  return table;
}

}  // namespace

bool Rules::CheckOperation() {
  static const auto* const kTable = new std::vector<std::vector<Check>>(ReadConstraints());
  for (Check check : (*kTable)[static_cast<size_t>(op.kind())]) {
    if (!(this->*check)()) return false;
  }
  return true;
}

bool Rules::IsStatic(NodeId type) const {
  return IsTensor(type) && std::find(sizes(type).begin(), sizes(type).end(), mlir::kDynamicSize) == sizes(type).end();
}

bool Rules::IsQuantized(NodeId type) const { return IsTensor(type) && n.kind(element(type)) == NodeKind::kDialectType; }

std::string Rules::ListText(absl::Span<const int64_t> values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ", ";
    text += values[i] == mlir::kDynamicSize ? std::string("?") : StrCat(values[i]);
  }
  return text;
}

bool Rules::ShapesAgree(absl::Span<const int64_t> a, absl::Span<const int64_t> b) const {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), SizesAgree);
}

bool Rules::CompatibleElements(NodeId a, NodeId b) const {
  const bool quantized = n.kind(a) == NodeKind::kDialectType || n.kind(b) == NodeKind::kDialectType;
  return quantized || a == b;
}

bool Rules::Compatible(NodeId a, NodeId b) const {
  if (a == b) return true;
  if (!IsTensor(a) || !IsTensor(b)) return false;
  return CompatibleElements(element(a), element(b)) && ShapesAgree(sizes(a), sizes(b));
}

}  // namespace hlokit::stablehlo
