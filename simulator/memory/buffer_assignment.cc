// SPDX-License-Identifier: Apache-2.0
#include "simulator/memory/buffer_assignment.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/core/saturating.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/schedule/loop_state.h"
#include "passes/target/aliases.h"
#include "passes/target/op_class.h"
#include "passes/target/tiling.h"

namespace hlokit::tpu {

namespace {

constexpr uint32_t kNoValue = 0xffffffffu;
constexpr uint32_t kNoBuffer = 0xffffffffu;
constexpr double kMaxArrayBytes = 1e17;  // exceeds any memory, without risk of overflow

bool IsInHbm(Shape array) { return array.IsArray() && MemorySpaceOf(array) == kDefaultMemorySpace; }

// A result that overwrites the memory of a parameter.
struct Reservation {
  uint32_t value = kNoValue;
  uint32_t step = 0;
};

class Assigner {
 public:
  Assigner(const Module& module, const KernelPlan& kernels, const ComputationPlan& plan, ComputationRole role,
           const ArraySizes& sizes, BufferSharing* sharing, const DataflowAnalysis& flow)
      : module_(module),
        kernels_(kernels),
        plan_(plan),
        role_(role),
        sizes_(sizes),
        sharing_(*sharing),
        flow_(flow),
        body_(module.computation(plan.computation)),
        steps_(static_cast<uint32_t>(plan.steps.size())) {}

  BufferAssignment Run(absl::Span<const InstructionId> order) {
    FindNames(order);
    FindLastUses();
    AddParameters();
    ReserveParameters();
    for (uint32_t s = 0; s < steps_; ++s) AssignStep(s);
    BufferAssignment result;
    for (AssignedBuffer& buffer : buffers_) result.buffers.push_back(std::move(buffer));
    std::stable_sort(result.buffers.begin(), result.buffers.end(),
                     [](const AssignedBuffer& a, const AssignedBuffer& b) { return a.from < b.from; });
    return result;
  }

 private:
  uint32_t NameOf(uint32_t value) const { return name_of_[value]; }
  std::vector<uint32_t> NamesIn(Instruction i) const {
    std::vector<uint32_t> names;
    for (uint32_t value : flow_.ValuesOf(i)) names.push_back(NameOf(value));
    return names;
  }

  // Finds the leaves that are other names of earlier arrays. Operands come first in `order`.
  void FindNames(absl::Span<const InstructionId> order) {
    name_of_.resize(flow_.values().size());
    for (uint32_t v = 0; v < name_of_.size(); ++v) name_of_[v] = v;
    for (InstructionId id : order) {
      const Instruction i = module_.instruction(id);
      const absl::Span<const uint32_t> values = flow_.ValuesOf(i);
      if (values.empty() || flow_.values()[values[0]].defining_instruction != id || i.operand_count() == 0) continue;
      if (IsAlias(i)) {
        Forward(flow_.ValuesOf(i.operand(0)), 0, values);
      } else if (HasTrait(i.opcode(), kStartsAsync)) {
        ForwardStart(i, values);
      } else if (HasTrait(i.opcode(), kUpdatesAsync)) {
        Forward(flow_.ValuesOf(i.operand(0)), 0, values);
      } else if (HasTrait(i.opcode(), kEndsAsync)) {
        Forward(flow_.ValuesOf(i.operand(0)), ResultLeafOf(i), values);
      } else if (i.opcode() == Opcode::kWhile) {
        ForwardInvariants(i, values);
      }
    }
  }

  // Names leaves of `to` after those of `from` beginning at `first`.
  void Forward(absl::Span<const uint32_t> from, size_t first, absl::Span<const uint32_t> to) {
    for (size_t k = 0; k < to.size() && first + k < from.size(); ++k) name_of_[to[k]] = NameOf(from[first + k]);
  }

  // Starts return their operands, which they do not copy, and then their results; copy-start the other way around.
  void ForwardStart(Instruction start, absl::Span<const uint32_t> values) {
    const Shape shape = start.shape();
    if (shape.tuple_size() < 2 || OpcodeSet{Opcode::kAllReduceStart, Opcode::kRecv}.Contains(start.opcode())) return;
    std::vector<uint32_t> operands;
    for (Instruction operand : start.operands()) {
      for (uint32_t value : flow_.ValuesOf(operand)) operands.push_back(value);
    }
    const bool copy = start.opcode() == Opcode::kCopyStart;
    const int64_t first = copy ? shape.element(0).leaf_count() : 0;
    const int64_t count = shape.element(copy ? 1 : 0).leaf_count();
    // The operand of send includes a token, which is no part of the first element.
    const size_t forwarded = static_cast<size_t>(std::min(count, static_cast<int64_t>(operands.size())));
    if (static_cast<size_t>(first) + forwarded > values.size()) return;
    Forward(operands, 0, values.subspan(static_cast<size_t>(first), forwarded));
  }

  // Returns the first leaf of the start's shape that is the result of this done.
  static size_t ResultLeafOf(Instruction done) {
    const Shape start = done.operand(0).shape();
    if (OpcodeSet{Opcode::kCopyDone, Opcode::kRecvDone, Opcode::kAllReduceDone}.Contains(done.opcode()) ||
        start.tuple_size() < 2) {
      return 0;
    }
    return static_cast<size_t>(start.element(0).leaf_count());
  }

  void ForwardInvariants(Instruction loop, absl::Span<const uint32_t> values) {
    const Computation body = loop.computation_attr(Attr::kBody);
    const Shape state = loop.shape();
    if (!body.valid() || !state.IsTuple()) return;
    const absl::Span<const uint32_t> init = flow_.ValuesOf(loop.operand(0));
    if (init.size() != values.size()) return;
    std::vector<size_t> first = {0};
    for (Shape element : state.elements()) first.push_back(first.back() + static_cast<size_t>(element.leaf_count()));
    for (int64_t k : InvariantElements(body)) {
      if (k < 0 || k >= state.tuple_size()) continue;
      for (size_t leaf = first[k]; leaf < first[k + 1]; ++leaf) name_of_[values[leaf]] = NameOf(init[leaf]);
    }
  }

  void Use(uint32_t value, uint32_t step) { last_[value] = std::max(last_[value], step); }

  void FindLastUses() {
    last_.assign(flow_.values().size(), 0);
    step_of_.assign(flow_.values().size(), ComputationPlan::kNoStep);
    done_of_.assign(steps_, 0);
    for (uint32_t s = 0; s < steps_; ++s) {
      const Instruction root = module_.instruction(plan_.steps[s].root);
      for (uint32_t value : flow_.ValuesOf(root)) {
        if (NameOf(value) != value) continue;
        step_of_[value] = s;
        Use(value, s);
      }
      for (Instruction operand : root.operands()) {
        for (uint32_t name : NamesIn(operand)) Use(name, s);
      }
      if (HasTrait(root.opcode(), kEndsAsync)) NoteDone(root, s);
    }
    // All-reduces in flight read operands that their results may overwrite.
    read_ = last_;
    for (uint32_t s = 0; s < steps_; ++s) {
      if (done_of_[s] <= s) continue;
      for (Instruction operand : module_.instruction(plan_.steps[s].root).operands()) {
        for (uint32_t name : NamesIn(operand)) Use(name, done_of_[s]);
      }
    }
    result_.assign(flow_.values().size(), 0);
    for (uint32_t name : NamesIn(body_.root())) {
      last_[name] = read_[name] = steps_;
      result_[name] = 1;
    }
  }

  void NoteDone(Instruction done, uint32_t s) {
    Instruction start = done.operand_count() > 0 ? done.operand(0) : Instruction();
    while (start.valid() && HasTrait(start.opcode(), kUpdatesAsync)) start = start.operand(0);
    if (!start.valid() || !HasTrait(start.opcode(), kStartsAsync)) return;
    const uint32_t begin = kernels_.StepOf(start.id());
    if (begin != ComputationPlan::kNoStep && begin < s) done_of_[begin] = std::max(done_of_[begin], s);
  }

  uint32_t AddBuffer(AssignedBuffer buffer) {
    buffers_.push_back(std::move(buffer));
    read_to_.push_back(0);
    joined_at_.push_back(kNoValue);
    reserved_.emplace_back();
    pinned_.push_back(0);
    return static_cast<uint32_t>(buffers_.size() - 1);
  }

  // Adds the leaves of parameters, whose memory is the caller's.
  void AddParameters() {
    buffer_of_.assign(flow_.values().size(), kNoBuffer);
    for (int64_t p = 0; p < body_.parameter_count(); ++p) {
      for (uint32_t value : flow_.ValuesOf(body_.parameter(p))) {
        const DataflowValue& v = flow_.values()[value];
        const int64_t bytes = sizes_.Padded(v.shape);
        if (bytes == 0) continue;
        AssignedBuffer buffer;
        buffer.bytes = bytes;
        buffer.unpadded_bytes = sizes_.Unpadded(v.shape);
        buffer.to = last_[value];
        buffer.parameter = role_ == ComputationRole::kEntry ? p : -1;
        buffer.outside = true;
        buffer.arrays.push_back({v.defining_instruction, v.leaf, 0});
        buffer_of_[value] = AddBuffer(std::move(buffer));
        read_to_[buffer_of_[value]] = read_[value];
        pinned_[buffer_of_[value]] = 1;
      }
    }
  }

  // Returns true if step `s` may overwrite array `old` with `value`.
  bool MayOverwrite(uint32_t s, uint32_t value, uint32_t old) {
    const Instruction root = module_.instruction(plan_.steps[s].root);
    const absl::Span<const uint32_t> values = flow_.ValuesOf(root);
    for (const SharedLeaf& pair : sharing_.Of(root)) {
      if (pair.leaf >= static_cast<int64_t>(values.size()) || values[pair.leaf] != value) continue;
      const absl::Span<const uint32_t> held = flow_.ValuesOf(root.operand(pair.operand));
      if (pair.operand_leaf < static_cast<int64_t>(held.size()) && NameOf(held[pair.operand_leaf]) == old) return true;
    }
    return false;
  }

  // Returns true if the last use of `old` does not overlap `value`, produced at `s`.
  bool IsDeadBefore(uint32_t old, uint32_t s, uint32_t value) {
    if (last_[old] < s) return true;
    return last_[old] == s && MayOverwrite(s, value, old);
  }

  // Reserves the memory of a parameter's leaf for a result, if the result can be there.
  bool Reserve(uint32_t parameter, uint32_t result) {
    const uint32_t buffer = buffer_of_[parameter];
    const uint32_t s = step_of_[result];
    if (buffer == kNoBuffer || s == ComputationPlan::kNoStep || buffer_of_[result] != kNoBuffer) return false;
    if (reserved_[buffer].value != kNoValue || !IsInHbm(flow_.values()[result].shape)) return false;
    if (buffers_[buffer].bytes != sizes_.Padded(flow_.values()[result].shape)) return false;
    if (!IsDeadBefore(parameter, s, result)) return false;
    reserved_[buffer] = {result, s};
    pinned_[buffer] = 0;
    target_[result] = buffer;
    return true;
  }

  std::optional<uint32_t> LeafOf(Instruction i, absl::Span<const int64_t> index) const {
    Shape shape = i.shape();
    size_t leaf = 0;
    for (int64_t k : index) {
      if (!shape.IsTuple() || k < 0 || k >= shape.tuple_size()) return std::nullopt;
      for (int64_t before = 0; before < k; ++before) leaf += static_cast<size_t>(shape.element(before).leaf_count());
      shape = shape.element(k);
    }
    const absl::Span<const uint32_t> values = flow_.ValuesOf(i);
    if (shape.IsTuple() || leaf >= values.size()) return std::nullopt;
    return NameOf(values[leaf]);
  }

  void ReserveParameters() {
    if (role_ == ComputationRole::kCallee) return;
    const std::vector<uint32_t> results = NamesIn(body_.root());
    if (role_ == ComputationRole::kLoopBody) {
      if (body_.parameter_count() != 1) return;
      const absl::Span<const uint32_t> state = flow_.ValuesOf(body_.parameter(0));
      for (size_t k = 0; k < state.size() && k < results.size(); ++k) {
        if (!target_.contains(results[k])) Reserve(state[k], results[k]);
      }
      return;
    }
    const Context& context = module_.context();
    for (const InputOutputAlias& alias : module_.header().input_output_alias) {
      if (alias.parameter < 0 || alias.parameter >= body_.parameter_count()) continue;
      const std::optional<uint32_t> result = LeafOf(body_.root(), context.list(alias.output_index));
      const std::optional<uint32_t> from =
          LeafOf(body_.parameter(alias.parameter), context.list(alias.parameter_index));
      if (result && from && !target_.contains(*result)) Reserve(*from, *result);
    }
    // Donors go to the first results of their size, as XLA's OptimizeInputOutputBufferAlias assigns them. Donors by
    // size, so that the search is short.
    absl::flat_hash_map<int64_t, std::vector<uint32_t>> donors;
    for (const BufferDonor& donor : module_.header().buffer_donor) {
      if (donor.parameter < 0 || donor.parameter >= body_.parameter_count()) continue;
      const std::optional<uint32_t> from =
          LeafOf(body_.parameter(donor.parameter), context.list(donor.parameter_index));
      if (from && buffer_of_[*from] != kNoBuffer) donors[buffers_[buffer_of_[*from]].bytes].push_back(*from);
    }
    if (donors.empty()) return;
    for (uint32_t result : results) {
      if (target_.contains(result)) continue;
      const auto found = donors.find(sizes_.Padded(flow_.values()[result].shape));
      if (found == donors.end()) continue;
      constexpr size_t kMaxTried = 64;
      std::vector<uint32_t>& list = found->second;
      for (size_t k = 0; k < std::min(list.size(), kMaxTried); ++k) {
        if (!Reserve(list[k], result)) continue;
        list.erase(list.begin() + static_cast<ptrdiff_t>(k));
        break;
      }
    }
  }

  void Join(uint32_t value, uint32_t buffer, uint32_t s) {
    const DataflowValue& v = flow_.values()[value];
    AssignedBuffer& b = buffers_[buffer];
    b.to = std::max(b.to, last_[value]);
    read_to_[buffer] = std::max(read_to_[buffer], read_[value]);
    joined_at_[buffer] = s;
    b.arrays.push_back({v.defining_instruction, v.leaf, s});
    buffer_of_[value] = buffer;
  }

  // Returns true if `value`, produced at `s`, can take this buffer of an operand.
  bool CanTake(uint32_t buffer, uint32_t value, uint32_t s) {
    const AssignedBuffer& b = buffers_[buffer];
    if (pinned_[buffer] || joined_at_[buffer] == s || b.bytes != sizes_.Padded(flow_.values()[value].shape))
      return false;
    // An operation in flight reads its operand until it is done, unless the result is in its place.
    const bool dead = done_of_[s] > s ? read_to_[buffer] <= s && b.to <= done_of_[s] : b.to <= s;
    if (!dead) return false;
    const Reservation& next = reserved_[buffer];
    if (next.value == kNoValue || next.step < s) return true;
    return next.value == value || (next.step > s && IsDeadBefore(value, next.step, next.value));
  }

  void AssignStep(uint32_t s) {
    const Instruction root = module_.instruction(plan_.steps[s].root);
    const absl::Span<const uint32_t> values = flow_.ValuesOf(root);
    const absl::Span<const SharedLeaf> shared = sharing_.Of(root);
    auto pair = shared.begin();
    for (size_t leaf = 0; leaf < values.size(); ++leaf) {
      const uint32_t value = values[leaf];
      const int64_t bytes = sizes_.Padded(flow_.values()[value].shape);
      const bool is_new = NameOf(value) == value && buffer_of_[value] == kNoBuffer && bytes > 0;
      while (pair != shared.end() && pair->leaf < static_cast<int64_t>(leaf)) ++pair;
      if (!is_new) continue;
      if (const auto found = target_.find(value); found != target_.end()) {
        Join(value, found->second, s);
        continue;
      }
      for (; pair != shared.end() && pair->leaf == static_cast<int64_t>(leaf); ++pair) {
        const absl::Span<const uint32_t> held = flow_.ValuesOf(root.operand(pair->operand));
        if (pair->operand_leaf >= static_cast<int64_t>(held.size())) continue;
        const uint32_t old = buffer_of_[NameOf(held[pair->operand_leaf])];
        if (old == kNoBuffer || !CanTake(old, value, s)) continue;
        Join(value, old, s);
        break;
      }
      if (buffer_of_[value] != kNoBuffer) continue;
      AssignedBuffer buffer;
      buffer.bytes = bytes;
      buffer.unpadded_bytes = sizes_.Unpadded(flow_.values()[value].shape);
      buffer.from = s;
      buffer.outside = role_ == ComputationRole::kCallee && result_[value] != 0;
      Join(value, AddBuffer(std::move(buffer)), s);
    }
  }

  const Module& module_;
  const KernelPlan& kernels_;
  const ComputationPlan& plan_;
  const ComputationRole role_;
  const ArraySizes& sizes_;
  BufferSharing& sharing_;
  const DataflowAnalysis& flow_;
  const Computation body_;
  const uint32_t steps_;
  // By value.
  std::vector<uint32_t> name_of_;  // the array that it is another name of, or itself
  std::vector<uint32_t> last_;     // last use, also by operations in flight
  std::vector<uint32_t> read_;     // last use as an operand
  std::vector<uint32_t> step_of_;
  std::vector<uint8_t> result_;
  std::vector<uint32_t> buffer_of_;
  absl::flat_hash_map<uint32_t, uint32_t> target_;  // the reserved buffer of a result
  // By step: the step that waits for an operation in flight; 0: none.
  std::vector<uint32_t> done_of_;
  // By buffer.
  std::vector<AssignedBuffer> buffers_;
  std::vector<uint32_t> read_to_;
  std::vector<uint32_t> joined_at_;
  std::vector<Reservation> reserved_;
  std::vector<uint8_t> pinned_;
};

}  // namespace

int64_t ArraySizes::OnDevice(double bytes) const {
  return static_cast<int64_t>(std::min(std::max(bytes, 0.0) / parts_, kMaxArrayBytes));
}

int64_t ArraySizes::Padded(Shape array) const {
  return IsInHbm(array) ? OnDevice(static_cast<double>(PaddedBytes(machine_, array))) : 0;
}

int64_t ArraySizes::Unpadded(Shape array) const {
  return IsInHbm(array) ? std::min(OnDevice(static_cast<double>(ByteSize(array))), Padded(array)) : 0;
}

int64_t ArraySizes::PaddedSum(Shape shape) const {
  int64_t sum = 0;
  std::vector<Shape> open = {shape};
  while (!open.empty()) {
    const Shape s = open.back();
    open.pop_back();
    sum = SaturatingAdd(sum, Padded(s));
    open.insert(open.end(), s.elements().begin(), s.elements().end());
  }
  return sum;
}

BufferAssignment AssignBuffers(const Module& module, const KernelPlan& plan, const ComputationPlan& computation,
                               ComputationRole role, const ArraySizes& sizes, BufferSharing* sharing) {
  const std::vector<InstructionId> order = PostOrder(module.computation(computation.computation));
  const absl::StatusOr<DataflowAnalysis> flow = DataflowAnalysis::Create(module, order);
  // Verified modules have fewer leaves.
  if (!flow.ok()) return {};
  return Assigner(module, plan, computation, role, sizes, sharing, *flow).Run(order);
}

}  // namespace hlokit::tpu
