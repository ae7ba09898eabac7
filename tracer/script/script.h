// SPDX-License-Identifier: Apache-2.0
// Scripts for the tracer, one statement a line (docs/tracer.md documents the language):
//
//   %x = tensor f32[2,3] {{1,2,3},{4,5,6}}
//   %w = hash f32[4,3] 0            deterministic pseudo-random values, the same on every platform
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
// Blocks are no_grad, scope NAME, repeat N, compile NAME and capture NAME, up to `end`. Statements run in order.
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
  int64_t max_statements = int64_t{1} << 24;  // executed statements, counting each repetition
};

// Variables of a script at its end, in the order of their first assignment.
struct ProgramResult {
  std::vector<std::pair<std::string, Tensor>> variables;
  std::string captures;  // reports of its capture blocks (CapturedFunction::Report)
};

// Runs a script on the current device of this thread; `dump`, `print` and `item` write to `out`. Returns false after an
// error, which is in the sink.
bool RunScript(const SourceBuffer& source, Tracer& tracer, const ProgramOptions& options, TextWriter& out,
               ProgramResult* result, DiagnosticSink* sink);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_H_
