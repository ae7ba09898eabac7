// SPDX-License-Identifier: Apache-2.0
// A part of a module as a module of its own, which can be run.
#ifndef HLOKIT_PASSES_QUERY_EXTRACT_H_
#define HLOKIT_PASSES_QUERY_EXTRACT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit::query {

struct ExtractOptions {
  // Operands that are farther than this from the results become parameters; below 0: none. Constants and
  // broadcasts of them are always taken, and the starts of asynchronous operations with their ends.
  int64_t depth = -1;
  // These become parameters, with their names, instead of being computed.
  std::vector<Instruction> inputs;
};

// Returns a module whose results are those of the instructions: of one its value, of several a tuple. It computes them
// from the parameters of their computation, and from what the options cut off; computations that are called are copied.
// Returns an error if the instructions are in several computations. A part that needs a value which cannot be a
// parameter is a module that does not verify.
absl::StatusOr<Module> Extract(const Module& module, absl::Span<const Instruction> results,
                               const ExtractOptions& options);

// A module that computes one instruction from some of its transitive operands, for evaluation: without a header, with
// the context of the module it is from. Control edges are dropped.
struct Part {
  Module module;
  std::vector<Instruction> inputs;  // instructions of the given module whose values are the parameters, by number
};
// Returns the part of `result`, which is never an input itself, from those instructions for which `is_input` holds, and
// parameters. Takes time and memory in proportion to the part and the computations that it calls.
Part ExtractPart(Instruction result, const std::function<bool(Instruction)>& is_input);

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_EXTRACT_H_
