// SPDX-License-Identifier: Apache-2.0
// Parts of a module that fit a picture.
#ifndef HLOKIT_PASSES_VIEW_SUBGRAPH_H_
#define HLOKIT_PASSES_VIEW_SUBGRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"

namespace hlokit {

struct SubgraphOptions {
  std::string name;  // of a computation or an instruction, with or without %; "": the entry computation
  int64_t hops = 0;  // of an instruction: operands and users so far away; 0: the computations that it calls
  size_t max_instructions = 400;
};

struct Subgraph {
  std::string title;
  std::vector<Instruction> instructions;  // by computation, each in the order of the text
  Instruction center;                     // of a neighborhood; invalid otherwise
};

// Returns an error if there is no such computation or instruction, if an instruction that calls nothing is asked for
// without hops, or if there are too many instructions.
absl::StatusOr<Subgraph> SelectSubgraph(const Module& module, const SubgraphOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_SUBGRAPH_H_
