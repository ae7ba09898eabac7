// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/ir_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"

namespace hlokit::lazy {
namespace {

bool IsIdChar(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class LineReader {
 public:
  LineReader(std::string_view text, std::string_view line, DiagnosticSink* sink)
      : text_(text), rest_(line), sink_(*sink) {}

  bool Node(const absl::flat_hash_map<std::string_view, uint32_t>& ids, TextNode* node) {
    if (!Expect("%") || !Id(&node->id) || !Expect(" = ")) return false;
    node->shape = Balanced(' ');
    if (node->shape.empty()) return Error("expected a shape");
    if (!Expect(" ")) return false;
    const size_t open = rest_.find('(');
    if (open == std::string_view::npos || open == 0) return Error("expected an op and its operands in parentheses");
    node->op = rest_.substr(0, open);
    rest_.remove_prefix(open + 1);
    while (!rest_.starts_with(")")) {
      if (!node->operands.empty() && !Expect(", ")) return false;
      if (!Expect("%")) return false;
      std::string_view id;
      const std::string_view at = rest_;
      if (!Id(&id)) return false;
      const auto it = ids.find(id);
      if (it == ids.end()) {
        rest_ = at;
        return Error(StrCat("operand %", id, " is not defined before this line"));
      }
      TextOperand operand{it->second, -1};
      if (rest_.starts_with(".")) {
        rest_.remove_prefix(1);
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), operand.output);
        if (error != std::errc() || operand.output < 0) return Error("expected the number of an output");
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      }
      node->operands.push_back(operand);
    }
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      if (!Expect(", ")) return false;
      const size_t eq = rest_.find('=');
      if (eq == std::string_view::npos) return Error("expected NAME=VALUE");
      const std::string_view name = rest_.substr(0, eq);
      if (!std::all_of(name.begin(), name.end(), IsIdChar) || name.empty()) return Error("expected NAME=VALUE");
      rest_.remove_prefix(eq + 1);
      node->tags.emplace_back(name, Value());
    }
    return true;
  }

 private:
  bool Error(std::string message) {
    sink_.Error(DiagnosticKind::kUnexpectedToken,
                {static_cast<uint32_t>(rest_.data() - text_.data()), rest_.empty() ? 0u : 1u}, std::move(message));
    return false;
  }
  bool Expect(std::string_view what) {
    if (!rest_.starts_with(what)) return Error(StrCat("expected `", what, "`"));
    rest_.remove_prefix(what.size());
    return true;
  }
  bool Id(std::string_view* id) {
    size_t n = 0;
    while (n < rest_.size() && IsIdChar(rest_[n])) ++n;
    if (n == 0) return Error("expected the id of a node");
    *id = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return true;
  }
  // Returns the text up to `stop` outside of brackets.
  std::string_view Balanced(char stop) {
    int depth = 0;
    size_t i = 0;
    for (; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == stop && depth == 0) break;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
    }
    const std::string_view value = rest_.substr(0, i);
    rest_.remove_prefix(i);
    return value;
  }
  // Returns the text up to the next `, NAME=` outside of brackets: values may contain spaces and commas.
  std::string_view Value() {
    int depth = 0;
    size_t i = 0;
    for (; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (depth <= 0 && c == ',' && rest_.substr(i).starts_with(", ")) {
        size_t k = i + 2;
        while (k < rest_.size() && IsIdChar(rest_[k])) ++k;
        if (k > i + 2 && k < rest_.size() && rest_[k] == '=') break;
      }
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
    }
    const std::string_view value = rest_.substr(0, i);
    rest_.remove_prefix(i);
    return value;
  }

  std::string_view text_;
  std::string_view rest_;
  DiagnosticSink& sink_;
};

std::string_view Between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

// Reads name, hash and frame from the lines before a graph.
void ReadHeader(TextGraph* graph) {
  std::string_view rest = graph->before;
  bool frames = false;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("Graph Name: ")) graph->name = line.substr(12);
    if (frames && graph->frame.empty() && line.starts_with("  ")) {
      graph->frame = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    }
    frames = frames || line == "TensorsGraphInfo:" || line == "Python Stacktrace:";
  }
}

// Returns the shape of a label: the TorchScript backend lists shapes in brackets, [Float[2], Long[2]], and shows the
// first.
std::string_view LabelShape(std::string_view shape) {
  if (!shape.starts_with("[") || !shape.ends_with("]")) return shape;
  shape = shape.substr(1, shape.size() - 2);
  return shape.substr(0, shape.find("], ") == std::string_view::npos ? shape.size() : shape.find("], ") + 1);
}

// `id_of`: returns the name of the node at an index. `places`: with location= and scope=. `parameter`: replaces the tag
// of that name; empty: none.
template <typename IdOf>
std::string LineOf(const TextGraph& graph, size_t place, bool places, std::string_view parameter, IdOf id_of) {
  const TextNode& node = graph.nodes[place];
  std::string line = StrCat("%", id_of(place), " = ", node.shape, " ", node.op, "(");
  const char* separator = "";
  for (const TextOperand& operand : node.operands) {
    StrAppend(&line, separator, "%", id_of(operand.node));
    if (operand.output >= 0) StrAppend(&line, ".", operand.output);
    separator = ", ";
  }
  line += ")";
  for (const auto& [name, value] : node.tags) {
    if (name == "parameter") continue;
    if (name == "ROOT" && !parameter.empty()) StrAppend(&line, ", parameter=", std::exchange(parameter, {}));
    if (places || !IsLocationTag(name)) StrAppend(&line, ", ", name, "=", value);
  }
  if (!parameter.empty()) StrAppend(&line, ", parameter=", parameter);
  return line;
}

}  // namespace

std::string_view TextNode::tag(std::string_view name) const {
  for (const auto& [key, value] : tags) {
    if (key == name) return value;
  }
  return {};
}

std::vector<TextOperand> TextGraph::Roots() const {
  std::vector<std::pair<uint32_t, TextOperand>> found;  // root number, node
  for (size_t i = 0; i < nodes.size(); ++i) {
    // 0, 0.1 for output 1, or (0, 2.1) for several.
    std::string_view rest = nodes[i].tag("ROOT");
    if (rest.starts_with("(")) rest.remove_prefix(1);
    while (!rest.empty()) {
      uint32_t number = 0;
      TextOperand root{static_cast<uint32_t>(i), -1};
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      if (error != std::errc()) break;
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
      if (rest.starts_with(".")) {
        const auto [output_end, output_error] =
            std::from_chars(rest.data() + 1, rest.data() + rest.size(), root.output);
        if (output_error != std::errc()) break;
        rest.remove_prefix(static_cast<size_t>(output_end - rest.data()));
      }
      found.emplace_back(number, root);
      rest.remove_prefix(std::min<size_t>(rest.starts_with(", ") ? 2 : rest.size(), rest.size()));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TextOperand> roots;
  for (const auto& entry : found) roots.push_back(entry.second);
  return roots;
}

bool IsDeviceData(std::string_view op) { return op == "xla::device_data" || op == "lazy_tensors::device_data"; }

std::vector<int64_t> TextGraph::Parameters() const {
  std::vector<int64_t> parameters(nodes.size(), -1);
  int64_t next = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!IsDeviceData(nodes[i].op)) continue;
    const std::string_view shared = nodes[i].tag("parameter");
    int64_t number = 0;
    const bool known = !shared.empty() &&
                       std::from_chars(shared.data(), shared.data() + shared.size(), number).ec == std::errc() &&
                       number >= 0 && number < next;
    parameters[i] = known ? number : next++;
  }
  return parameters;
}

bool ReadGraphs(std::shared_ptr<const SourceBuffer> source, TextDump* dump, DiagnosticSink* sink) {
  const std::string_view text = source->text();
  dump->source = std::move(source);
  const char* segment = text.data();
  TextGraph* graph = nullptr;
  absl::flat_hash_map<std::string_view, uint32_t> ids;
  for (size_t begin = 0; begin < text.size() && !sink->limit_reached();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const char* const next = text.data() + std::min(end + 1, text.size());
    if (graph == nullptr) {
      if (line == "IR {") {
        dump->graphs.emplace_back();
        graph = &dump->graphs.back();
        graph->before = Between(segment, text.data() + begin);
        ReadHeader(graph);
        ids.clear();
      } else if (line.starts_with("Graph Hash: ") && !dump->graphs.empty()) {
        dump->graphs.back().hash = line.substr(12);
      }
    } else if (line == "}") {
      graph = nullptr;
      segment = next;
    } else {
      TextNode node;
      node.line_offset = static_cast<uint32_t>(begin);
      const size_t whitespace = std::min(line.find_first_not_of(' '), line.size());
      LineReader reader(text, line.substr(whitespace), sink);
      if (reader.Node(ids, &node)) {
        if (!ids.emplace(node.id, static_cast<uint32_t>(graph->nodes.size())).second) {
          sink->Error(DiagnosticKind::kDuplicateName,
                      {static_cast<uint32_t>(node.id.data() - text.data()), static_cast<uint32_t>(node.id.size())},
                      StrCat("%", node.id, " is defined twice"));
        }
        graph->nodes.push_back(std::move(node));
      }
    }
    begin = static_cast<size_t>(next - text.data());
    if (end == text.size()) break;
  }
  if (graph != nullptr) {
    sink->Error(DiagnosticKind::kUnexpectedToken, {static_cast<uint32_t>(text.size()), 0},
                "expected `}` at the end of the graph");
  }
  if (dump->graphs.empty() && !sink->has_errors()) {
    sink->Error(
        DiagnosticKind::kUnexpectedToken, {0, 0}, "expected a graph, `IR {`",
        "graphs are those that hlokit.torch, ir-dump and PyTorch/XLA save; hlokit.torch records programs in PyTorch "
        "(docs/pytorch.md)");
  }
  dump->after = Between(segment, text.data() + text.size());
  return !sink->has_errors();
}

bool IsLocationTag(std::string_view name) { return name == "location" || name == "scope"; }

std::string PrintNode(const TextGraph& graph, size_t place) {
  return LineOf(graph, place, true, graph.nodes[place].tag("parameter"),
                [&](size_t node) { return graph.nodes[node].id; });
}

std::string PrintGraph(const TextGraph& graph) {
  std::string out = "IR {\n";
  for (size_t place = 0; place < graph.nodes.size(); ++place) StrAppend(&out, "  ", PrintNode(graph, place), "\n");
  return out + "}\n";
}

std::string PrintDump(const TextDump& dump) {
  std::string out;
  for (const TextGraph& graph : dump.graphs) StrAppend(&out, graph.before, PrintGraph(graph));
  return out + std::string(dump.after);
}

std::string PrintGraphDot(const TextGraph& graph) {
  const auto escaped = [](std::string_view s) {
    std::string out;
    for (char c : s) {
      if (c == '"' || c == '\\') out.push_back('\\');
      out.push_back(c);
    }
    return out;
  };
  std::string out = "digraph G {\n";
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const TextNode& node = graph.nodes[i];
    StrAppend(&out, "  node", i, " [label=\"", escaped(node.op), "\\n", escaped(LabelShape(node.shape)));
    for (const auto& [name, value] : node.tags) {
      if (name == "NodeType") continue;  // torch's own graphs leave it out
      const std::string_view text = value;
      StrAppend(&out, "\\n", name, "=", escaped(text.substr(0, 64)), text.size() > 63 ? "..." : "");
    }
    out += "\"]\n";
  }
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const std::vector<TextOperand>& operands = graph.nodes[i].operands;
    for (size_t k = 0; k < operands.size(); ++k) {
      StrAppend(&out, "  node", operands[k].node, " -> node", i);
      const bool several = operands[k].output >= 0;
      if (operands.size() > 1 || several) {
        out += " [label=\"";
        if (operands.size() > 1) StrAppend(&out, "i=", k);
        if (several) StrAppend(&out, operands.size() > 1 ? "," : "", "o=", operands[k].output);
        out += "\"]";
      }
      out += "\n";
    }
  }
  return out + "}\n";
}

std::string ToNormalizedString(const TextGraph& graph, bool keep_locations) {
  constexpr uint32_t kNone = 0xffffffffu;
  std::vector<uint32_t> number(graph.nodes.size(), kNone);
  std::vector<uint32_t> order;
  std::vector<std::pair<uint32_t, size_t>> stack;  // node, operands visited
  const auto visit = [&](uint32_t root) {
    if (number[root] != kNone) return;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, done] = stack.back();
      if (number[node] != kNone) {
        stack.pop_back();
        continue;
      }
      const std::vector<TextOperand>& operands = graph.nodes[node].operands;
      if (done < operands.size()) {
        const uint32_t next = operands[done++].node;
        if (number[next] == kNone) stack.emplace_back(next, 0);
        continue;
      }
      number[node] = static_cast<uint32_t>(order.size());
      order.push_back(node);
      stack.pop_back();
    }
  };
  for (const TextOperand& root : graph.Roots()) visit(root.node);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) visit(i);  // dead nodes
  // Parameters are numbered anew.
  const std::vector<int64_t> parameters = graph.Parameters();
  std::vector<int64_t> renumbered(graph.nodes.size(), -1);
  int64_t next = 0;
  std::string out = "IR {\n";
  for (uint32_t place : order) {
    std::string parameter;
    if (parameters[place] >= 0) {
      int64_t& known = renumbered[static_cast<size_t>(parameters[place])];
      if (known >= 0) parameter = StrCat(known);
      if (known < 0) known = next++;
    }
    const std::string line = LineOf(graph, place, keep_locations, parameter, [&](size_t node) { return number[node]; });
    StrAppend(&out, "  ", line, "\n");
  }
  return out + "}\n";
}

}  // namespace hlokit::lazy
