// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a script and runs it with small limits. A script that is rejected, or fails, has a
// diagnostic within the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "tracer/script/script.h"
#include "tracer/step/tracer.h"

namespace {

using hlokit::DiagnosticSink;

// An error must have a message, and be located in the text.
void CheckErrors(const DiagnosticSink& sink, size_t size) {
  if (!sink.has_errors()) std::abort();
  for (const hlokit::Diagnostic& d : sink.diagnostics()) {
    if (d.message.empty() || size_t{d.range.offset} + d.range.size > size) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 13) return 0;
  const SourceBuffer source("fuzz", std::string(reinterpret_cast<const char*>(data), size));
  DiagnosticSink sink;
  const std::unique_ptr<const lazy::Script> script = lazy::Script::Parse(source, &sink);
  if (script == nullptr) {
    CheckErrors(sink, size);
    return 0;
  }
  lazy::TracerOptions options;
  options.client.evaluator.num_threads = 1;
  options.client.evaluator.limits.max_bytes = 1 << 20;
  options.client.evaluator.limits.max_steps = 10000;
  options.client.collective_timeout_seconds = 0.05;
  options.client.num_devices = script->devices() > 1 ? 2 : 1;
  options.report = [](std::string_view) {};
  lazy::ProgramOptions limits;
  limits.max_statements = 200;
  limits.max_value_bytes = 1 << 16;
  std::string printed;
  DiagnosticSink errors;
  lazy::Tracer tracer(options);
  const lazy::DeviceGuard guard(tracer.device());
  std::vector<lazy::ProgramResult> results;
  TextWriter writer(&printed);
  if (!script->Run(tracer, limits, writer, &results, &errors)) CheckErrors(errors, size);
  return 0;
}
