// SPDX-License-Identifier: Apache-2.0
// The configuration of a custom call.
#ifndef HLOKIT_PARSER_STABLEHLO_BACKEND_CONFIG_H_
#define HLOKIT_PARSER_STABLEHLO_BACKEND_CONFIG_H_

#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

// Returns the attribute backend_config. Where it is absent or an empty string, the one that MLIR HLO had before
// StableHLO allowed dictionaries, which JAX still writes.
inline mlir::NodeId BackendConfigOf(const mlir::Module& module, const mlir::Operation& op) {
  const mlir::NodeTable& nodes = module.nodes;
  const mlir::NodeId config = module.attribute(op, "backend_config");
  const bool given = config.valid() && !(nodes.kind(config) == mlir::NodeKind::kString && nodes.text(config).empty());
  const mlir::NodeId other = given ? config : module.attribute(op, "mhlo.backend_config");
  return other.valid() ? other : config;
}

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_BACKEND_CONFIG_H_
