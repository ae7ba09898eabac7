// SPDX-License-Identifier: Apache-2.0
#include "passes/view/graph_document.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/text/literal_text.h"
#include "ir/text/printer.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/cost_key.h"
#include "passes/view/graph_groups.h"
#include "passes/view/graph_properties.h"
#include "passes/view/opcode_family.h"
#include "passes/view/shape_summary.h"

namespace hlokit {
namespace {

constexpr size_t kMaxAttributeText = 2000;  // bytes of all attributes of an instruction
constexpr size_t kMaxRemarkText = 8000;     // of all remarks on an instruction
constexpr size_t kMaxShapeText = 1000;
constexpr int64_t kMaxLiteralElements = 64;

// Strings by their position, "" first.
class StringTable {
 public:
  StringTable() { Add(""); }
  int64_t Add(std::string_view text) {
    const auto [found, added] = index_.try_emplace(std::string(text), static_cast<int64_t>(strings_.size()));
    if (added) strings_.emplace_back(text);
    return found->second;
  }
  const std::vector<std::string>& strings() const { return strings_; }

 private:
  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, int64_t> index_;
};

// Cuts a text after at most `limit` bytes, between characters.
std::string Shortened(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return StrCat(text, " ...");
}

std::string AttributesText(Instruction i) {
  std::string text;
  {
    TextWriter out(&text);
    std::string_view separator;
    for (const AttrValue value : i.attrs()) {
      // Callees and sharding have columns of their own.
      if (NamesComputations(value.attr) || value.attr == Attr::kSharding) continue;
      out << separator << InfoOf(value.attr).text << '=';
      PrintAttrValue(out, i.module(), value);
      separator = ", ";
    }
  }
  return Shortened(std::move(text), kMaxAttributeText);
}

std::string ShardingText(Instruction i) {
  const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
  if (!payload) return "";
  std::string text;
  TextWriter out(&text);
  PrintAttrValue(out, i.module(), {Attr::kSharding, *payload});
  out.Flush();
  return Shortened(std::move(text), kMaxAttributeText);
}

// Returns the number of a parameter or the value of a constant.
std::string PayloadText(Instruction i) {
  if (i.opcode() == Opcode::kParameter) return StrCat(i.parameter_number());
  if (i.opcode() != Opcode::kConstant) return "";
  LiteralTextOptions options;
  options.max_elements = kMaxLiteralElements;
  return Shortened(ToString(i.module().context(), i.literal_id(), options), kMaxAttributeText);
}

// Returns the bytes of all arrays in the shape; saturates.
int64_t ResultBytes(Shape shape) {
  // Elements of tuples may be shared: a short text can have very many leaves.
  if (!shape.IsTuple() || shape.leaf_count() > kMaxShownLeaves) return BufferBytes(shape);
  int64_t sum = 0;
  std::vector<Shape> pending = {shape};
  while (!pending.empty()) {
    const Shape s = pending.back();
    pending.pop_back();
    if (s.IsTuple()) {
      pending.insert(pending.end(), s.elements().begin(), s.elements().end());
    } else if (__builtin_add_overflow(sum, BufferBytes(s), &sum)) {
      return INT64_MAX;
    }
  }
  return sum;
}

class DocumentWriter {
 public:
  DocumentWriter(const Module& module, const GraphDocumentOptions& options, JsonWriter* json)
      : module_(module), options_(options), json_(*json), groups_(GroupInstructions(module)) {}

  void Run() {
    json_.BeginObject().Member("format", "hlokit-graph").Member("version", 1);
    json_.Member("module", module_.name()).Member("file", options_.file);
    json_.Member("replica_count", module_.header().replica_count);
    json_.Member("num_partitions", module_.header().num_partitions);
    json_.Member("whole_program_devices", DevicesOfWholeProgram(module_));
    if (!options_.device.empty()) json_.Member("device", options_.device);
    json_.Key("families").BeginArray();
    for (size_t k = 0; k < kOpcodeFamilies; ++k) json_.Value(ToString(static_cast<OpcodeFamily>(k)));
    json_.EndArray();
    if (!options_.causes.empty()) WriteList("causes", options_.causes);
    WriteComputations();
    WriteInstructions();
    WriteGroups();
    WriteList("strings", strings_.strings());
    json_.EndObject();
  }

 private:
  void WriteList(std::string_view key, const std::vector<std::string>& texts) {
    json_.Key(key).BeginArray();
    for (const std::string& text : texts) json_.Value(text);
    json_.EndArray();
  }

  void WriteColumn(std::string_view key, const std::function<int64_t(Instruction)>& value) {
    json_.Key(key).BeginArray();
    for (const InstructionId id : groups_.instructions) json_.Value(value(module_.instruction(id)));
    json_.EndArray();
  }

  void WriteComputations() {
    const std::vector<Computation> computations = module_.computations();
    computation_index_.assign(module_.computation_id_bound(), -1);
    json_.Key("computations").BeginObject();
    json_.Key("name").BeginArray();
    for (size_t k = 0; k < computations.size(); ++k) {
      computation_index_[computations[k].id().value] = static_cast<int64_t>(k);
      json_.Value(computations[k].name());
    }
    json_.EndArray().Key("size").BeginArray();
    for (const Computation c : computations) json_.Value(c.instruction_count());
    json_.EndArray().Key("root").BeginArray();
    for (const Computation c : computations) json_.Value(c.root().valid() ? Node(c.root()) : -1);
    json_.EndArray().Member("entry", computation_index_[module_.entry().id().value]).EndObject();
  }

  int64_t Node(Instruction i) const { return groups_.node_of[i.id().value]; }

  void WriteInstructions() {
    const CostAnalysis costs(module_);
    const GraphProperties properties = PropertiesOf(module_);
    json_.Key("instructions").BeginObject().Key("name").BeginArray();
    for (const InstructionId id : groups_.instructions) json_.Value(module_.instruction(id).name());
    json_.EndArray();
    WriteColumn("opcode", [&](Instruction i) { return strings_.Add(i.opcode_text()); });
    WriteColumn("family", [](Instruction i) { return static_cast<int64_t>(FamilyOf(i)); });
    WriteColumn("shape", [&](Instruction i) {
      const auto [found, added] = shapes_.try_emplace(i.shape().id().value, 0);
      if (added) found->second = strings_.Add(Shortened(ShapeSummary(i.shape()), kMaxShapeText));
      return found->second;
    });
    WriteColumn("operand_count", [](Instruction i) { return i.operand_count(); });
    json_.Key("operands").BeginArray();
    for (const InstructionId id : groups_.instructions) {
      const Instruction i = module_.instruction(id);
      for (const Instruction operand : i.operands()) json_.Value(Node(i) - Node(operand));
    }
    json_.EndArray();
    WriteColumn("attributes", [&](Instruction i) { return strings_.Add(AttributesText(i)); });
    WriteColumn("sharding", [&](Instruction i) { return strings_.Add(ShardingText(i)); });
    WriteColumn("payload", [&](Instruction i) { return strings_.Add(PayloadText(i)); });
    WriteColumn("op_name", [&](Instruction i) {
      const StringId op_name = i.metadata().op_name;
      return op_name.valid() ? strings_.Add(module_.context().str(op_name)) : 0;
    });
    WriteColumn("source", [&](Instruction i) {
      const std::string source = KeyOf(i, CostKey::kSourceLine);
      return source == "(none)" ? 0 : strings_.Add(source);
    });
    WriteColumn("flops", [&](Instruction i) { return costs.Of(i).flops; });
    WriteColumn("bytes", [&](Instruction i) { return costs.Of(i).bytes(); });
    WriteColumn("result_bytes", [](Instruction i) { return ResultBytes(i.shape()); });
    WriteColumn("flags", [&](Instruction i) { return int64_t{properties.flags[i.id().value]}; });
    json_.Member("peak_bytes", properties.peak_bytes);
    WriteSparse("live_bytes", [&](Instruction i) { return properties.live_bytes[i.id().value]; });
    if (!options_.seconds.empty()) {
      // Picoseconds: whole numbers are shorter.
      WriteSparse("time_ps", [&](Instruction i) {
        const double ps = 1e12 * options_.seconds[i.id().value];
        return ps < 9e18 ? static_cast<int64_t>(ps) : INT64_MAX;
      });
    }
    json_.Key("trip_count").BeginArray();
    for (const auto& [id, trips] : properties.trip_counts) {
      json_.BeginArray().Value(Node(module_.instruction(id))).Value(trips).EndArray();
    }
    json_.EndArray().Key("callees").BeginArray();
    for (const InstructionId id : groups_.instructions) {
      const Instruction i = module_.instruction(id);
      const std::vector<Computation> callees = i.called_computations();
      if (callees.empty()) continue;
      json_.BeginArray().Value(Node(i));
      for (const Computation c : callees) json_.Value(computation_index_[c.id().value]);
      json_.EndArray();
    }
    json_.EndArray();
    if (!options_.remarks.empty()) {
      WriteSparse("remarks", [&](Instruction i) {
        const std::string& lines = options_.remarks[i.id().value];
        return lines.empty() ? int64_t{0} : strings_.Add(Shortened(lines, kMaxRemarkText));
      });
    }
    if (!options_.status.empty()) WriteDifferences();
    json_.EndObject();
  }

  // Writes [[node, value], ...] of the values that are not 0.
  void WriteSparse(std::string_view key, const std::function<int64_t(Instruction)>& value) {
    json_.Key(key).BeginArray();
    for (const InstructionId id : groups_.instructions) {
      const Instruction i = module_.instruction(id);
      if (const int64_t v = value(i); v != 0) json_.BeginArray().Value(Node(i)).Value(v).EndArray();
    }
    json_.EndArray();
  }

  void WriteDifferences() {
    WriteSparse("status", [&](Instruction i) { return static_cast<int64_t>(options_.status[i.id().value]); });
    WriteSparse("differences", [&](Instruction i) {
      return strings_.Add(Shortened(options_.differences[i.id().value], kMaxAttributeText));
    });
    if (options_.other == nullptr) return;
    const std::vector<int32_t> numbers = NumberInstructions(*options_.other);
    WriteColumn("counterpart", [&](Instruction i) {
      const InstructionId counterpart = options_.counterparts[i.id().value];
      return int64_t{counterpart.valid() ? numbers[counterpart.value] : -1};
    });
  }

  void WriteGroups() {
    json_.Key("parent").BeginArray();
    for (const int32_t parent : groups_.parent) json_.Value(parent);
    json_.EndArray().Key("groups").BeginObject().Key("kind").BeginArray();
    for (const GraphGroup& g : groups_.groups) json_.Value(strings_.Add(ToString(g.kind)));
    json_.EndArray().Key("label").BeginArray();
    for (const GraphGroup& g : groups_.groups) json_.Value(strings_.Add(g.label));
    json_.EndArray().EndObject();
  }

  const Module& module_;
  const GraphDocumentOptions& options_;
  JsonWriter& json_;
  const GraphGroups groups_;
  StringTable strings_;
  std::vector<int64_t> computation_index_;         // by ComputationId
  absl::flat_hash_map<uint32_t, int64_t> shapes_;  // texts of shapes, by id
};

}  // namespace

void WriteGraphDocument(const Module& module, const GraphDocumentOptions& options, JsonWriter* json) {
  DocumentWriter(module, options, json).Run();
}

std::string GraphsJson(const std::vector<GraphSource>& graphs) {
  std::string text;
  TextWriter out(&text);
  JsonWriter json(&out, JsonLayout::kCompact);
  json.BeginArray();
  for (const GraphSource& graph : graphs) WriteGraphDocument(*graph.module, graph.options, &json);
  json.EndArray();
  out.Flush();
  return text;
}

}  // namespace hlokit
