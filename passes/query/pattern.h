// SPDX-License-Identifier: Apache-2.0
// Patterns of instructions, in HLO's own words:
//
//   dot(transpose(%x), convert(%y))     an instruction, and those that make its operands
//   add|subtract(%x, %x)                one of several opcodes; a variable twice is the same instruction
//   all-*                               opcodes by their beginning; without parentheses: any operands
//   reduce(%x, 0)                       a number: a constant whose elements are all equal to it, or a broadcast of one
//   %d = dot(_, %y)                     a name for a match; `_` is any instruction
//   concatenate(%x, ...)                any further operands
//
// Operands of a commutative opcode match in either order, that of the pattern first.
#ifndef HLOKIT_PASSES_QUERY_PATTERN_H_
#define HLOKIT_PASSES_QUERY_PATTERN_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::query {

struct Match {
  Instruction root;
  std::vector<Instruction> variables;  // in the order of Pattern::variables()
};

class Pattern {
 public:
  static constexpr size_t kMaxNodes = 1000;
  // Orders of commutative operands that are tried at one instruction; then only that of the pattern.
  static constexpr int kMaxOrders = 4096;

  struct Node {
    enum class Kind : uint8_t { kAny, kOpcode, kNumber } kind = Kind::kAny;
    int variable = -1;           // the variable that is bound to the instruction
    uint32_t opcodes = 0;        // of opcode_sets()
    double number = 0;           // kNumber
    bool has_operands = false;   // kOpcode: operands are given
    bool more_operands = false;  // others may follow
    uint32_t first = 0;          // of operands()
    uint32_t count = 0;
    SourceRange range;  // of its first word in the text
  };

  // Parses a pattern. Returns nullopt after errors, which are in the sink, with offsets in `text`.
  static std::optional<Pattern> Parse(std::string_view text, DiagnosticSink* sink);

  // Returns the names of the variables, in the order in which they are first read.
  const std::vector<std::string>& variables() const { return variables_; }
  // Returns the number of the variable, or -1.
  int Find(std::string_view variable) const;

  // Returns true if the pattern matches at the instruction; then sets `match`. Linear in the pattern
  // times the orders of operands that are tried.
  bool Matches(Instruction instruction, Match* match) const;

  // ---- the tree, for builders of instructions ----
  const Node& root() const { return nodes_[root_]; }
  uint32_t root_index() const { return root_; }
  const Node& node(uint32_t i) const { return nodes_[i]; }
  uint32_t operand(const Node& node, uint32_t k) const { return operands_[node.first + k]; }
  // Returns the opcode of a node that names exactly one.
  std::optional<Opcode> OpcodeOf(const Node& node) const;

 private:
  friend class PatternParser;
  using OpcodeMask = std::bitset<kOpcodeCount>;

  std::vector<Node> nodes_;
  std::vector<uint32_t> operands_;
  std::vector<OpcodeMask> opcode_masks_;
  std::vector<std::string> variables_;
  uint32_t root_ = 0;
};

// Returns the matches of all instructions, by computation in the order of the text.
std::vector<Match> FindMatches(const Module& module, const Pattern& pattern);

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_PATTERN_H_
