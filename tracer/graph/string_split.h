// SPDX-License-Identifier: Apache-2.0
// Pieces of a line: what schemas, scripts and recorded calls are cut into.
#ifndef HLOKIT_TRACER_GRAPH_STRING_SPLIT_H_
#define HLOKIT_TRACER_GRAPH_STRING_SPLIT_H_

#include <string_view>
#include <vector>

namespace hlokit::lazy {

// Without blanks, tabs and carriage returns around it.
std::string_view Trim(std::string_view s);

// The trimmed pieces between commas outside of brackets and quotes; none for a blank text.
std::vector<std::string_view> SplitTopLevel(std::string_view s);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_STRING_SPLIT_H_
