// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as a dump of lazy graphs. An accepted one is printed as it was, compared and drawn.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "tracer/text/ir_reader.h"

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
  }
  return 0;
}
