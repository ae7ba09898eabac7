// SPDX-License-Identifier: Apache-2.0
// What is known of operations: the rows of operations.def, taken apart.
#ifndef HLOKIT_PARSER_MLIR_DEFINITION_H_
#define HLOKIT_PARSER_MLIR_DEFINITION_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hlokit::mlir {

// The operations of the table, by which they are compared. A name is looked up once, when it is read.
enum class OpKind : uint16_t {
#define OP(kind, name, operands, attributes, regions, results, format, converter, opcode) kind,
#include "parser/mlir/operations.def"
  kUnregistered,  // not in the table
};
inline constexpr size_t kOpKindCount = static_cast<size_t>(OpKind::kUnregistered);

enum class AttributeKind : uint8_t {
#define ATTRIBUTE_KIND(name, text, syntax, description) name,
#include "parser/mlir/attribute_kinds.def"
};

// How custom forms write the value of an attribute.
enum class AttributeSyntax : uint8_t {
  kFull,            // as the generic form
  kNumber64,        // 3, of i64
  kNumber32,        // 3, of i32
  kBool,            // true
  kIntegers,        // [1, 2]
  kBooleans,        // [true, false]
  kString,          // "x"
  kKeyword,         // HIGHEST: a value of the enumeration that the attribute is named after
  kComparisonType,  // FLOAT
  kPrecisions,      // [DEFAULT, HIGH]
  kDotAlgorithm,    // <lhs_precision_type = tf32, ...>
  kConvolution,     // [b, 0, f]x[0, i, o]->[b, 0, f]
  kAxes,            // <@mesh, [{"x"}]>
};
AttributeSyntax SyntaxOf(AttributeKind kind);

enum class TypeConstraint : uint8_t {
#define TYPE_CONSTRAINT(name, text, description) name,
#include "parser/mlir/type_constraints.def"
};
// Returns the description in messages.
std::string_view Describe(TypeConstraint constraint);
std::string_view Describe(AttributeKind kind);

enum class Custom : uint8_t {
  kNone,
#define CUSTOM_SYNTAX(name, text) name,
#include "parser/mlir/custom_syntax.def"
};

struct AttributeDefinition {
  std::string_view name;
  AttributeKind kind = AttributeKind::kAny;
  bool optional = false;     // without a default too
  bool has_default = false;  // also if the default is the empty text
  std::string_view default_text;
};

struct ValueDefinition {
  std::string_view name;
  TypeConstraint constraint;
  bool variadic = false;
  bool optional = false;
};

// How many operands, results or regions an operation may have.
struct CountRange {
  size_t min = 0;
  size_t max = 0;
  bool Contains(size_t count) const { return count >= min && count <= max; }
};

struct Directive {
  enum class Kind : uint8_t {
    kLiteral,    // text
    kOperand,    // index
    kAttribute,  // index
    kDict,
    kOptional,  // a group that ends at `end`; index: the attribute that it depends on
    kEnd,       // of a group
    kSame,
    kFunction,
    kResults,
    kOperands,
    kFirstOperand,
    kArrow,
    kCustom,
  };
  Kind kind = Kind::kDict;
  Custom custom = Custom::kNone;
  size_t index = 0;
  size_t end = 0;
  std::string_view text;
};

struct OpDefinition {
  OpKind kind;
  std::string_view name;
  std::string_view dialect;
  std::vector<ValueDefinition> operands;
  std::vector<AttributeDefinition> attributes;
  std::vector<std::string_view> regions;
  bool variadic_regions = false;
  std::vector<ValueDefinition> results;
  std::vector<Directive> format;  // empty: only the generic form
  // The directive before which all operands of the custom form stand; kNoTail: some stand elsewhere.
  static constexpr size_t kNoTail = ~size_t{0};
  size_t tail = kNoTail;
  CountRange operand_counts, result_counts, region_counts;

  const AttributeDefinition* FindAttribute(std::string_view name) const;
};

// Returns the definition of `stablehlo.add`, or null.
const OpDefinition* FindDefinition(std::string_view name);
// The definition of a kind that is in the table.
const OpDefinition& DefinitionOf(OpKind kind);
// All of them, in the order of the rows.
const std::vector<OpDefinition>& AllDefinitions();
// Returns true for the dialects whose operations are all in the table.
bool IsKnownDialect(std::string_view dialect);
// Returns true for the operations that a reduction without a region may apply.
bool IsCommutativeReducer(OpKind kind);
// Returns true for the values of #stablehlo<precision ...>.
inline bool IsPrecision(std::string_view word) { return word == "DEFAULT" || word == "HIGH" || word == "HIGHEST"; }

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_DEFINITION_H_
