// SPDX-License-Identifier: Apache-2.0
// Literals as text, byte for byte as XLA prints them on one line:
//
//   1.5                                      a scalar
//   {1, 2}                                   rank 1
//   { { 1, 2 }, { 3, 4 } }                   rank 2 and up; an innermost dimension of size 1 or 0 has no spaces:
//                                            { {1}, {2} }
//   { { /*i0=0*/ { /*i1=0*/ { 1, 2 } } } }   rank 4 and up: outer indices in comments
//   ( {1, 2}, 3 )                            a tuple
//   {...}                                    an elided value
//
// Floats have enough digits to round-trip, but not always the fewest: 0.209439531 (f32), 0.1001 (bf16). NaNs with
// another payload than the default one show it: nan(0x7f). pred is true or false in a scalar and 1 or 0 in an array.
#ifndef HLOKIT_IR_TEXT_LITERAL_TEXT_H_
#define HLOKIT_IR_TEXT_LITERAL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/types/element_type.h"
#include "ir/types/literal.h"

namespace hlokit {

struct LiteralTextOptions {
  // Print each array after its shape, with or without layout: s32[2]{0} {1, 2}.
  bool with_shape = false;
  bool with_layout = true;
  // Elide arrays with more elements than this, and tuples, as {...}. Negative: none.
  int64_t max_elements = -1;
};

void PrintLiteral(TextWriter& out, const Context& context, LiteralId literal, const LiteralTextOptions& options = {});
void PrintLiteral(TextWriter& out, const Literal& literal, const LiteralTextOptions& options = {});
std::string ToString(const Context& context, LiteralId literal, const LiteralTextOptions& options = {});
std::string ToString(const Literal& literal, const LiteralTextOptions& options = {});

// Appends one element of a literal as in a scalar. Requires: `type` is an array type.
void AppendScalar(TextWriter& out, ElementType type, const std::byte* element);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_LITERAL_TEXT_H_
