// SPDX-License-Identifier: Apache-2.0
// Splits lines of schemas, dumps and recorded calls.
#ifndef HLOKIT_TRACER_GRAPH_STRING_SPLIT_H_
#define HLOKIT_TRACER_GRAPH_STRING_SPLIT_H_

#include <string_view>
#include <vector>

namespace hlokit::lazy {

// Removes spaces, tabs and carriage returns at both ends.
std::string_view Trim(std::string_view s);

// Returns the trimmed substrings between commas outside of brackets and quotes; none for blank text.
std::vector<std::string_view> SplitTopLevel(std::string_view s);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_STRING_SPLIT_H_
