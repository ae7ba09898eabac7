// SPDX-License-Identifier: Apache-2.0
// mlir::Module -> text, as MLIR prints it: values renumbered, attributes sorted, aliases resolved.
#ifndef HLOKIT_PARSER_MLIR_PRINTER_H_
#define HLOKIT_PARSER_MLIR_PRINTER_H_

#include <string>

#include "parser/mlir/module.h"

namespace hlokit::mlir {

struct MlirPrintOptions {
  bool generic = false;    // every operation in the generic form
  bool locations = false;  // print locations
};

std::string PrintMlir(const Module& module, const MlirPrintOptions& options = {});

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_PRINTER_H_
