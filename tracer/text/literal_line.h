// SPDX-License-Identifier: Apache-2.0
// A value on one line: the shape, with or without a layout, and the literal.  f32[2] {1, 2}
#ifndef HLOKIT_TRACER_TEXT_LITERAL_LINE_H_
#define HLOKIT_TRACER_TEXT_LITERAL_LINE_H_

#include <optional>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::lazy {

// Parses `line`, a substring of source.text(). Nullopt after an error, which is in the sink.
std::optional<Literal> ReadLiteralLine(const SourceBuffer& source, std::string_view line, Context* context,
                                       DiagnosticSink* sink);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_LITERAL_LINE_H_
