// SPDX-License-Identifier: Apache-2.0
// Literals: `1.5`, `{1, 2}`, `{ { /*i0=0*/ ... } }`, `( {1, 2}, 3 )`, `{...}`. Requires a known shape.
//
// Accepts everything that XLA accepts, which is more than it prints: commas between elements may be missing or
// duplicated, integers are accepted as floats and pred, and a scalar as an array of any rank. The scalar is then the
// first element and the others are 0, as in XLA, with a warning. `{...}` is an elided value: an array, a tuple or,
// after the first elements, the rest; the whole literal is then elided.
//
//   pred                true, false, or an integer: 0 is false
//   integers            decimal, in the range of the type; for u64 also -2^63 to -1, taken modulo 2^64
//   floats              1, 1., .5, 1e-5, inf, -inf, nan, -nan, nan(0x7f). Finite numbers must be in the range of
//                       the type, but may lose digits. `-0` is negative zero
//   complex             (real, imaginary). If the real part is NaN, the imaginary part becomes the same, as in XLA
//
// Time is linear in the text. Memory is linear in the text and the rank of the shape, independent of its dimensions; a
// budget bounds the elements that the text does not specify.
#ifndef HLOKIT_PARSER_HLO_LITERAL_PARSER_H_
#define HLOKIT_PARSER_HLO_LITERAL_PARSER_H_

#include <cstdint>

#include "ir/graph/context.h"
#include "parser/text/byte_limit.h"
#include "parser/text/text_cursor.h"

namespace hlokit {

// Memory limits of all literals of one text, counted down while parsing.
struct LiteralBudget {
  ByteLimit bytes;
  // For elements that the text does not specify. A literal that needs more is left elided, with a warning.
  int64_t implicit_bytes = int64_t{1} << 28;
};

struct LiteralLimits {
  int64_t max_bytes = int64_t{1} << 32;  // of one literal
  // Without a budget, each literal has a separate one with kDefaultImplicitBytes.
  LiteralBudget* budget = nullptr;
  static constexpr int64_t kDefaultImplicitBytes = int64_t{1} << 20;
  // Parse complex numbers with a NaN real part as XLA does (see above); false: verbatim, for data files.
  bool propagate_complex_nan = true;
};

// Parses a value of `shape`: an array, or a tuple of arrays, tokens and tuples. Reports errors and returns false.
bool ParseLiteral(TextCursor& in, Context* context, Shape shape, const LiteralLimits& limits, LiteralId* out);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_LITERAL_PARSER_H_
