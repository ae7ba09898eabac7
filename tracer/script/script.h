// SPDX-License-Identifier: Apache-2.0
// Programs for the tracer as text, one statement a line (docs/tracer.md has the whole language):
//
//   %x = tensor f32[2,3] {{1,2,3},{4,5,6}}
//   %w = hash f32[4,3] 0            numbers by formula, the same everywhere
//   requires_grad %w
//   %y = aten::linear(%x, %w)
//   %v, %i = aten::topk(%y, 2, largest=true)
//   %loss = aten::sum(%v)
//   backward %loss
//   %g = grad %w
//   no_grad
//     aten::add_(%w, %g, alpha=-0.1)
//   end
//   mark_step
//   print %loss
//
// Blocks are no_grad, scope NAME, repeat N, compile NAME and capture NAME, up to `end`. Statements run as they are met.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "tracer/step/tracer.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {

struct ProgramOptions {
  IrTextOptions text;
  int64_t max_statements = int64_t{1} << 24;  // run, those of repeats counted each time
};

// Variables of a program when it ends, in the order of their first assignment.
struct ProgramResult {
  std::vector<std::pair<std::string, Tensor>> variables;
  std::string captures;  // what became of its capture blocks, as CapturedFunction::Report has it
};

// Runs a program on the current device of this thread; `dump`, `print` and `item` write to `out`. False after an error,
// which is in the sink.
bool RunScript(const SourceBuffer& source, Tracer& tracer, const ProgramOptions& options, TextWriter& out,
               ProgramResult* result, DiagnosticSink* sink);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_H_
