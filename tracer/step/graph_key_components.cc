// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/graph_key_components.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/digest/digest.h"
#include "ir/types/literal.h"
#include "tracer/graph/encoded_args.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/schema.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

class Bytes {
 public:
  void Number(uint64_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof(v)); }
  void Text(std::string_view s) {
    Number(s.size());
    bytes_.append(s);
  }
  Digest digest() const { return DigestOf(bytes_); }

 private:
  std::string bytes_;
};

// Writes leaves at their uses, by kind, and numbers other nodes without them, so that it makes no difference if a
// number is a constant, a node per use, or a parameter, nor which parameter.
class FormWriter {
 public:
  FormWriter(DeviceState& device, const PendingSubgraph& slice)
      : device_(device),
        graph_(device.graph()),
        slice_(slice),
        places_(slice.order.size()),
        parameters_(slice.inputs.size(), kUnseen) {}

  runtime::GraphKeyComponents Write(const SubgraphOptions& options) {
    bare_.Number(options.force);
    uint32_t place = 0;
    for (const NodeId id : slice_.order) {
      const NodeRecord& node = graph_.node(id);
      if (IsLeaf(node)) continue;
      places_[graph_.Position(id)] = place++;
      bare_.Text(SchemaOf(node.op).full_name());
      const absl::Span<const int64_t> attrs = device_.context().list(node.attrs);
      bare_.Number(attrs.size());
      for (const int64_t word : attrs) bare_.Number(static_cast<uint64_t>(word));
      bare_.Number(node.operand_count);
      for (const NodeOutput& operand : graph_.operands(id)) Reference(operand);
      lines_.Text(device_.context().str(StringId(node.scope)));
      const SourceFrame frame = node.frame == 0 ? SourceFrame() : device_.frames()[node.frame - 1];
      lines_.Text(frame.file);
      lines_.Number(static_cast<uint64_t>(frame.line));
    }
    bare_.Number(slice_.roots.size());
    for (const NodeOutput& root : slice_.roots) Reference(root);
    for (const int64_t i : slice_.donated) donated_.Number(parameters_[static_cast<size_t>(i)]);
    const TracerOptions& tracer = device_.tracer()->options();
    const auto option = [](bool on) { return std::string(on ? "1" : "0"); };
    return {bare_.digest(),
            {{"XLA_NO_SPECIAL_SCALARS", option(tracer.no_special_scalars), numbers_.digest()},
             {"XLA_ENABLE_PARAM_ALIASING", option(tracer.donate), donated_.digest()},
             {"XLA_IR_DEBUG", option(tracer.debug), tracer.debug ? lines_.digest() : Digest()}}};
  }

 private:
  static constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();
  enum Kind : uint64_t { kNode, kNumber, kParameter };

  static bool IsLeaf(const NodeRecord& node) { return node.op == Op::device_data || node.op == Op::constant; }

  // Returns the value of a number that is a constant or can be one; nullopt for other leaves.
  std::optional<double> NumberOf(NodeId id) const {
    const NodeRecord& node = graph_.node(id);
    if (node.op == Op::constant) return DecodeArgs(device_.context().list(node.attrs))[0].scalar().ToDouble();
    const Shape shape = device_.context().shape(node.shape);
    const runtime::DeviceBuffer& buffer = *graph_.leaf(id);
    if (shape.rank() != 0 || !buffer.read_only || !buffer.IsReady()) return std::nullopt;
    const double value = LoadScalar(shape.element_type(), buffer.literal().data()).ToDouble();
    if (value != 0 && value != 1 && value != -1) return std::nullopt;
    return value;
  }

  void Reference(const NodeOutput& ref) {
    const NodeRecord& node = graph_.node(ref.node);
    if (!IsLeaf(node)) {
      bare_.Number(kNode);
      bare_.Number(static_cast<uint64_t>(places_[graph_.Position(ref.node)]) << 32 | ref.output);
      return;
    }
    const std::string shape = ToString(device_.context().shape(node.shape));
    if (const std::optional<double> number = NumberOf(ref.node)) {
      bare_.Number(kNumber);
      bare_.Text(shape);
      uint64_t bits;
      std::memcpy(&bits, &*number, sizeof(bits));
      bare_.Number(bits);
      numbers_.Number(node.op == Op::constant);
      return;
    }
    uint32_t& parameter = parameters_[graph_.leaf(ref.node)->parameter_number];
    if (parameter == kUnseen) parameter = parameter_count_++;
    bare_.Number(kParameter);
    bare_.Text(shape);
    bare_.Number(parameter);
  }

  DeviceState& device_;
  const Graph& graph_;
  const PendingSubgraph& slice_;
  std::vector<uint32_t> places_;      // by position in the post-order: position without leaves
  std::vector<uint32_t> parameters_;  // by number: number without scalars
  uint32_t parameter_count_ = 0;
  Bytes bare_, numbers_, donated_, lines_;
};

}  // namespace

runtime::GraphKeyComponents GraphKeyComponentsOf(DeviceState& device, const PendingSubgraph& slice,
                                                 const SubgraphOptions& options) {
  return FormWriter(device, slice).Write(options);
}

}  // namespace hlokit::lazy
