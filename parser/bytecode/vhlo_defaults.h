// SPDX-License-Identifier: Apache-2.0
// The attributes of an operation of StableHLO as those of VHLO: all of them, also those that the program leaves out.
// The inverse of ConvertAttributes.
#ifndef HLOKIT_PARSER_BYTECODE_VHLO_DEFAULTS_H_
#define HLOKIT_PARSER_BYTECODE_VHLO_DEFAULTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "parser/bytecode/vhlo_operation.h"
#include "parser/mlir/module.h"

namespace hlokit::bytecode {

// Returns the newest operation of VHLO for `stablehlo.add`, `func.func`, ... that release 1.MINOR of StableHLO has;
// null if there is none.
const VhloOperation* VhloOperationFor(std::string_view name, int64_t minor);

// Returns what is lost of an operation, whose newest form is `newest`, in the older form of it, and since when there is
// a place for it: "its attribute `result_accuracy` is in StableHLO since 1.10.0"; "": nothing.
std::string LostInOlder(const mlir::Operation& op, const VhloOperation& newest, const VhloOperation& older,
                        mlir::Module* program);

// Returns the attributes of `row`, a form of the operation whose newest one is `newest`, in its order.
absl::StatusOr<std::vector<mlir::NodeId>> VhloAttributes(const mlir::Operation& op, const VhloOperation& newest,
                                                         const VhloOperation& row, mlir::Module* program);

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_VHLO_DEFAULTS_H_
