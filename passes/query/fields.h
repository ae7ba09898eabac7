// SPDX-License-Identifier: Apache-2.0
// Fields of instructions that conditions compare: those of a table, and attributes by their names in HLO text.
#ifndef HLOKIT_PASSES_QUERY_FIELDS_H_
#define HLOKIT_PASSES_QUERY_FIELDS_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph/module.h"
#include "passes/analysis/cost.h"

namespace hlokit::query {

// A value of a field. Absent: the instruction does not have it.
struct Absent {
  friend auto operator<=>(Absent, Absent) = default;
};
using FieldValue = std::variant<Absent, double, bool, std::string>;
enum class FieldType : uint8_t { kNumber, kBool, kText };

// What fields need beyond the instruction; computed when it is first needed.
class FieldContext {
 public:
  explicit FieldContext(const Module& module) : module_(&module) {}
  const Module& module() const { return *module_; }
  const CostAnalysis& costs();

 private:
  const Module* module_;
  std::unique_ptr<CostAnalysis> costs_;
};

class Field {
 public:
  // Returns nullopt if there is none of this name.
  static std::optional<Field> Find(std::string_view name);
  // Returns the names of the table and of attributes.
  static std::vector<std::string_view> Names();

  FieldType type() const { return type_; }
  FieldValue Of(Instruction instruction, FieldContext* context) const;

 private:
  FieldType type_ = FieldType::kNumber;
  FieldValue (*read_)(Instruction, FieldContext*) = nullptr;
  Attr attr_ = Attr();      // read_ is null: this attribute
  int64_t dimension_ = -1;  // of dimN, or -1
};

// Returns a line for each field of the table: its name, type and meaning.
std::string DescribeFields();

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_FIELDS_H_
