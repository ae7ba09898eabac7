// SPDX-License-Identifier: Apache-2.0
#include "passes/analysis/memory.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "ir/core/saturating.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/dataflow_analysis.h"

namespace hlokit {
namespace {

constexpr uint32_t kNoBuffer = 0xffffffffu;

// Returns true if the callees have buffers of their own.
bool RunsComputations(Instruction i) { return RunsCallees(i.opcode()); }

// Operands whose buffers the result may reuse; with `all`, each of them in turn.
struct Reuse {
  int64_t first = 0;
  int64_t count = 0;
};

Reuse ReuseOf(Instruction i) {
  const Opcode opcode = i.opcode();
  if (HasTrait(opcode, kElementwise)) return {0, i.operand_count()};
  if (OpcodeSet{Opcode::kDynamicUpdateSlice, Opcode::kWhile}.Contains(opcode)) return {0, 1};
  if (opcode == Opcode::kScatter) return {0, (i.operand_count() - 1) / 2};
  if (opcode == Opcode::kFusion) {
    // A fusion that updates in place.
    const Computation body = i.computation_attr(Attr::kCalls);
    const Instruction root = body.valid() ? body.root() : Instruction();
    if (root.valid() && root.opcode() == Opcode::kDynamicUpdateSlice &&
        root.operand(0).opcode() == Opcode::kParameter) {
      return {root.operand(0).parameter_number(), 1};
    }
  }
  return {};
}

// Returns, per leaf of the entry's parameters, whether input_output_alias or buffer_donor of the header allows reuse.
std::vector<std::vector<uint8_t>> ReusableArguments(const Module& module) {
  std::vector<std::vector<uint8_t>> reusable;
  const Computation entry = module.entry();
  for (int64_t p = 0; p < entry.parameter_count(); ++p) {
    reusable.emplace_back(static_cast<size_t>(entry.parameter(p).shape().leaf_count()), 0);
  }
  const auto mark = [&](int64_t parameter, ListId index) {
    if (parameter < 0 || parameter >= static_cast<int64_t>(reusable.size())) return;
    Shape shape = entry.parameter(parameter).shape();
    int64_t leaf = 0;
    for (int64_t k : module.context().list(index)) {
      if (!shape.IsTuple() || k < 0 || k >= shape.tuple_size()) return;
      for (int64_t before = 0; before < k; ++before) leaf += shape.element(before).leaf_count();
      shape = shape.element(k);
    }
    for (int64_t n = 0; n < shape.leaf_count(); ++n) reusable[parameter][static_cast<size_t>(leaf + n)] = 1;
  };
  for (const InputOutputAlias& alias : module.header().input_output_alias) mark(alias.parameter, alias.parameter_index);
  for (const BufferDonor& donor : module.header().buffer_donor) mark(donor.parameter, donor.parameter_index);
  return reusable;
}

// Assigns the values of a computation to buffers, in the order in which its instructions run.
class BufferAssigner {
 public:
  BufferAssigner(Computation computation, absl::Span<const InstructionId> order, const DataflowAnalysis& flow)
      : module_(computation.module()),
        flow_(flow),
        end_(static_cast<int32_t>(order.size()) - 1),
        last_use_(flow.values().size(), -1),
        is_result_(flow.values().size(), 0),
        buffer_of_(flow.values().size(), kNoBuffer) {
    for (int32_t position = 0; position <= end_; ++position) {
      const Instruction i = module_.instruction(order[static_cast<size_t>(position)]);
      if (HasTrait(i.opcode(), kForwards)) continue;
      for (Instruction operand : i.operands()) {
        for (uint32_t value : flow.ValuesOf(operand)) last_use_[value] = position;
      }
    }
    for (uint32_t value : flow.ValuesOf(computation.root())) {
      last_use_[value] = end_;
      is_result_[value] = 1;
    }
    if (computation.is_entry()) reusable_ = ReusableArguments(module_);
  }

  void Assign(Instruction i, int32_t position);

  std::vector<LiveBuffer> buffers;

 private:
  // Gives the value at a leaf of the result of `i` the buffer of an operand that ends here, if there is one.
  bool ReuseOperand(Instruction i, size_t leaf, uint32_t value, const LiveBuffer& buffer);

  const Module& module_;
  const DataflowAnalysis& flow_;
  const int32_t end_;                           // the last position
  std::vector<int32_t> last_use_;               // position, by value
  std::vector<uint8_t> is_result_;              // by value
  std::vector<uint32_t> buffer_of_;             // by value
  std::vector<std::vector<uint8_t>> reusable_;  // by argument and leaf
  absl::flat_hash_set<uint32_t> pinned_;        // arguments that are live throughout
};

void BufferAssigner::Assign(Instruction i, int32_t position) {
  const absl::Span<const uint32_t> values = flow_.ValuesOf(i);
  for (size_t leaf = 0; leaf < values.size(); ++leaf) {
    const uint32_t value = values[leaf];
    LiveBuffer buffer{
        i.id(),   static_cast<int64_t>(leaf),          BufferBytes(flow_.values()[value].shape), BufferKind::kTemporary,
        position, std::max(position, last_use_[value])};
    if (i.opcode() == Opcode::kParameter) {
      buffer.kind = BufferKind::kArgument;
      buffer.begin = 0;
      const auto number = static_cast<size_t>(i.parameter_number());
      const bool may_end = number < reusable_.size() && leaf < reusable_[number].size() && reusable_[number][leaf];
      if (!may_end) {
        buffer.end = end_;
        pinned_.insert(static_cast<uint32_t>(buffers.size()));
      }
    } else if (i.opcode() == Opcode::kConstant) {
      buffer.kind = BufferKind::kConstant;
    } else {
      if (ReuseOperand(i, leaf, value, buffer)) continue;
      if (is_result_[value]) buffer.kind = BufferKind::kResult;
    }
    buffer_of_[value] = static_cast<uint32_t>(buffers.size());
    buffers.push_back(buffer);
  }
}

bool BufferAssigner::ReuseOperand(Instruction i, size_t leaf, uint32_t value, const LiveBuffer& buffer) {
  const Reuse reuse = ReuseOf(i);
  for (int64_t k = reuse.first; k < reuse.first + reuse.count; ++k) {
    const absl::Span<const uint32_t> held = flow_.ValuesOf(i.operand(k));
    // A loop reuses its state leaf by leaf.
    const size_t from = held.size() == flow_.ValuesOf(i).size() ? leaf : 0;
    if (from >= held.size()) continue;
    const uint32_t old = buffer_of_[held[from]];
    if (old == kNoBuffer) continue;
    LiveBuffer& taken = buffers[old];
    if (taken.end != buffer.begin || taken.bytes != buffer.bytes || taken.kind == BufferKind::kConstant) continue;
    if (taken.kind == BufferKind::kResult || pinned_.contains(old)) continue;
    taken.end = buffer.end;
    if (is_result_[value] && taken.kind == BufferKind::kTemporary) taken.kind = BufferKind::kResult;
    buffer_of_[value] = old;
    return true;
  }
  return false;
}

// Sets the sums of use->buffers: by kind, and at each position.
void SumBuffers(absl::Span<const int64_t> callee_bytes, MemoryUse* use) {
  const size_t positions = use->order.size();
  std::vector<int64_t> change(positions + 1, 0);
  for (const LiveBuffer& buffer : use->buffers) {
    switch (buffer.kind) {
      case BufferKind::kArgument:
        use->argument_bytes = SaturatingAdd(use->argument_bytes, buffer.bytes);
        break;
      case BufferKind::kConstant:
        use->constant_bytes = SaturatingAdd(use->constant_bytes, buffer.bytes);
        continue;
      case BufferKind::kResult:
        use->result_bytes = SaturatingAdd(use->result_bytes, buffer.bytes);
        break;
      case BufferKind::kTemporary:
        break;
    }
    int64_t& in = change[static_cast<size_t>(buffer.begin)];
    in = SaturatingAdd(in, buffer.bytes);
    int64_t& out = change[static_cast<size_t>(buffer.end) + 1];
    out = SaturatingAdd(out, -buffer.bytes);
  }
  use->live_bytes.assign(positions, 0);
  int64_t live = 0;
  for (size_t at = 0; at < positions; ++at) {
    live = SaturatingAdd(live, change[at]);
    use->live_bytes[at] = SaturatingAdd(live, at < callee_bytes.size() ? callee_bytes[at] : 0);
    if (use->live_bytes[at] > use->peak_bytes) {
      use->peak_bytes = use->live_bytes[at];
      use->peak_position = static_cast<int32_t>(at);
    }
  }
  use->peak_bytes_beyond_arguments = std::max<int64_t>(0, use->peak_bytes - use->argument_bytes);
}

}  // namespace

absl::StatusOr<MemoryUse> MemoryOf(Computation computation, std::vector<InstructionId> order,
                                   absl::Span<const int64_t> callee_bytes) {
  const Module& module = computation.module();
  const absl::StatusOr<DataflowAnalysis> flow = DataflowAnalysis::Create(module, order);
  if (!flow.ok()) return flow.status();
  BufferAssigner assigner(computation, order, *flow);
  for (size_t position = 0; position < order.size(); ++position) {
    const Instruction i = module.instruction(order[position]);
    if (!HasTrait(i.opcode(), kForwards)) assigner.Assign(i, static_cast<int32_t>(position));
  }
  MemoryUse use;
  use.order = std::move(order);
  use.buffers = std::move(assigner.buffers);
  SumBuffers(callee_bytes, &use);
  return use;
}

std::vector<LiveBuffer> MemoryAnalysis::LiveAtPeak(const Module& module) const {
  std::vector<LiveBuffer> live;
  ComputationId next = entry_;
  while (next.valid()) {
    const MemoryUse& use = uses_[next.value];
    const bool outermost = next == entry_;
    next = ComputationId();
    if (use.order.empty()) break;
    for (const LiveBuffer& buffer : use.buffers) {
      if (buffer.kind == BufferKind::kConstant || buffer.bytes == 0) continue;
      if (buffer.kind == BufferKind::kArgument && !outermost) continue;  // buffers of the caller
      if (buffer.begin <= use.peak_position && use.peak_position <= buffer.end) live.push_back(buffer);
    }
    int64_t most = 0;
    const Instruction at = module.instruction(use.order[static_cast<size_t>(use.peak_position)]);
    if (!RunsComputations(at)) break;
    at.ForEachCallee([&](Computation callee) {
      const int64_t bytes = uses_[callee.id().value].peak_bytes_beyond_arguments;
      if (bytes <= most) return;
      most = bytes;
      next = callee.id();
    });
  }
  std::stable_sort(live.begin(), live.end(),
                   [](const LiveBuffer& a, const LiveBuffer& b) { return a.bytes > b.bytes; });
  return live;
}

absl::Status MemoryAnalysis::Analyze(Computation c) {
  const Module& module = c.module();
  std::vector<InstructionId> order;
  if (module.header().is_scheduled) {
    for (Instruction i : c.instructions()) order.push_back(i.id());
  } else {
    order = PostOrder(c);
  }
  std::vector<int64_t> callee_bytes(order.size(), 0);
  for (size_t place = 0; place < order.size(); ++place) {
    const Instruction i = module.instruction(order[place]);
    if (!RunsComputations(i)) continue;
    i.ForEachCallee([&](Computation callee) {
      callee_bytes[place] = std::max(callee_bytes[place], uses_[callee.id().value].peak_bytes_beyond_arguments);
    });
  }
  absl::StatusOr<MemoryUse> use = MemoryOf(c, std::move(order), callee_bytes);
  if (!use.ok()) return use.status();
  uses_[c.id().value] = *std::move(use);
  return absl::OkStatus();
}

absl::StatusOr<MemoryAnalysis> MemoryAnalysis::Create(const Module& module) {
  MemoryAnalysis result;
  result.uses_.resize(module.computation_id_bound());
  result.entry_ = module.entry().id();
  const CallGraph calls(module);
  for (ComputationId id : calls.PostOrder()) {
    const Computation c = module.computation(id);
    if (!calls.IsSequential(c) || !c.root().valid()) continue;
    if (absl::Status status = result.Analyze(c); !status.ok()) return status;
  }
  return result;
}

absl::Status MemoryAnalysis::Update(const Module& module, Computation changed) {
  uses_.resize(module.computation_id_bound());
  const CallGraph calls(module);
  std::vector<uint8_t> is_changed(module.computation_id_bound(), 0);
  for (ComputationId id : calls.PostOrder()) {
    const Computation c = module.computation(id);
    if (!calls.IsSequential(c) || !c.root().valid()) continue;
    bool again = c == changed;
    for (const CallSite& site : calls.callsites(c)) again |= is_changed[site.callee.value] != 0;
    if (!again) continue;
    const int64_t before = uses_[id.value].peak_bytes_beyond_arguments;
    if (absl::Status status = Analyze(c); !status.ok()) return status;
    is_changed[id.value] = uses_[id.value].peak_bytes_beyond_arguments != before;
  }
  return absl::OkStatus();
}

}  // namespace hlokit
