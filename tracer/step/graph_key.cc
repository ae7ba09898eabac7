// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/graph_key.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "tracer/graph/schema.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

// Incremented when lowerings or the serialized form of programs change.
constexpr std::string_view kProgramVersion = "3";

// Returns digests of op names, by Op: process-independent identity of ops.
const std::vector<uint64_t>& OpDigests() {
  static const std::vector<uint64_t> digests = [] {
    std::vector<uint64_t> v(kOpCount);
    for (size_t i = 0; i < kOpCount; ++i) v[i] = DigestOf(SchemaOf(static_cast<Op>(i)).full_name()).low;
    return v;
  }();
  return digests;
}

// Returns a digest of the op table: programs of a different table are not compatible.
const std::string& OpTableDigest() {
  static const std::string digest = [] {
    std::string rows;
    for (size_t i = 0; i < kOpCount; ++i) StrAppend(&rows, InfoOf(static_cast<Op>(i)).schema_text, "\n");
    return ToString(DigestOf(rows));
  }();
  return digest;
}

// Collects numbers and texts as bytes that do not depend on the process.
class ContentsWriter {
 public:
  void Number(uint64_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof(v)); }
  void Text(std::string_view s) {
    Number(s.size());
    bytes_.append(s);
  }
  void Words(absl::Span<const int64_t> words) {
    bytes_.append(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int64_t));
  }
  void Reserve(size_t size) { bytes_.reserve(size); }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Returns scopes and source lines of the nodes. They are part of a stored program in debug mode, as its metadata.
std::string MetadataContents(DeviceState& device, const PendingSubgraph& slice) {
  ContentsWriter out;
  for (NodeId id : slice.order) {
    const NodeRecord& node = device.graph().node(id);
    out.Text(device.context().str(StringId(node.scope)));
    out.Number(node.frame != 0);
    if (node.frame == 0) continue;
    const SourceFrame& frame = device.frames()[node.frame - 1];
    out.Text(frame.file);
    out.Number(static_cast<uint64_t>(frame.line));
  }
  return out.Take();
}

}  // namespace

absl::Span<const uint32_t> KeyOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options) {
  const Graph& graph = device.graph();
  std::vector<uint32_t>& words = device.key_words();
  const size_t most =
      4 + slice.order.size() * 4 + 2 * graph.operand_count() + 2 * slice.roots.size() + slice.donated.size();
  if (words.size() < most) words.resize(most);
  uint32_t* at = words.data();
  *at++ = options.force;
  for (NodeId id : slice.order) {
    const NodeRecord& node = graph.node(id);
    *at++ = static_cast<uint32_t>(node.op) | static_cast<uint32_t>(node.operand_count) << 16;
    *at++ = node.attrs.value;
    if (node.op == Op::device_data) {
      *at++ = node.shape.value;
      *at++ = graph.leaf(id)->parameter_number;
      continue;
    }
    if (node.op == Op::constant) *at++ = node.shape.value;
    for (const NodeOutput& operand : graph.operands(id)) {
      *at++ = graph.Position(operand.node);
      *at++ = operand.output;
    }
  }
  *at++ = 0xffffffffu;
  for (const NodeOutput& root : slice.roots) {
    *at++ = graph.Position(root.node);
    *at++ = root.output;
  }
  *at++ = 0xffffffffu;
  for (int64_t i : slice.donated) *at++ = static_cast<uint32_t>(i);
  return {words.data(), static_cast<size_t>(at - words.data())};
}

std::string ContentsOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options) {
  const Graph& graph = device.graph();
  const std::vector<uint64_t>& ops = OpDigests();
  absl::flat_hash_map<uint32_t, std::string> shapes;
  ContentsWriter out;
  out.Reserve(slice.order.size() * 128);
  const auto number = [&](uint64_t v) { out.Number(v); };
  const auto reference = [&](const NodeOutput& ref) {
    number(static_cast<uint64_t>(graph.Position(ref.node)) << 32 | ref.output);
  };
  number(options.force);
  number(slice.order.size());
  for (NodeId id : slice.order) {
    const NodeRecord& node = graph.node(id);
    number(ops[static_cast<size_t>(node.op)]);
    const absl::Span<const int64_t> attrs = device.context().list(node.attrs);
    number(static_cast<uint64_t>(attrs.size()) << 32 | node.operand_count);
    out.Words(attrs);
    if (node.op == Op::device_data) number(graph.leaf(id)->parameter_number);
    if (node.op == Op::device_data || node.op == Op::constant) {
      std::string& shape = shapes[node.shape.value];
      if (shape.empty()) shape = ToString(device.context().shape(node.shape));
      out.Text(shape);
    }
    for (const NodeOutput& operand : graph.operands(id)) reference(operand);
  }
  number(slice.roots.size());
  for (const NodeOutput& root : slice.roots) reference(root);
  number(slice.donated.size());
  for (int64_t i : slice.donated) number(static_cast<uint64_t>(i));
  return out.Take();
}

Digest HashOf(DeviceState& device, const PendingSubgraph& slice, const SubgraphOptions& options) {
  return DigestOf(ContentsOf(device, slice, options));
}

runtime::CompilationCacheKey CompilationCacheKeyOf(DeviceState& device, const PendingSubgraph& slice,
                                                   const SubgraphOptions& options) {
  const TracerOptions& tracer = device.tracer()->options();
  return {ContentsOf(device, slice, options) + (tracer.debug ? MetadataContents(device, slice) : std::string()),
          {{"program version", std::string(kProgramVersion)},
           {"ops", OpTableDigest()},
           {"PJRT_DEVICE", tracer.client.platform},
           {"pipeline", tracer.client.PipelineText()},
           {"XLA_PARAMETER_WRAPPING_THREADSHOLD", StrCat(tracer.parameter_wrapping_threshold)},
           {"XLA_IR_DEBUG", tracer.debug ? "1" : "0"}},
          {}};
}

}  // namespace hlokit::lazy
