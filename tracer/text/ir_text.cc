// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/ir_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/graph/tiling.h"
#include "tracer/graph/type_promotion.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

using Tag = std::pair<std::string, std::string>;

// Returns a number that reads back as itself, with at least the digits of PyTorch/XLA.
std::string NumberText(double value) {
  const std::string text = FormatDouble(value, 6);
  return std::isnan(value) || std::strtod(text.c_str(), nullptr) == value ? text : FormatDouble(value);
}

// Returns the text, quoted and escaped if it could be taken for something else.
std::string StringText(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_.-+>,").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && text != "null" && std::all_of(text.begin(), text.end(), is_plain)) return text;
  return StrCat("\"", std::string(absl::CHexEscape(text)), "\"");
}

std::string AttrToString(Op op, const ArgSpec& spec, const EncodedArg& arg) {
  std::string out;
  switch (arg.tag) {
    case ArgTag::kNone:
      return "null";
    case ArgTag::kOperand:
    case ArgTag::kOperandList:
      return "";
    case ArgTag::kInt:
    case ArgTag::kBool:
      return StrCat(*arg.payload);
    case ArgTag::kFloat:
      out = NumberText(arg.scalar().ToDouble());
      // A float step makes an iota step in floats.
      if (op == Op::iota && spec.type == ArgType::kScalar &&
          out.find_first_not_of("-0123456789") == std::string::npos) {
        out += ".0";
      }
      return out;
    case ArgTag::kInts:
      out = "(";
      for (uint32_t i = 0; i < arg.count; ++i) StrAppend(&out, i == 0 ? "" : ", ", arg.payload[i]);
      return out + ")";
    case ArgTag::kFloats:
      out = "(";
      for (uint32_t i = 0; i < arg.count; ++i) StrAppend(&out, i == 0 ? "" : ", ", NumberText(arg.float_at(i)));
      return out + ")";
    case ArgTag::kString:
      return StringText(arg.string());
    case ArgTag::kDtype:
      // A cast names the type; so do types without a number in torch.
      if (op == Op::cast || TorchTypeNumber(arg.dtype()) < 0) return std::string(ToString(arg.dtype()));
      return StrCat(TorchTypeNumber(arg.dtype()));
  }
  return out;
}

std::string_view Basename(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<Tag> TagsOf(DeviceState& device, NodeId id, const IrTextOptions& options) {
  const NodeRecord& node = device.graph().node(id);
  const Shape shape = device.context().shape(node.shape);
  std::vector<Tag> tags;
  if (shape.IsTuple()) tags.emplace_back("num_outputs", StrCat(shape.tuple_size()));
  if (node.scope != 0) tags.emplace_back("scope", std::string(device.context().str(StringId(node.scope))));
  if (node.frame != 0) {
    const SourceFrame& frame = device.frames()[node.frame - 1];
    tags.emplace_back("location", StrCat(frame.function, "@", Basename(frame.file), ":", frame.line));
  }
  tags.emplace_back("xla_shape", ToString(shape));
  if (options.torch_xla_quirks) return tags;
  if (node.op == Op::device_data) {
    tags.emplace_back("device", device.name());
  }
  const EncodedArgs args = DecodeArgs(device.context().list(node.attrs));
  if (node.op == Op::device_data || node.op == Op::custom_sharding) {
    const size_t first = node.op == Op::device_data ? 0 : 1;
    if (args.size() > first) tags.emplace_back("sharding", Tiling::FromArgs(args, first).Text());
    return tags;
  }
  const std::vector<std::string>& names = AttrNames(node.op);
  const Schema& schema = SchemaOf(node.op);
  std::string absent;  // operands that are None, which the list of operands does not show
  const auto add_absent = [&](const std::string& name) { StrAppend(&absent, absent.empty() ? "" : ", ", name); };
  for (size_t i = 0; i < args.size() && i < names.size(); ++i) {
    const ArgSpec& spec = schema.args[i];
    if (args[i].tag == ArgTag::kOperandList) {
      for (size_t k = 0; k < args[i].count; ++k) {
        if (args[i].payload[k] == 0) add_absent(StrCat(spec.name, ".", k));
      }
      continue;
    }
    if (args[i].tag == ArgTag::kOperand) continue;
    const bool operand = spec.type == ArgType::kTensor || spec.type == ArgType::kScalar;
    if (args[i].tag == ArgTag::kNone && operand) {
      add_absent(spec.name);
      continue;
    }
    if (names[i] != "-") tags.emplace_back(names[i], AttrToString(node.op, spec, args[i]));
  }
  if (!absent.empty()) tags.emplace_back("absent", StrCat("(", absent, ")"));
  return tags;
}

// Returns the roots, by position in the post-order: `0` the node is root 0, `0.1` its output 1 is, `(0, 2)` it is roots
// 0 and 2. PyTorch/XLA shows the last number only.
std::vector<std::string> RootTexts(DeviceState& device, const PendingSubgraph& slice, const IrTextOptions& options) {
  std::vector<std::string> texts(slice.order.size());
  std::vector<uint32_t> counts(slice.order.size());
  for (size_t i = 0; i < slice.roots.size(); ++i) {
    const uint32_t at = device.graph().Position(slice.roots[i].node);
    if (options.torch_xla_quirks) texts[at].clear();
    StrAppend(&texts[at], texts[at].empty() ? "" : ", ", i);
    if (slice.roots[i].output != 0 && !options.torch_xla_quirks) StrAppend(&texts[at], ".", slice.roots[i].output);
    ++counts[at];
  }
  for (size_t at = 0; at < texts.size(); ++at) {
    if (counts[at] > 1 && !options.torch_xla_quirks) texts[at] = StrCat("(", texts[at], ")");
  }
  return texts;
}

// Adds what a node has in this graph: the parameter of data that an earlier node has too, and donation.
void AddGraphTags(DeviceState& device, const PendingSubgraph& slice, NodeId id, std::vector<Tag>* tags) {
  const Graph& graph = device.graph();
  if (graph.node(id).op != Op::device_data) return;
  const uint32_t parameter = graph.leaf(id)->parameter_number;
  const bool first = slice.input_nodes[parameter] == id;
  if (!first) tags->emplace_back("parameter", StrCat(parameter));
  if (first && std::binary_search(slice.donated.begin(), slice.donated.end(), int64_t{parameter})) {
    tags->emplace_back("donated", "1");
  }
}

// Returns the attributes of a node, its properties in the graph and its root numbers.
std::vector<Tag> AllTagsOf(DeviceState& device, const PendingSubgraph& slice, size_t at, const std::string& roots,
                           const IrTextOptions& options) {
  std::vector<Tag> tags = TagsOf(device, slice.order[at], options);
  if (options.parameters && !options.torch_xla_quirks) AddGraphTags(device, slice, slice.order[at], &tags);
  if (!roots.empty()) tags.emplace_back("ROOT", roots);
  return tags;
}

}  // namespace

std::string GraphToString(DeviceState& device, const PendingSubgraph& slice, const IrTextOptions& options) {
  const Graph& graph = device.graph();
  const std::vector<std::string> roots = RootTexts(device, slice, options);
  std::string out = "IR {\n";
  for (size_t at = 0; at < slice.order.size(); ++at) {
    const NodeId id = slice.order[at];
    const NodeRecord& node = graph.node(id);
    StrAppend(&out, "  %", at, " = ", ToString(device.context().shape(node.shape)), " ", SymbolOf(node.op), "(");
    const char* separator = "";
    for (const NodeOutput& operand : graph.operands(id)) {
      StrAppend(&out, separator, "%", graph.Position(operand.node));
      if (device.context().shape(graph.node(operand.node).shape).IsTuple()) StrAppend(&out, ".", operand.output);
      separator = ", ";
    }
    out += ")";
    for (const Tag& tag : AllTagsOf(device, slice, at, roots[at], options)) {
      StrAppend(&out, ", ", tag.first, "=", tag.second);
    }
    out += "\n";
  }
  return out + "}\n";
}

std::string GraphDot(DeviceState& device, const PendingSubgraph& slice, const IrTextOptions& options) {
  const Graph& graph = device.graph();
  const std::vector<std::string> roots = RootTexts(device, slice, options);
  std::string out = "digraph G {\n";
  for (size_t at = 0; at < slice.order.size(); ++at) {
    const NodeId id = slice.order[at];
    const NodeRecord& node = graph.node(id);
    StrAppend(&out, "  node", at, " [label=\"", SymbolOf(node.op), "\\n", ToString(device.context().shape(node.shape)));
    for (const Tag& tag : AllTagsOf(device, slice, at, roots[at], options)) {
      std::string value = tag.second;
      if (value.size() > 63) {
        value.resize(64);
        value += "...";
      }
      StrAppend(&out, "\\n", tag.first, "=", value);
    }
    out += "\"]\n";
  }
  for (size_t at = slice.order.size(); at-- > 0;) {
    const absl::Span<const NodeOutput> operands = graph.operands(slice.order[at]);
    for (size_t i = 0; i < operands.size(); ++i) {
      StrAppend(&out, "  node", graph.Position(operands[i].node), " -> node", at);
      const bool several = device.context().shape(graph.node(operands[i].node).shape).IsTuple();
      if (operands.size() > 1 || several) {
        out += " [label=\"";
        if (operands.size() > 1) StrAppend(&out, "i=", i);
        if (several) StrAppend(&out, operands.size() > 1 ? "," : "", "o=", operands[i].output);
        out += "\"]";
      }
      out += "\n";
    }
  }
  return out + "}\n";
}

std::string NodeString(DeviceState& device, NodeId id, bool places) {
  std::string out = StrCat("[] ", SymbolOf(device.graph().node(id).op));
  for (const Tag& tag : TagsOf(device, id, {})) {
    if (!places && (tag.first == "scope" || tag.first == "location")) continue;
    StrAppend(&out, ", ", tag.first, "=", tag.second);
    if (tag.first == "xla_shape") out += ", dynamic_dims: ()";
  }
  return out;
}

PendingSubgraph CollectSubgraphOfTensors(absl::Span<const Tensor> tensors, const SubgraphOptions& options) {
  std::vector<TensorData*> data;
  DeviceState* device = nullptr;
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    device = t.device();
    data.push_back(t.impl()->data.get());
  }
  if (device == nullptr) return {};
  return CollectSubgraph(*device, data, options);
}

std::string TensorsToString(absl::Span<const Tensor> tensors, const IrTextOptions& options) {
  if (tensors.empty() || !tensors[0].defined()) return "IR {\n}\n";
  DeviceState& device = *tensors[0].device();
  DeviceLock lock(device.mutex());
  return GraphToString(device, CollectSubgraphOfTensors(tensors), options);
}

std::string TensorsDot(absl::Span<const Tensor> tensors, const IrTextOptions& options) {
  if (tensors.empty() || !tensors[0].defined()) return "digraph G {\n}\n";
  DeviceState& device = *tensors[0].device();
  DeviceLock lock(device.mutex());
  return GraphDot(device, CollectSubgraphOfTensors(tensors), options);
}

}  // namespace hlokit::lazy
