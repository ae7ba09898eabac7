// SPDX-License-Identifier: Apache-2.0
// Operations of VHLO and what they are in StableHLO. Operations of older versions get the attributes that newer ones
// have; attributes with their default values are left out, as programs in text do.
#ifndef HLOKIT_PARSER_BYTECODE_VHLO_OPERATION_H_
#define HLOKIT_PARSER_BYTECODE_VHLO_OPERATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "parser/mlir/module.h"

namespace hlokit::bytecode {

struct VhloOperation {
  std::string_view name;                     // "dot_general_v2"
  int64_t since = 0;                         // the minor number of the first release 1.N with it
  std::vector<std::string_view> attributes;  // sorted

  bool HasAttribute(std::string_view attribute) const;
};

// Returns the row of an operation; null if there is none.
const VhloOperation* FindVhloOperation(std::string_view name);

// Returns the name in StableHLO. `in_function`: it is directly in a function.
std::string StablehloName(const VhloOperation& operation, bool in_function);

// Gives the attributes of an operation, in the form of VHLO, that of its definition in StableHLO. Errors say what an
// attribute is that has no such form.
absl::Status ConvertAttributes(const VhloOperation& operation, const mlir::OpDefinition& definition,
                               mlir::NodeTable* nodes, std::vector<mlir::Attribute>* attributes);

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_VHLO_OPERATION_H_
