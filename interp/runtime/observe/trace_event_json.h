// SPDX-License-Identifier: Apache-2.0
// Numbers and strings in Chrome's trace event format.
#ifndef HLOKIT_INTERP_RUNTIME_OBSERVE_TRACE_EVENT_JSON_H_
#define HLOKIT_INTERP_RUNTIME_OBSERVE_TRACE_EVENT_JSON_H_

#include <string>
#include <string_view>

namespace hlokit::runtime {

// Returns digits that resolve a picosecond in an hour.
std::string TraceNumber(double value);

// Returns a quoted string; invalid UTF-8 is replaced.
std::string TraceString(std::string_view s);

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_OBSERVE_TRACE_EVENT_JSON_H_
