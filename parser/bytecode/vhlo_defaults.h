// SPDX-License-Identifier: Apache-2.0
// The attributes of an operation of StableHLO as those of VHLO: all of them, also those that the program leaves out.
// The inverse of ConvertAttributes.
#ifndef HLOKIT_PARSER_BYTECODE_VHLO_DEFAULTS_H_
#define HLOKIT_PARSER_BYTECODE_VHLO_DEFAULTS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "parser/bytecode/vhlo_operation.h"
#include "parser/mlir/module.h"

namespace hlokit::bytecode {

// Returns the newest operation of VHLO for `stablehlo.add`, `func.func`, ...; null if there is none.
const VhloOperation* VhloOperationFor(std::string_view name);

// Returns the attributes of `row`, in its order.
absl::StatusOr<std::vector<mlir::NodeId>> VhloAttributes(const mlir::Operation& op, const VhloOperation& row,
                                                         mlir::Module* program);

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_VHLO_DEFAULTS_H_
