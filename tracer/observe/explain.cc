// SPDX-License-Identifier: Apache-2.0
#include "tracer/observe/explain.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "tracer/step/tracer.h"
#include "tracer/text/graph_diff.h"
#include "tracer/text/ir_reader.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

constexpr size_t kMaxCompared = 16;  // most recently used programs

bool Read(const std::string& text, TextDump* dump) {
  DiagnosticSink sink;
  return ReadGraphs(std::make_shared<SourceBuffer>("graph", text), dump, &sink);
}

std::string NodeAndLocation(const TextNode& node) {
  const std::string_view location = node.tag("location");
  return location.empty() ? std::string(node.op) : StrCat(node.op, " (", location, ")");
}

// Returns the first node that uses a leaf, by the leaf's number in post-order: "aten::mul (step@train.py:3)".
std::string FirstUseOf(const TextGraph& graph, size_t leaf) {
  size_t at = 0;
  for (; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].op == "xla::device_data" && leaf-- == 0) break;
  }
  for (const TextNode& node : graph.nodes) {
    for (const TextOperand& operand : node.operands) {
      if (operand.node == at) return NodeAndLocation(node);
    }
  }
  return "a result";
}

// Returns the first node that uses a parameter, by parameter number.
std::string UseOfParameter(const CompiledGraph& graph, const TextGraph& text, int64_t parameter) {
  const auto& sequence = graph.parameter_sequence;
  const auto it = std::find(sequence.begin(), sequence.end(), static_cast<uint32_t>(parameter));
  return FirstUseOf(text, static_cast<size_t>(it - sequence.begin()));
}

std::string RootAndLocation(const TextGraph& graph) {
  const std::vector<TextOperand> roots = graph.Roots();
  return roots.empty() ? "" : NodeAndLocation(graph.nodes[roots[0].node]);
}

std::string Donations(const CompiledGraph& graph, const TextGraph& text) {
  if (graph.donated_parameters.empty()) return "none";
  std::string out;
  for (int64_t p : graph.donated_parameters) {
    StrAppend(&out, out.empty() ? "" : ", ", p, " of ", UseOfParameter(graph, text, p));
  }
  return out;
}

// Describes the difference of two graphs with equal text.
std::string HiddenDifference(const CompiledGraph& now, const TextGraph& now_text, const CompiledGraph& before,
                             const TextGraph& before_text) {
  for (size_t i = 0; i < now.parameter_sequence.size() && i < before.parameter_sequence.size(); ++i) {
    if (now.parameter_sequence[i] != before.parameter_sequence[i]) {
      return StrCat("parameter order: leaf ", i, ", taken by ", FirstUseOf(now_text, i), ", is parameter ",
                    now.parameter_sequence[i], "; it was ", before.parameter_sequence[i], ", taken by ",
                    FirstUseOf(before_text, i), " (two leaves became the same buffer, or ceased to be)");
    }
  }
  if (now.force != before.force) {
    const auto kind = [](bool force) { return force ? "a step or print" : "a fetch that keeps the graph"; };
    return StrCat(kind(now.force), " of ", RootAndLocation(now_text), "; before it was ", kind(before.force), " of ",
                  RootAndLocation(before_text));
  }
  if (now.donated_parameters != before.donated_parameters) {
    return StrCat("donation: parameters that results may reuse are ", Donations(now, now_text), "; before it were ",
                  Donations(before, before_text));
  }
  return "none in the text of the graphs";
}

}  // namespace

Explanation ExplainCompilation(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options,
                               const std::string& other_setting, CompiledGraph* compiled) {
  compiled->text = GraphToString(device, slice, {.parameters = false});  // compared by HiddenDifference
  compiled->force = options.force;
  for (NodeId id : slice.order) {
    if (device.graph().node(id).op == Op::device_data) {
      compiled->parameter_sequence.push_back(device.graph().leaf(id)->parameter_number);
    }
  }
  const std::string message = StrCat("compiling graph ", ToString(compiled->hash), " (", compiled->nodes, " nodes, ",
                                     compiled->inputs, " inputs, ", compiled->outputs, " outputs)");
  if (!other_setting.empty()) {
    return {StrCat(message, ": the stored program has other options: ", other_setting), ""};
  }
  TextDump now;
  if (device.cache().entries().empty() || !Read(compiled->text, &now)) {
    return {StrCat(message, ": the first of this device"), ""};
  }
  const CompiledGraph* nearest = nullptr;
  TextDump nearest_text;
  GraphDiff best;
  size_t compared = 0;
  for (const std::shared_ptr<CompiledGraph>& known : device.cache().entries()) {
    if (++compared > kMaxCompared) break;
    TextDump before;
    if (!Read(known->text, &before)) continue;
    GraphDiff diff = DiffGraphs(before.graphs[0], now.graphs[0]);
    if (nearest != nullptr && !diff.equal && diff.matched <= best.matched) continue;
    nearest = known.get();
    nearest_text = std::move(before);
    best = std::move(diff);
    if (best.equal) break;
  }
  if (nearest == nullptr) return {};
  const std::string difference =
      best.equal ? HiddenDifference(*compiled, now.graphs[0], *nearest, nearest_text.graphs[0]) : best.first;
  return {StrCat(message, ": nearest is ", ToString(nearest->hash), ", ", best.matched, " of ", nearest->nodes,
                 " nodes equal; first difference: ", difference),
          difference};
}

}  // namespace hlokit::lazy
