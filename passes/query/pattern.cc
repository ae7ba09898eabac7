// SPDX-License-Identifier: Apache-2.0
#include "passes/query/pattern.h"

#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "passes/query/query_lexer.h"
#include "passes/rewrite/splat.h"

namespace hlokit::query {
namespace {

// Returns true if the text has the form, in which `*` is any text.
bool HasForm(std::string_view text, std::string_view form) {
  size_t t = 0, f = 0, star = std::string_view::npos, tried = 0;
  while (t < text.size()) {
    if (f < form.size() && form[f] == '*') {
      star = f++;
      tried = t;
    } else if (f < form.size() && form[f] == text[t]) {
      ++f;
      ++t;
    } else if (star != std::string_view::npos) {
      f = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (f < form.size() && form[f] == '*') ++f;
  return f == form.size();
}

std::vector<std::string_view> OpcodeNames() {
  std::vector<std::string_view> names;
  for (size_t k = 0; k < kOpcodeCount; ++k) names.push_back(ToString(static_cast<Opcode>(k)));
  return names;
}

// Returns "2 operands", "1 to 3 operands", "at least 1 operand", "no operands".
std::string OperandsOf(const OpcodeInfo& info) {
  const auto operands = [](int count) { return Counted(count, "operand"); };
  if (info.max_operands == kVariadic) return StrCat("at least ", operands(info.min_operands));
  if (info.max_operands == 0) return "no operands";
  if (info.min_operands == info.max_operands) return operands(info.max_operands);
  return StrCat(static_cast<int>(info.min_operands), " to ", operands(info.max_operands));
}

}  // namespace

class PatternParser {
 public:
  PatternParser(std::string_view text, DiagnosticSink* sink) : sink_(*sink), lexer_(text, sink) {}

  std::optional<Pattern> Parse() {
    bool ok = Element();
    // Each turn reads what follows an element, or an open bracket.
    while (ok && !open_.empty()) ok = opened_ ? FirstOperand() : AfterOperand();
    if (!ok) return std::nullopt;
    if (lexer_.token().kind != TokenKind::kEnd) {
      lexer_.Error(StrCat("unexpected ", lexer_.DescribeToken(), " after the pattern"));
      return std::nullopt;
    }
    return std::move(pattern_);
  }

 private:
  struct Frame {
    uint32_t node;
    std::vector<uint32_t> operands;
  };

  int Variable(std::string_view name) {
    const int known = pattern_.Find(name);
    if (known >= 0) return known;
    pattern_.variables_.emplace_back(name);
    return static_cast<int>(pattern_.variables_.size() - 1);
  }

  // Reads an element up to its bracket.
  bool Element() {
    if (pattern_.nodes_.size() == Pattern::kMaxNodes) {
      return lexer_.Error(StrCat("a pattern has at most ", Pattern::kMaxNodes, " instructions"));
    }
    Pattern::Node node;
    node.range = lexer_.token().range;
    bool only_variable = false;
    if (lexer_.token().kind == TokenKind::kVariable) {
      if (lexer_.token().text.empty()) return lexer_.Error("expected the name of a variable after `%`");
      node.variable = Variable(lexer_.Take().text);
      only_variable = !lexer_.TakeIf("=");
    }
    opened_ = false;
    if (!only_variable && !Instruction(&node, &opened_)) return false;
    pattern_.nodes_.push_back(node);
    const auto number = static_cast<uint32_t>(pattern_.nodes_.size() - 1);
    if (opened_) {
      open_.push_back({number, {}});
    } else {
      Complete(number);
    }
    return true;
  }

  bool FirstOperand() {
    opened_ = false;
    if (lexer_.TakeIf(")")) return Close();
    return lexer_.TakeIf("...") ? MoreOperands() : Element();
  }

  bool AfterOperand() {
    if (lexer_.TakeIf(")")) return Close();
    if (!lexer_.TakeIf(",")) return lexer_.Error(StrCat("expected `,` or `)`, found ", lexer_.DescribeToken()));
    return lexer_.TakeIf("...") ? MoreOperands() : Element();
  }

  bool MoreOperands() {
    pattern_.nodes_[open_.back().node].more_operands = true;
    if (!lexer_.TakeIf(")")) return lexer_.Error(StrCat("expected `)` after `...`, found ", lexer_.DescribeToken()));
    return Close();
  }

  bool Instruction(Pattern::Node* node, bool* opens) {
    const Token& token = lexer_.token();
    if (token.kind == TokenKind::kNumber) {
      node->kind = Pattern::Node::Kind::kNumber;
      node->number = lexer_.Take().number;
      return true;
    }
    if (token.kind != TokenKind::kName) {
      return lexer_.Error(StrCat("expected an opcode, %variable, a number or `_`, found ", lexer_.DescribeToken()),
                          "a pattern is written dot(transpose(%x), %y)");
    }
    if (token.text == "_") {
      lexer_.Take();
      return true;
    }
    node->kind = Pattern::Node::Kind::kOpcode;
    Pattern::OpcodeMask set;
    do {
      if (!Opcodes(&set)) return false;
    } while (lexer_.TakeIf("|"));
    node->opcodes = static_cast<uint32_t>(pattern_.opcode_masks_.size());
    pattern_.opcode_masks_.push_back(set);
    *opens = lexer_.TakeIf("(");
    node->has_operands = *opens;
    return true;
  }

  bool Opcodes(Pattern::OpcodeMask* set) {
    const Token& token = lexer_.token();
    if (token.kind != TokenKind::kName) {
      return lexer_.Error(StrCat("expected an opcode, found ", lexer_.DescribeToken()));
    }
    bool any = false;
    const std::vector<std::string_view> names = OpcodeNames();
    for (size_t k = 0; k < names.size(); ++k) {
      if (!HasForm(names[k], token.text)) continue;
      set->set(k);
      any = true;
    }
    if (!any) {
      const std::string near = DidYouMean(token.text, names);
      return lexer_.Error(StrCat("unknown opcode `", token.text, "`"),
                          near.empty() ? StrCat("a variable is written %", token.text) : near);
    }
    lexer_.Take();
    return true;
  }

  // Adds a complete element to the operands of the innermost open one.
  void Complete(uint32_t node) {
    if (open_.empty()) {
      pattern_.root_ = node;
    } else {
      open_.back().operands.push_back(node);
    }
  }

  bool Close() {
    Frame frame = std::move(open_.back());
    open_.pop_back();
    Pattern::Node& node = pattern_.nodes_[frame.node];
    node.first = static_cast<uint32_t>(pattern_.operands_.size());
    node.count = static_cast<uint32_t>(frame.operands.size());
    pattern_.operands_.insert(pattern_.operands_.end(), frame.operands.begin(), frame.operands.end());
    Complete(frame.node);
    return CheckOperandCount(node);
  }

  // An instruction that no module has would be found nowhere.
  bool CheckOperandCount(const Pattern::Node& node) {
    const Pattern::OpcodeMask& set = pattern_.opcode_masks_[node.opcodes];
    const OpcodeInfo* only = nullptr;
    for (size_t k = 0; k < kOpcodeCount; ++k) {
      if (!set[k]) continue;
      const OpcodeInfo& info = InfoOf(static_cast<Opcode>(k));
      const bool few = static_cast<int64_t>(node.count) < info.min_operands && !node.more_operands;
      const bool many = info.max_operands != kVariadic && static_cast<int64_t>(node.count) > info.max_operands;
      if (!few && !many) return true;
      only = &info;
    }
    const std::string given = StrCat(node.count, node.more_operands ? " or more" : "");
    sink_.Error(DiagnosticKind::kUnexpectedToken, node.range,
                set.count() == 1 ? StrCat(only->text, " takes ", OperandsOf(*only), ", not ", given)
                                 : StrCat("none of these opcodes takes ", given, " operands"),
                "without parentheses the operands may be any; `...` is any further ones, as in concatenate(%x, ...)");
    return false;
  }

  DiagnosticSink& sink_;
  QueryLexer lexer_;
  Pattern pattern_;
  std::vector<Frame> open_;
  bool opened_ = false;  // the last element has an open bracket
};

std::optional<Pattern> Pattern::Parse(std::string_view text, DiagnosticSink* sink) {
  return PatternParser(text, sink).Parse();
}

int Pattern::Find(std::string_view variable) const {
  const auto found = std::find(variables_.begin(), variables_.end(), variable);
  return found == variables_.end() ? -1 : static_cast<int>(found - variables_.begin());
}

std::optional<Opcode> Pattern::OpcodeOf(const Node& node) const {
  if (node.kind != Node::Kind::kOpcode || opcode_masks_[node.opcodes].count() != 1) return std::nullopt;
  for (size_t k = 0; k < kOpcodeCount; ++k) {
    if (opcode_masks_[node.opcodes][k]) return static_cast<Opcode>(k);
  }
  return std::nullopt;
}

bool Pattern::Matches(Instruction instruction, Match* match) const {
  const auto is_opcode = [&](const Node& node, Opcode opcode) {
    const auto number = static_cast<size_t>(opcode);
    return number < kOpcodeCount && opcode_masks_[node.opcodes][number];
  };
  const Node& top = root();
  if (top.kind == Node::Kind::kOpcode && !is_opcode(top, instruction.opcode())) return false;
  match->root = instruction;
  match->variables.assign(variables_.size(), Instruction());
  std::vector<std::pair<uint32_t, Instruction>> left = {{root_, instruction}};
  // The other order of the operands of a commutative instruction: what was left, and the variables, before them.
  struct Alternative {
    std::vector<std::pair<uint32_t, Instruction>> left;
    std::vector<Instruction> variables;
  };
  std::vector<Alternative> alternatives;
  int tried = 1;
  // Adds what the operands have to match; false if the instruction does not match the node.
  const auto visit = [&](uint32_t number, Instruction at) {
    const Node& node = nodes_[number];
    if (node.variable >= 0) {
      Instruction& bound = match->variables[static_cast<size_t>(node.variable)];
      if (bound.valid() && bound != at) return false;
      bound = at;
    }
    switch (node.kind) {
      case Node::Kind::kAny:
        return true;
      case Node::Kind::kNumber: {
        const std::optional<Splat> splat = SplatOf(at);
        return splat.has_value() && splat->Is(node.number);
      }
      case Node::Kind::kOpcode:
        break;
    }
    if (!is_opcode(node, at.opcode())) return false;
    if (!node.has_operands) return true;
    const auto count = static_cast<uint32_t>(at.operand_count());
    if (count < node.count || (count > node.count && !node.more_operands)) return false;
    const bool two_orders = HasTrait(at.opcode(), kCommutative) && count == 2 && node.count > 0 &&
                            at.operand(0) != at.operand(1) && tried < kMaxOrders;
    if (two_orders) {
      ++tried;
      alternatives.push_back({left, match->variables});
      for (uint32_t k = node.count; k-- > 0;) {
        alternatives.back().left.emplace_back(operand(node, k), at.operand(1 - static_cast<int64_t>(k)));
      }
    }
    for (uint32_t k = node.count; k-- > 0;) left.emplace_back(operand(node, k), at.operand(k));
    return true;
  };
  while (!left.empty()) {
    const auto [number, at] = left.back();
    left.pop_back();
    if (visit(number, at)) continue;
    if (alternatives.empty()) return false;
    left = std::move(alternatives.back().left);
    match->variables = std::move(alternatives.back().variables);
    alternatives.pop_back();
  }
  return true;
}

std::vector<Match> FindMatches(const Module& module, const Pattern& pattern) {
  std::vector<Match> matches;
  Match match;
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (pattern.Matches(i, &match)) matches.push_back(match);
    }
  }
  return matches;
}

}  // namespace hlokit::query
