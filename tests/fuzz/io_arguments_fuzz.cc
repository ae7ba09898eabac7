// SPDX-License-Identifier: Apache-2.0
// Reads arbitrary bytes as arguments of a run. The text of accepted ones is read as the same text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "io/arrays/arguments.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "parser/formats/parser.h"

namespace {

std::string Print(const std::vector<hlokit::Literal>& values) {
  std::string text;
  {
    hlokit::TextWriter out(&text);
    hlokit::interp::PrintLeaves(out, values);
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlokit;
  if (size < 1 || size > 1 << 14) return 0;
  static Context* const context = new Context();
  static const std::vector<std::vector<Shape>>* const signatures = [] {
    auto* lists = new std::vector<std::vector<Shape>>();
    for (const std::vector<const char*>& shapes : std::vector<std::vector<const char*>>{
             {"f32[2,3]"}, {"s4[5]", "c64[2]"}, {"pred[]", "bf16[0,4]", "f8e4m3fn[3]"}, {"u64[2]", "f64[1,1]"}}) {
      lists->emplace_back();
      for (const char* shape : shapes) lists->back().push_back(*ParseShapeText(shape, context));
    }
    return lists;
  }();
  const std::vector<Shape>& shapes = (*signatures)[data[0] % signatures->size()];
  DiagnosticSink sink;
  const auto values = interp::ReadArguments(
      SourceBuffer("fuzz", std::string(reinterpret_cast<const char*>(data), size)), shapes, context, &sink);
  if (!values) {
    if (!sink.has_errors()) std::abort();  // a rejection has a diagnostic
    return 0;
  }
  const std::string text = Print(*values);
  DiagnosticSink again_sink;
  const auto again = interp::ReadArguments(SourceBuffer("printed", text), shapes, context, &again_sink);
  if (!again || Print(*again) != text) std::abort();
  return 0;
}
