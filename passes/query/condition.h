// SPDX-License-Identifier: Apache-2.0
// Conditions on matches of a pattern:
//
//   bytes>1e6 && scope~"attention"         fields of the matched instruction (fields.h) with numbers and texts
//   %x.opcode=="parameter" || !%y.root     those of a variable of the pattern
//
// Operators: == != < <= > >= for numbers and texts; ~ and !~ for a text and a regular expression that is found anywhere
// in it; && || ! and parentheses. A field that the instruction does not have is false and different from every value.
#ifndef HLOKIT_PASSES_QUERY_CONDITION_H_
#define HLOKIT_PASSES_QUERY_CONDITION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "passes/query/fields.h"
#include "passes/query/pattern.h"

namespace hlokit::query {

// Returns true if the expression is found in the text.
using TextPredicate = std::function<bool(std::string_view text)>;
// Compiles a regular expression; the library of the caller, on which passes do not depend. Null: there is none.
using RegexCompiler = std::function<absl::StatusOr<TextPredicate>(std::string_view expression)>;

class Condition {
 public:
  static constexpr size_t kMaxSteps = 1000;

  // Parses a condition on matches of the pattern. Returns nullopt after errors, which are in the sink, with offsets in
  // `text`.
  static std::optional<Condition> Parse(std::string_view text, const Pattern& pattern, const RegexCompiler& regex,
                                        DiagnosticSink* sink);

  // Linear in the condition.
  bool Holds(const Match& match, FieldContext* context) const;

 private:
  friend class ConditionParser;
  enum class Code : uint8_t {
    kConstant,  // a: constant; pushes it
    kField,     // a: field; b: variable, or -1 for the root
    kCompare,   // a: Comparison; takes two values
    kFound,     // a: text predicate; takes a text
    kNot,
    kAnd,  // a: jumps there with the first operand if it decides
    kOr,
  };
  enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
  struct Step {
    Code code;
    uint32_t a = 0;
    int b = -1;
  };

  static bool Compare(Comparison comparison, const FieldValue& x, const FieldValue& y);
  static bool IsTrue(const FieldValue& value);

  std::vector<Step> steps_;
  std::vector<FieldValue> constants_;
  std::vector<Field> fields_;
  std::vector<TextPredicate> predicates_;
};

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_CONDITION_H_
