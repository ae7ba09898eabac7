// SPDX-License-Identifier: Apache-2.0
// Arguments and results of a program as text.
//
// The text has one array leaf a line, tuples flattened in order: the shape, with or without a layout, and the literal
// as XLA prints it.
//   f32[2,2] { { 1, 2 }, { 3, 4 } }
//   pred[] true
//   token[]
//   f32[<=4](2) {1, 2}
// A value of a dynamic shape has its sizes, in parentheses or as dimensions (f32[2]): its literal is of the static
// shape of these sizes. Without them it has the size of the bounds. Empty lines and lines that begin with # or // are
// skipped. Lines for tokens may be left out.
#ifndef HLOKIT_IO_ARRAYS_ARGUMENTS_H_
#define HLOKIT_IO_ARRAYS_ARGUMENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Reads literals of the given shapes (Evaluator::argument_shapes) of `context`. Returns nullopt after errors, whose
// locations are in `source`. `noun`: the word for a literal in errors.
std::optional<std::vector<Literal>> ReadArguments(const SourceBuffer& source, absl::Span<const Shape> shapes,
                                                  Context* context, DiagnosticSink* sink,
                                                  std::string_view noun = "argument");

// Writes leaves in the format of ReadArguments, without layouts. `declared`: their shapes in the program, where they
// may be dynamic; if empty, those of the literals.
void PrintLeaves(TextWriter& out, absl::Span<const Literal> leaves, absl::Span<const Shape> declared = {});

}  // namespace hlokit::interp

#endif  // HLOKIT_IO_ARRAYS_ARGUMENTS_H_
