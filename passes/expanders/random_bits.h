// SPDX-License-Identifier: Apache-2.0
// Random bits as integer arithmetic, for the expanders of generators and of random numbers.
#ifndef HLOKIT_PASSES_EXPANDERS_RANDOM_BITS_H_
#define HLOKIT_PASSES_EXPANDERS_RANDOM_BITS_H_

#include <vector>

#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

struct RandomBits {
  std::vector<InstructionId> state;  // the next state
  InstructionId values;
};

// Returns the elements of `values`, an array of integers of 8 to 64 bits with at least one element. The state is
// scalars u64: the key, the low half of the counter and, for Philox, optionally its high half, which defaults to the
// key.
RandomBits MakeRandomBits(PatternRewriter& rewriter, RngAlgorithm algorithm, std::vector<InstructionId> state,
                          Shape values);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_EXPANDERS_RANDOM_BITS_H_
