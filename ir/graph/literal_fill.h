// SPDX-License-Identifier: Apache-2.0
// Values for literals whose text was elided, so that a program can run without its constants.
#ifndef HLOKIT_IR_GRAPH_LITERAL_FILL_H_
#define HLOKIT_IR_GRAPH_LITERAL_FILL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit {

enum class FillKind : uint8_t {
  kZeros,   // 0 and false; for f8e8m0fnu, which has no zero, its smallest value
  kIota,    // 0, 1, 2, ... in row-major order, from 0 again where the type ends or would skip a number; in complex
            // numbers, the real part; for pred false, true, false, ...; for f8e8m0fnu 1, 2, 4, ..., 128, 1, ...
  kRandom,  // floats in [-1, 1), integers in [0, 16) or what there is of that in the type, pred, f8e8m0fnu from 2^-4 to
            // 2^3
  kXla,  // what XLA's parser puts there: 32 bits of a counter for every four bytes, 8 bits for each byte left over, low
         // byte first, whatever the type; of pred and types narrower than a byte the low bits. The counter starts at
         // the seed and goes on from array to array
};

// A literal of `shape`: an array, or a tuple of arrays, tokens and tuples; all of their sizes must be known and fit in
// memory (ByteSize). Each array of a tuple is filled by itself.
//
// Random values are those of SplitMix64, started at `seed` plus the number of the array in a depth-first walk times
// 2^32: element i is made of the i-th output (complex: 2i-th and 2i+1-th). They are the same on all machines.
Literal FillElided(Shape shape, FillKind kind, uint64_t seed = 0);

// Gives every elided constant of the module a value, in the order of the text. Random ones start at `*seed` plus their
// LiteralId, as hlo-run has it; for kXla `*seed` is the counter, and is left where it then stands. An error, with
// nothing changed, if a size is not known or all of them need more than `max_bytes`.
absl::Status FillElidedConstants(FillKind kind, int64_t max_bytes, uint64_t* seed, Module* module);

// An array of floats in (0, 1]; f8e8m0fnu as above. The same generator.
Literal FillPositive(Shape shape, uint64_t seed);

// An array of integers in [0, bound), or what their type has of that; `bound` is at least 1. The same generator:
// element i is the i-th output modulo the bound.
Literal FillIndices(Shape shape, int64_t bound, uint64_t seed);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_LITERAL_FILL_H_
