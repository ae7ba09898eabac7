// SPDX-License-Identifier: Apache-2.0
// Numbers that describe a module, written as text: how often a pattern occurs, or a measure by name.
//
//   measure    := '#' name | pattern
//   pattern    := opcodes predicates? operands? | integer | letter
//   opcodes    := '*' | '!'? opcode ('|' opcode)*       any opcode; one of these, or with `!` none of them
//   predicates := '[' name (',' name)* ']'               all of them hold
//   operands   := '(' pattern (',' pattern)* ')'         these operands; `...` at the end stands for any further ones.
//                                                        The two operands of a commutative opcode come in any order
//               | '{' pattern '}'                        some operand; at the top each such operand counts
//
// An integer is an array whose elements all have that value, a capital letter an instruction, the same one everywhere:
//   transpose(transpose)    subtract(X,X)    add{0}    complex(real(X),imag(X))    slice(concatenate)
//
// The matcher shares no code with the rules of passes: this is what their results are checked with.
#ifndef HLOKIT_TESTS_PROPERTIES_MODULE_MEASURE_H_
#define HLOKIT_TESTS_PROPERTIES_MODULE_MEASURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit::properties {

using Predicate = bool (*)(Instruction);

struct Pattern {
  enum class Kind : uint8_t { kOpcode, kSplat, kVariable };
  enum class Operands : uint8_t { kAny, kAll, kFirst, kSome };

  Kind kind = Kind::kOpcode;
  bool excluded = false;        // `opcodes` are those that do not match
  std::vector<Opcode> opcodes;  // none: any
  std::vector<Predicate> predicates;
  Operands operand_match = Operands::kAny;
  std::vector<Pattern> operands;
  int64_t value = 0;  // of a splat; of a variable its letter
};

class Measure {
 public:
  static absl::StatusOr<Measure> Parse(std::string_view text);

  const std::string& text() const { return text_; }
  int64_t Of(const Module& module) const;

 private:
  std::string text_;
  int64_t (*function_)(const Module&) = nullptr;  // null: the number of matches of the pattern
  Pattern pattern_;
};

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_MODULE_MEASURE_H_
