// SPDX-License-Identifier: Apache-2.0
// Attribute values with numbers for each dimension, as attribute.h encodes them, appended to `list`. Each function
// reports what is wrong and returns false.
#ifndef HLOKIT_PARSER_HLO_WINDOW_PARSER_H_
#define HLOKIT_PARSER_HLO_WINDOW_PARSER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "parser/text/text_cursor.h"

namespace hlokit {

// Parses `{[0:4], [0:8:2]}`.
bool ParseSliceRanges(TextCursor& in, std::vector<int64_t>* list);
// Parses `0_1x2_3_1`; without `allow_interior`, `0_1x2_3`.
bool ParsePadding(TextCursor& in, std::vector<int64_t>* list, bool allow_interior);
// Parses `{size=3x3 stride=2x2 pad=1_1x1_1 ...}`.
bool ParseWindow(TextCursor& in, std::vector<int64_t>* list);
// Parses `b01f_01io->b01f`. A `?` is a dimension without a role.
bool ParseConvolutionDims(TextCursor& in, std::vector<int64_t>* list);
// Parses `{lhs={sparsity=AxB dimension=D stride=S idx=I} rhs={...}}` into the text that XLA prints: both sides in this
// order, every field of a side.
bool ParseSparsityConfig(TextCursor& in, std::string* text);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_WINDOW_PARSER_H_
