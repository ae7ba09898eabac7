// SPDX-License-Identifier: Apache-2.0
// The types of the arguments of an entry, from sizes that a caller gives by name. Internal to this directory.
#ifndef HLOKIT_PARSER_STABLEHLO_REFINE_ARGUMENT_SIZES_H_
#define HLOKIT_PARSER_STABLEHLO_REFINE_ARGUMENT_SIZES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

// An argument of the entry with open sizes, or one without.
struct SizedArgument {
  mlir::NodeId type;
  std::vector<std::string> names;  // "arg0", the name of its location, the path in assertions: "args[0]"
  std::vector<std::string> sizes;  // by dimension: an expression, "" if the program has the size
};

// Splits at commas outside of brackets of any kind; without spaces around the parts, which may be empty.
std::vector<std::string_view> SplitList(std::string_view text);

// Returns the function; invalid if there is none of the name.
mlir::OperationId FindEntry(const mlir::Module& program, std::string_view entry);

// Returns the arguments. Sizes are those of the assertions of the program, or else "argN.D".
std::vector<SizedArgument> ArgumentsOf(const mlir::Module& program, mlir::OperationId function);

// Returns the types of the arguments with the sizes that `given` says ("b=8", "arg0=8x4"); other sizes stay open.
absl::StatusOr<std::vector<mlir::NodeId>> TypesWithSizes(const std::vector<SizedArgument>& arguments,
                                                         const std::vector<std::string>& given, mlir::NodeTable* nodes);

// Returns true for a tensor with a `?` that has no bound.
bool IsOpen(const mlir::NodeTable& nodes, mlir::NodeId type);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_REFINE_ARGUMENT_SIZES_H_
