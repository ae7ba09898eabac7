#include "tracer/explain.h"

#include <memory>
#include <string>

#include "ir/diagnostic.h"
#include "ir/str_cat.h"
#include "tracer/text/graph_diff.h"
#include "tracer/text/ir_reader.h"
#include "tracer/text/ir_text.h"
#include "tracer/tracer.h"

namespace hlokit::lazy {
namespace {

constexpr size_t kMaxCompared = 16;  // of the programs used last

bool Read(const std::string& text, TextDump* dump) {
  DiagnosticSink sink;
  return ReadGraphs(std::make_shared<SourceBuffer>("graph", text), dump, &sink);
}

std::string List(const std::vector<int64_t>& values) {
  std::string out = "{";
  for (size_t i = 0; i < values.size(); ++i) StrAppend(&out, i == 0 ? "" : ", ", values[i]);
  return out + "}";
}

// What differs when the text of both is the same.
std::string HiddenDifference(const CompiledGraph& now, const CompiledGraph& before) {
  for (size_t i = 0; i < now.parameter_sequence.size() && i < before.parameter_sequence.size(); ++i) {
    if (now.parameter_sequence[i] != before.parameter_sequence[i]) {
      return StrCat("parameter order: leaf ", i, " is parameter ", now.parameter_sequence[i], ", it was ",
                    before.parameter_sequence[i], " (two leaves became the same buffer, or ceased to be)");
    }
  }
  if (now.force != before.force) {
    return now.force ? "a step or print; before it was a fetch that keeps the graph"
                     : "a fetch that keeps the graph; before it was a step or print";
  }
  if (now.donated_parameters != before.donated_parameters) {
    return StrCat("donation: parameters ", List(now.donated_parameters), " may be reused for results, before it were ",
                  List(before.donated_parameters));
  }
  return "scopes or source lines, which are part of the program in debug mode";
}

}  // namespace

void ExplainCompilation(DeviceState& device, const GraphSlice& slice, const SliceOptions& options,
                        CompiledGraph* compiled) {
  compiled->text = GraphText(device, slice);
  compiled->force = options.force;
  compiled->donated_parameters = slice.donated;
  for (NodeId id : slice.order) {
    if (device.graph().node(id).op == Op::device_data) {
      compiled->parameter_sequence.push_back(device.graph().leaf(id)->number);
    }
  }
  std::string message = StrCat("compiling graph ", ToString(compiled->hash), " (", compiled->nodes, " nodes, ",
                               compiled->inputs, " inputs, ", compiled->outputs, " outputs)");
  TextDump now;
  if (device.cache().entries().empty() || !Read(compiled->text, &now)) {
    device.tracer()->AddExplanation(StrCat(message, ": the first of this device"));
    return;
  }
  const CompiledGraph* nearest = nullptr;
  GraphDiff best;
  size_t compared = 0;
  for (const std::shared_ptr<CompiledGraph>& known : device.cache().entries()) {
    if (++compared > kMaxCompared) break;
    TextDump before;
    if (!Read(known->text, &before)) continue;
    GraphDiff diff = DiffGraphs(before.graphs[0], now.graphs[0]);
    if (nearest != nullptr && !diff.equal && diff.matched <= best.matched) continue;
    nearest = known.get();
    best = std::move(diff);
    if (best.equal) break;
  }
  if (nearest == nullptr) return;
  device.tracer()->AddExplanation(
      StrCat(message, ": nearest is ", ToString(nearest->hash), ", ", best.matched, " of ", nearest->nodes,
             " nodes alike; first difference: ", best.equal ? HiddenDifference(*compiled, *nearest) : best.first));
}

}  // namespace hlokit::lazy
