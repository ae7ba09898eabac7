// SPDX-License-Identifier: Apache-2.0
// A value on one line: the shape, with or without a layout, and the literal.  f32[2] {1, 2}
#ifndef HLOKIT_TRACER_TEXT_LITERAL_LINE_H_
#define HLOKIT_TRACER_TEXT_LITERAL_LINE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::lazy {

inline constexpr int64_t kMaxLiteralLineBytes = int64_t{1} << 32;

// Parses `line`, a substring of source.text(), of a value of at most `max_bytes`. Nullopt after an error, which is in
// the sink.
std::optional<Literal> ReadLiteralLine(const SourceBuffer& source, std::string_view line, Context* context,
                                       int64_t max_bytes, DiagnosticSink* sink);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_LITERAL_LINE_H_
