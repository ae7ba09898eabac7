// SPDX-License-Identifier: Apache-2.0
// The hint of an error about a word where an element type was expected.
#ifndef HLOKIT_PARSER_HLO_ELEMENT_TYPE_HINT_H_
#define HLOKIT_PARSER_HLO_ELEMENT_TYPE_HINT_H_

#include <string>
#include <string_view>

namespace hlokit {

// Returns a question, "did you mean `f32`?", for types of another case, under names of C, NumPy and PyTorch (`float`,
// `int32`, `half`), or misspelled; "" if nothing is near.
std::string ElementTypeHint(std::string_view word);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_HLO_ELEMENT_TYPE_HINT_H_
