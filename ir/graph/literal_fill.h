// SPDX-License-Identifier: Apache-2.0
// Values for elided literals, so that a program can run without its constants.
#ifndef HLOKIT_IR_GRAPH_LITERAL_FILL_H_
#define HLOKIT_IR_GRAPH_LITERAL_FILL_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit {

enum class FillKind : uint8_t {
  kZeros,   // 0 and false; for f8e8m0fnu, which has no zero, its smallest value
  kIota,    // 0, 1, 2, ... in row-major order, restarting at 0 where the type ends or would skip a number; for complex
            // numbers the real part; for pred false, true, false, ...; for f8e8m0fnu 1, 2, 4, ..., 128, 1, ...
  kRandom,  // floats in [-1, 1), integers in [0, 16) as far as the type goes, pred, f8e8m0fnu from 2^-4 to 2^3
  kXla,  // the values of XLA's parser: 32 bits of a counter for every four bytes, 8 bits for each byte left over, low
         // byte first, for all types; for pred and types narrower than a byte the low bits. The counter starts at the
         // seed and continues from array to array
};

// Returns a literal of `shape`: an array, or a tuple of arrays, tokens and tuples. Requires: all sizes are known and
// fit in memory (ByteSize). Each array of a tuple is filled separately.
//
// Random values are those of SplitMix64, started at `seed` plus the depth-first index of the array times 2^32: element
// i is computed from the i-th output (complex: 2i-th and 2i+1-th). They are the same on all platforms.
Literal FillElided(Shape shape, FillKind kind, uint64_t seed = 0);

// Gives every elided constant of the module a value, in text order. Random ones start at `*seed` plus their LiteralId,
// as in hlo-run; for kXla `*seed` is the counter, and is advanced. Returns an error, and changes nothing, if a size is
// unknown or all of them need more than `max_bytes`.
absl::Status FillElidedConstants(FillKind kind, int64_t max_bytes, uint64_t* seed, Module* module);

// Returns an array of floats in (0, 1]; f8e8m0fnu as above. The same generator.
Literal FillPositive(Shape shape, uint64_t seed);

// Returns an array of integers in [0, bound), as far as their type goes; `bound` is at least 1. The same generator:
// element i is the i-th output modulo the bound.
Literal FillIndices(Shape shape, int64_t bound, uint64_t seed);

// The elements of the functions above, for parts of arrays.
struct RandomFill {
  enum class Kind : uint8_t { kElements, kPositive, kIndices };  // FillElided with kRandom, FillPositive, FillIndices
  Kind kind = Kind::kElements;
  int64_t bound = 0;  // of indices
  uint64_t seed = 0;
};
// Fills elements [begin, end) of an array. Different ranges may be filled by different threads.
void FillRange(const RandomFill& fill, int64_t begin, int64_t end, Literal* array);

// Replaces half of the elements of an array of numbers by values that rewrites may treat differently: NaN, infinities,
// zeros of either sign, denormals, and the largest and smallest numbers, as far as the type has them. Other elements,
// arrays of pred and literals that are not arrays stay as they are. `stop` is polled about every 20 ms; if it returns
// true, the rest stays too.
void FillSpecial(uint64_t seed, Literal* literal, const std::function<bool()>& stop = nullptr);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_LITERAL_FILL_H_
