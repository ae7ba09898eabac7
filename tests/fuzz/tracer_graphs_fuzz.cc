// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as a dump of lazy graphs. An accepted one is printed as it was, compared, drawn and recorded; a
// graph that could be recorded is printed in a form that can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "tracer/step/tracer.h"
#include "tracer/text/ir_reader.h"
#include "tracer/text/ir_text.h"
#include "tracer/text/record/ir_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size > 1 << 14) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  lazy::TextDump dump;
  DiagnosticSink sink;
  if (!lazy::ReadGraphs(std::make_shared<const SourceBuffer>("fuzz", text), &dump, &sink)) {
    if (!sink.has_errors()) std::abort();  // a rejection has a diagnostic
    return 0;
  }
  lazy::PrintDump(dump);
  for (const lazy::TextGraph& graph : dump.graphs) {
    graph.Roots();
    lazy::PrintGraph(graph);
    lazy::PrintGraphDot(graph);
    lazy::Tracer tracer;
    const lazy::DeviceGuard guard(tracer.device());
    lazy::Tensors roots;
    DiagnosticSink errors;
    const auto parameter = [&](int64_t number, Shape shape, SourceRange) {
      return lazy::SyntheticParameter(tracer, number, shape);
    };
    if (!lazy::BuildGraph(dump, graph, tracer, parameter, &roots, &errors)) {
      if (!errors.has_errors()) std::abort();
      continue;
    }
    lazy::TextDump again;
    DiagnosticSink reading;
    const auto printed = std::make_shared<const SourceBuffer>("printed", lazy::TensorsToString(roots));
    if (!lazy::ReadGraphs(printed, &again, &reading)) std::abort();
  }
  return 0;
}
