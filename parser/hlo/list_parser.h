// SPDX-License-Identifier: Apache-2.0
// Lists of plain values, appended to `list`. Each function reports what is wrong and returns false.
#ifndef HLOKIT_PARSER_HLO_LIST_PARSER_H_
#define HLOKIT_PARSER_HLO_LIST_PARSER_H_

#include <cstdint>
#include <vector>

#include "parser/text/text_cursor.h"

namespace hlokit {

// Parses `{1,2}`, or with other brackets.
bool ParseIntegers(TextCursor& in, char open, char close, std::vector<int64_t>* list);
// Parses `{{1,2},{3}}`: for each inner list its size and its values.
bool ParseIntegerLists(TextCursor& in, std::vector<int64_t>* list);
// Parses `{true,false}`, with `allow_single` also `true` without braces.
bool ParseBools(TextCursor& in, std::vector<int64_t>* list, bool allow_single);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_LIST_PARSER_H_
