// SPDX-License-Identifier: Apache-2.0
// Scripts for the tracer, one statement a line (docs/tracer.md documents the language):
//
//   def loss_of(%model, %x, %labels)
//     return aten::cross_entropy_loss(%model(%x), %labels)
//   end
//   %x = hash f32[4,8] 0                deterministic pseudo-random values, the same on every platform
//   %labels = tensor s64[4] {0, 1, 2, 1}
//   %model = nn::Sequential(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 3))
//   %optimizer = optim::Adam(%model, lr=0.01)
//   for %i in range(10)
//     zero_grad %optimizer
//     %loss = loss_of(%model, %x, %labels)
//     backward %loss
//     step %optimizer
//     mark_step
//     if %i % 5 == 0
//       print %loss
//     end
//   end
//
// A script is parsed as a whole before anything runs.
#ifndef HLOKIT_TRACER_SCRIPT_SCRIPT_H_
#define HLOKIT_TRACER_SCRIPT_SCRIPT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "tracer/step/tracer.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {

namespace script {
class ScriptInputs;
struct ScriptProgram;
}  // namespace script

struct ProgramOptions {
  IrTextOptions text;
  int64_t max_statements = int64_t{1} << 24;     // executed statements, counting each repetition
  int64_t max_value_bytes = int64_t{1} << 32;    // of a value that a script states, or reads from a file
  const script::ScriptInputs* inputs = nullptr;  // arrays that input() reads; null: none
};

// Variables of a script at its end, in the order of their first assignment: those that are tensors.
struct ProgramResult {
  std::vector<std::pair<std::string, Tensor>> variables;
  std::string captures;  // reports of its capture blocks (CapturedFunction::Report)
};

class Script {
 public:
  // Parses a script, which must outlive the result. Returns null after errors, which are in the sink.
  static std::unique_ptr<const Script> Parse(const SourceBuffer& source, DiagnosticSink* sink);
  ~Script();

  // Returns the number of devices that the script states, or 0.
  int64_t devices() const;
  // Runs the script on each device of the tracer, or on the current device of this thread if there is one; `dump`,
  // `print` and `item` write to `out`, of several devices in their order. The result is by device. Returns false after
  // an error, which is in the sink.
  bool Run(Tracer& tracer, const ProgramOptions& options, TextWriter& out, std::vector<ProgramResult>* results,
           DiagnosticSink* sink) const;

 private:
  explicit Script(const SourceBuffer& source);

  const SourceBuffer& source_;
  const std::unique_ptr<script::ScriptProgram> program_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_SCRIPT_SCRIPT_H_
