// SPDX-License-Identifier: Apache-2.0
// StableHLO -> HLO, as XLA's converter makes it. The entry computation is `@main`, or another function that the caller
// names; functions that cannot be reached from it are not converted. A type, attribute or operation that HLO has no
// place for is a diagnostic that names it.
#ifndef HLOKIT_PARSER_STABLEHLO_IMPORT_CONVERT_H_
#define HLOKIT_PARSER_STABLEHLO_IMPORT_CONVERT_H_

#include <memory>
#include <string>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

struct ConvertOptions {
  std::string entry;                             // the function that becomes the entry, with or without @; "": main
  bool return_tuple = false;                     // the result is always a tuple
  bool use_tuple_args = false;                   // the parameters are one tuple
  int64_t max_literal_bytes = int64_t{1} << 32;  // of all constants in total
  // As XLA's own translator writes it: constants that branches and loops use from outside are passed to them,
  // operations without a location get their place in the file, elements of results their frontend attributes, and
  // values with the sharding of a result are instructions of their own.
  bool as_xla = false;
};

// Returns null after errors.
std::unique_ptr<Module> ConvertToHlo(const mlir::Module& program, const ConvertOptions& options, DiagnosticSink* sink,
                                     std::shared_ptr<Context> context = nullptr);

// Reports operations with static shapes whose operands, attributes and results disagree by the rules of HLO, in all
// functions. Operations that HLO has no place for are not checked.
void CheckByInference(const mlir::Module& program, DiagnosticSink* sink);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_IMPORT_CONVERT_H_
