// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/module_statistics.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/double_text.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module.h"

namespace hlokit {
namespace {

// Shapes with longer text are described instead.
constexpr int64_t kMaxShapeText = 1000;

// Properties of a shape. Those of a tuple are computed from those of its elements, so that nested tuples cost no more
// than their number.
struct ShapeFacts {
  int64_t bytes = 0;
  int64_t text_size = 0;    // at least that of the text
  int64_t count = 0;        // instructions with this shape
  int64_t occurrences = 0;  // occurrences in the results of instructions, including within tuples
};

struct Tally {
  int64_t count = 0;
  int64_t bytes = 0;
  void Add(int64_t n, int64_t b) {
    count = SaturatingAdd(count, n);
    bytes = SaturatingAdd(bytes, b);
  }
};

void SortCounts(std::vector<ModuleStatistics::Count>* counts) {
  std::sort(counts->begin(), counts->end(),
            [](const auto& a, const auto& b) { return a.count != b.count ? a.count > b.count : a.name < b.name; });
}

std::vector<ModuleStatistics::Count> ToCounts(const absl::flat_hash_map<std::string, Tally>& tallies) {
  std::vector<ModuleStatistics::Count> counts;
  for (const auto& [name, tally] : tallies) counts.push_back({name, tally.count, tally.bytes});
  SortCounts(&counts);
  return counts;
}

// Longest paths among nodes numbered from 0, with an explicit stack. Cycles are cut.
class LongestChains {
 public:
  explicit LongestChains(size_t nodes) : depth_(nodes, kUnknown) {}

  // Returns the nodes on the longest path that ends in `start`; `dependencies(node, visit)` calls `visit` with each
  // dependency.
  template <typename Dependencies>
  int64_t DepthOf(uint32_t start, const Dependencies& dependencies) {
    if (depth_[start] > kInProgress) return depth_[start];
    stack_.assign(1, start);
    while (!stack_.empty()) {
      const uint32_t at = stack_.back();
      if (depth_[at] > kInProgress) {
        stack_.pop_back();
        continue;
      }
      const bool second_visit = depth_[at] == kInProgress;
      depth_[at] = kInProgress;
      int64_t longest = 0;
      const size_t waiting = stack_.size();
      dependencies(at, [&](uint32_t dependency) {
        if (depth_[dependency] == kUnknown && !second_visit) stack_.push_back(dependency);
        longest = std::max(longest, depth_[dependency]);
      });
      if (stack_.size() != waiting) continue;
      depth_[at] = longest + 1;
      stack_.pop_back();
    }
    return depth_[start];
  }

 private:
  static constexpr int64_t kUnknown = -1;
  static constexpr int64_t kInProgress = 0;
  std::vector<int64_t> depth_;
  std::vector<uint32_t> stack_;
};

class Collector {
 public:
  explicit Collector(const Module& module)
      : module_(module), facts_(module.context().shapes.size()), chains_(module.instruction_id_bound()) {
    // Elements are interned before their tuples.
    for (uint32_t i = 0; i < facts_.size(); ++i) {
      const Shape shape = module.context().shape(ShapeId(i));
      ShapeFacts& facts = facts_[i];
      if (shape.IsTuple()) {
        for (Shape element : shape.elements()) {
          facts.bytes = SaturatingAdd(facts.bytes, facts_[element.id().value].bytes);
          facts.text_size = SaturatingAdd(facts.text_size, facts_[element.id().value].text_size + 2);
        }
      } else {
        facts.bytes = ByteSize(shape);
        facts.text_size = 16 + 24 * shape.rank();
      }
    }
  }

  ModuleStatistics Collect();

 private:
  int64_t BytesOf(Instruction i) const { return facts_[i.shape().WithoutLayout().id().value].bytes; }
  void CountInstruction(Instruction i);
  void CountConstant(Instruction i, int64_t bytes);
  void CountEntry();
  void CountShapes();
  void ComputeDepths();

  const Module& module_;
  std::vector<ShapeFacts> facts_;  // by the id of the shape without layout
  LongestChains chains_;
  Tally opcodes_[kOpcodeCount + 1];
  absl::flat_hash_map<std::string, Tally> unknown_opcodes_, fusion_kinds_, targets_;
  ModuleStatistics result_;
};

void Collector::CountConstant(Instruction i, int64_t bytes) {
  const bool elided = i.literal().elided;
  ++result_.constants;
  result_.constant_bytes = SaturatingAdd(result_.constant_bytes, bytes);
  if (elided) {
    ++result_.elided_constants;
    result_.elided_constant_bytes = SaturatingAdd(result_.elided_constant_bytes, bytes);
  }
  if (bytes > result_.largest_constant_bytes || result_.largest_constant.empty()) {
    result_.largest_constant_bytes = bytes;
    result_.largest_constant = std::string(i.name());
  }
}

void Collector::CountInstruction(Instruction i) {
  ++result_.instructions;
  result_.operands += i.operand_count();
  result_.attributes += static_cast<int64_t>(i.attrs().size());
  ShapeFacts& facts = facts_[i.shape().WithoutLayout().id().value];
  ++facts.count;
  opcodes_[static_cast<size_t>(i.opcode())].Add(1, facts.bytes);
  // Other opcodes have no further statistics.
  if (i.opcode() == Opcode::kConstant) CountConstant(i, facts.bytes);
  if (i.opcode() == Opcode::kUnknown) unknown_opcodes_[std::string(i.opcode_text())].Add(1, facts.bytes);
  if (i.opcode() == Opcode::kCustomCall) {
    targets_[std::string(i.string_attr(Attr::kCustomCallTarget))].Add(1, facts.bytes);
  }
  if (i.opcode() == Opcode::kFusion) {
    const uint32_t kind = i.payload(Attr::kFusionKind).value_or(0);
    const absl::Span<const std::string_view> texts = EnumTexts(EnumType::kFusionKind);
    fusion_kinds_[kind < texts.size() ? std::string(texts[kind]) : "?"].Add(1, facts.bytes);
  }
}

void Collector::CountEntry() {
  const Computation entry = module_.entry();
  if (!entry.valid()) return;
  result_.entry_instructions = entry.instruction_count();
  result_.parameters = entry.parameter_count();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) {
    const Instruction parameter = entry.parameter(i);
    if (parameter.valid()) {
      result_.parameter_bytes = SaturatingAdd(result_.parameter_bytes, BytesOf(parameter));
    }
  }
  if (entry.root().valid()) {
    result_.outputs = entry.root().shape().leaf_count();
    result_.output_bytes = BytesOf(entry.root());
  }
  result_.aliased_outputs = static_cast<int64_t>(module_.header().input_output_alias.size());
}

void Collector::CountShapes() {
  const Context& context = module_.context();
  std::vector<Tally> types(kElementTypeCount);
  // Tuples before their elements.
  for (size_t i = facts_.size(); i-- > 0;) {
    ShapeFacts& facts = facts_[i];
    const Shape shape = context.shape(ShapeId(static_cast<uint32_t>(i)));
    if (facts.count > 0) {
      ++result_.distinct_shapes;
      result_.shapes.push_back({facts.text_size <= kMaxShapeText
                                    ? ToString(shape, /*with_layout=*/false)
                                    : StrCat("tuple of ", shape.tuple_size(), " with ", shape.leaf_count(), " leaves"),
                                facts.count, SaturatingMultiply(facts.bytes, facts.count)});
    }
    const int64_t occurs = SaturatingAdd(facts.count, facts.occurrences);
    if (occurs == 0) continue;
    if (!shape.IsTuple()) {
      types[static_cast<size_t>(shape.element_type())].Add(occurs, SaturatingMultiply(facts.bytes, occurs));
      continue;
    }
    for (Shape element : shape.elements()) {
      int64_t& of_element = facts_[element.id().value].occurrences;
      of_element = SaturatingAdd(of_element, occurs);
    }
  }
  SortCounts(&result_.shapes);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].count == 0) continue;
    result_.element_types.push_back({std::string(kElementTypeInfo[i].text), types[i].count, types[i].bytes});
  }
  SortCounts(&result_.element_types);
}

void Collector::ComputeDepths() {
  const auto dependencies = [&](uint32_t id, const auto& visit) {
    const Instruction i = module_.instruction(InstructionId(id));
    for (Instruction operand : i.operands()) visit(operand.id().value);
    for (int64_t predecessor : i.list_attr(Attr::kControlPredecessors)) visit(static_cast<uint32_t>(predecessor));
  };
  std::vector<std::vector<uint32_t>> callees(module_.computation_id_bound());
  for (Computation c : module_.computations()) {
    int64_t depth = 0;
    for (Instruction i : c.instructions()) {
      depth = std::max(depth, chains_.DepthOf(i.id().value, dependencies));
      const size_t before = callees[c.id().value].size();
      i.ForEachCallee([&](Computation callee) { callees[c.id().value].push_back(callee.id().value); });
      if (callees[c.id().value].size() != before) ++result_.call_sites;
    }
    if (depth > result_.depth) {
      result_.depth = depth;
      result_.deepest_computation = std::string(c.name());
    }
    if (c.is_entry()) result_.entry_depth = depth;
  }
  LongestChains calls(module_.computation_id_bound());
  const auto called = [&](uint32_t id, const auto& visit) {
    for (uint32_t callee : callees[id]) visit(callee);
  };
  for (Computation c : module_.computations()) {
    result_.call_depth = std::max(result_.call_depth, calls.DepthOf(c.id().value, called));
  }
}

ModuleStatistics Collector::Collect() {
  result_.name = std::string(module_.name());
  for (Computation c : module_.computations()) {
    ++result_.computations;
    for (Instruction i : c.instructions()) CountInstruction(i);
  }
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    if (opcodes_[i].count == 0) continue;
    result_.opcodes.push_back({std::string(ToString(static_cast<Opcode>(i))), opcodes_[i].count, opcodes_[i].bytes});
  }
  for (const auto& [name, tally] : unknown_opcodes_) result_.opcodes.push_back({name, tally.count, tally.bytes});
  SortCounts(&result_.opcodes);
  result_.fusion_kinds = ToCounts(fusion_kinds_);
  result_.custom_call_targets = ToCounts(targets_);
  CountEntry();
  CountShapes();
  ComputeDepths();
  return std::move(result_);
}

void AppendTable(std::string* out, std::string_view title, const std::vector<ModuleStatistics::Count>& rows,
                 size_t top) {
  if (rows.empty()) return;
  constexpr size_t kMaxName = 100;
  StrAppend(out, "\n     count        bytes  ", title, "\n");
  for (size_t i = 0; i < rows.size() && i < top; ++i) {
    const std::string& name = rows[i].name;
    char numbers[64];
    std::snprintf(numbers, sizeof(numbers), "%10lld %12s  ", static_cast<long long>(rows[i].count),
                  HumanBytes(rows[i].bytes).c_str());
    StrAppend(out, std::string_view(numbers), std::string_view(name).substr(0, kMaxName),
              name.size() > kMaxName ? "..." : "", "\n");
  }
  if (rows.size() > top) StrAppend(out, "       ...                ", rows.size() - top, " more\n");
}

}  // namespace

ModuleStatistics CollectStatistics(const Module& module) { return Collector(module).Collect(); }

std::string HumanBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= 1024; value >= 1024; value /= 1024) ++unit;
  return StrCat(FormatFixed(value, 1), " ", kUnits[unit]);
}

std::string RenderText(const ModuleStatistics& s, size_t top) {
  std::string out;
  StrAppend(&out, "module ", s.name, "\n");
  StrAppend(&out, "  computations  ", s.computations, "  (", s.call_sites, " call sites, ", s.call_depth, " deep)\n");
  StrAppend(&out, "  instructions  ", s.instructions, "  (", s.entry_instructions, " in the entry computation)\n");
  StrAppend(&out, "  operands      ", s.operands, "\n");
  StrAppend(&out, "  depth         ", s.depth, "  (in ", s.deepest_computation, "; ", s.entry_depth,
            " in the entry)\n");
  StrAppend(&out, "  parameters    ", s.parameters, "  ", HumanBytes(s.parameter_bytes), "\n");
  StrAppend(&out, "  outputs       ", s.outputs, "  ", HumanBytes(s.output_bytes), "  (", s.aliased_outputs,
            " aliased)\n");
  StrAppend(&out, "  constants     ", s.constants, "  ", HumanBytes(s.constant_bytes), "  (", s.elided_constants,
            " elided: ", HumanBytes(s.elided_constant_bytes), ")\n");
  if (s.constants > 0) {
    StrAppend(&out, "  largest       ", s.largest_constant, "  ", HumanBytes(s.largest_constant_bytes), "\n");
  }
  StrAppend(&out, "  shapes        ", s.distinct_shapes, "\n");
  AppendTable(&out, "opcode", s.opcodes, top);
  AppendTable(&out, "element type", s.element_types, top);
  AppendTable(&out, "shape", s.shapes, top);
  AppendTable(&out, "fusion kind", s.fusion_kinds, top);
  AppendTable(&out, "custom call target", s.custom_call_targets, top);
  return out;
}

}  // namespace hlokit
