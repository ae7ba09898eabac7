// SPDX-License-Identifier: Apache-2.0
// Random bits as integer arithmetic: what the expanders of generators and of random numbers share.
#ifndef HLOKIT_PASSES_EXPANDERS_RANDOM_BITS_H_
#define HLOKIT_PASSES_EXPANDERS_RANDOM_BITS_H_

#include <vector>

#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {

struct RandomBits {
  std::vector<InstructionId> state;  // the next one
  InstructionId values;
};

// Elements of `values`, an array of numbers of 8 to 64 bits with at least one element. The state is scalars u64: the
// key, the low half of the counter and, for Philox, perhaps its high half, which is the key otherwise.
RandomBits MakeRandomBits(PatternRewriter& rewriter, RngAlgorithm algorithm, std::vector<InstructionId> state,
                          Shape values);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_EXPANDERS_RANDOM_BITS_H_
