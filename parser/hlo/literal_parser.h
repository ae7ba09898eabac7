// SPDX-License-Identifier: Apache-2.0
// Literals: `1.5`, `{1, 2}`, `{ { /*i0=0*/ ... } }`, `( {1, 2}, 3 )`, `{...}`. The shape is known before the text is
// read.
//
// Reads what XLA reads, which is more than it prints: commas between elements may be missing or doubled, integers stand
// for floats and for pred, and a scalar may stand for an array of any rank. That one gives the first element; the
// others are 0, as in XLA, and a warning says so. `{...}` stands for a value that is not known: of an array, a tuple
// or, after the first elements, of what the text left out; the whole literal is then elided.
//
//   pred                true, false, or an integer: 0 is false
//   integers            decimal, in the range of the type; for u64 also -2^63 to -1, taken modulo 2^64
//   floats              1, 1., .5, 1e-5, inf, -inf, nan, -nan, nan(0x7f). Finite numbers must not become infinite (or
//   NaN)
//                       in the type, but may lose digits. `-0` is negative zero
//   complex             (real, imaginary). If the real part is NaN, the imaginary part becomes the same, as in XLA
//
// Time is linear in the text. Memory is linear in the text and the rank of the shape, whatever sizes the shape names;
// elements that no text stands for (see above) are bounded by a budget.
#ifndef HLOKIT_PARSER_HLO_LITERAL_PARSER_H_
#define HLOKIT_PARSER_HLO_LITERAL_PARSER_H_

#include <cstdint>

#include "ir/graph/context.h"
#include "parser/core/text_cursor.h"

namespace hlokit {

// What the literals of one text may take together. Counted down as they are read.
struct LiteralBudget {
  int64_t bytes = int64_t{1} << 32;
  // Of these, elements that the text does not spell out. A literal that needs more is left elided, with a warning.
  int64_t implicit_bytes = int64_t{1} << 28;
};

struct LiteralLimits {
  int64_t max_bytes = int64_t{1} << 32;  // of one literal
  // Without a budget, each literal has one of its own, with kDefaultImplicitBytes.
  LiteralBudget* budget = nullptr;
  static constexpr int64_t kDefaultImplicitBytes = int64_t{1} << 20;
  // XLA's reading of complex numbers whose real part is NaN (see above); false: as they stand, for reading data.
  bool propagate_complex_nan = true;
};

// Reads a value of `shape`: an array, or a tuple of arrays, tokens and tuples. Reports and returns false if there is
// none.
bool ParseLiteral(TextCursor& in, Context* context, Shape shape, const LiteralLimits& limits, LiteralId* out);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_LITERAL_PARSER_H_
