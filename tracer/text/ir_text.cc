// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/ir_text.h"

#include <mutex>
#include <utility>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/grad_function.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/tiling.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

using Tag = std::pair<std::string, std::string>;

// Returns torch's number of an element type, as in dumps.
int AtenType(ElementType t) {
  static constexpr std::pair<ElementType, int> kNumbers[] = {
      {ElementType::kU8, 0},  {ElementType::kS8, 1},    {ElementType::kS16, 2},   {ElementType::kS32, 3},
      {ElementType::kS64, 4}, {ElementType::kF16, 5},   {ElementType::kF32, 6},   {ElementType::kF64, 7},
      {ElementType::kC64, 9}, {ElementType::kC128, 10}, {ElementType::kPred, 11}, {ElementType::kBF16, 15}};
  for (const auto& [type, number] : kNumbers) {
    if (type == t) return number;
  }
  return -1;
}

std::string AttrToString(Op op, const EncodedArg& arg) {
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
      return FormatDouble(arg.scalar().ToDouble(), 6);
    case ArgTag::kInts:
      out = "(";
      for (uint32_t i = 0; i < arg.count; ++i) StrAppend(&out, i == 0 ? "" : ", ", arg.payload[i]);
      return out + ")";
    case ArgTag::kFloats:
      out = "(";
      for (uint32_t i = 0; i < arg.count; ++i) StrAppend(&out, i == 0 ? "" : ", ", FormatDouble(arg.float_at(i), 6));
      return out + ")";
    case ArgTag::kString:
      return arg.string();
    case ArgTag::kDtype:
      // A cast names the type.
      return op == Op::cast ? std::string(ToString(arg.dtype())) : StrCat(AtenType(arg.dtype()));
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
  for (size_t i = 0; i < args.size() && i < names.size(); ++i) {
    const ArgSpec& spec = schema.args[i];
    if (spec.type == ArgType::kTensor || spec.type == ArgType::kTensorList || names[i] == "-") continue;
    if (args[i].tag == ArgTag::kOperand) continue;
    // An absent number operand is not printed as an attribute.
    if (args[i].tag == ArgTag::kNone && spec.type == ArgType::kScalar) continue;
    tags.emplace_back(names[i], AttrToString(node.op, args[i]));
  }
  return tags;
}

// Returns, by position in the post-order, the number of the root that is this node, the last one if there are several;
// or -1.
std::vector<int64_t> RootNumbers(DeviceState& device, const PendingSubgraph& slice) {
  std::vector<int64_t> numbers(slice.order.size(), -1);
  for (size_t i = 0; i < slice.roots.size(); ++i) {
    numbers[device.graph().Position(slice.roots[i].node)] = static_cast<int64_t>(i);
  }
  return numbers;
}

}  // namespace

std::string GraphToString(DeviceState& device, const PendingSubgraph& slice, const IrTextOptions& options) {
  const Graph& graph = device.graph();
  const std::vector<int64_t> root_numbers = RootNumbers(device, slice);
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
    for (const Tag& tag : TagsOf(device, id, options)) StrAppend(&out, ", ", tag.first, "=", tag.second);
    if (root_numbers[at] >= 0) StrAppend(&out, ", ROOT=", root_numbers[at]);
    out += "\n";
  }
  return out + "}\n";
}

std::string GraphDot(DeviceState& device, const PendingSubgraph& slice, const IrTextOptions& options) {
  const Graph& graph = device.graph();
  const std::vector<int64_t> root_numbers = RootNumbers(device, slice);
  std::string out = "digraph G {\n";
  for (size_t at = 0; at < slice.order.size(); ++at) {
    const NodeId id = slice.order[at];
    const NodeRecord& node = graph.node(id);
    StrAppend(&out, "  node", at, " [label=\"", SymbolOf(node.op), "\\n", ToString(device.context().shape(node.shape)));
    for (const Tag& tag : TagsOf(device, id, options)) {
      std::string value = tag.second;
      if (value.size() > 63) {
        value.resize(64);
        value += "...";
      }
      StrAppend(&out, "\\n", tag.first, "=", value);
    }
    if (root_numbers[at] >= 0) StrAppend(&out, "\\nROOT=", root_numbers[at]);
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
