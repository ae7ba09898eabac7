// SPDX-License-Identifier: Apache-2.0
#include "passes/collective/device_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "ir/sharding/collective_groups.h"
#include "ir/sharding/replica_groups.h"
#include "passes/rewrite/splat.h"

namespace hlokit {
namespace {

constexpr int64_t kMaxEvaluatedDevices = 1 << 12;
constexpr size_t kMaxScalars = 64;  // operations of one index
constexpr size_t kMaxGroupings = 16;

using DeviceValues = std::vector<int64_t>;  // by device

// Returns the number of devices of each kind that run the collective.
std::optional<DeviceCounts> DeviceCountsOf(Instruction i, const ReplicaGroupCounts& named) {
  const ModuleHeader& header = i.module().header();
  DeviceCounts counts{header.replica_count, header.num_partitions};
  switch (GetCollectiveOpGroupMode(i)) {
    case CollectiveOpGroupMode::kCrossReplica:
      if (counts.replicas == 1) counts.replicas = named.devices;
      break;
    case CollectiveOpGroupMode::kCrossPartition:
      if (counts.partitions == 1) counts.partitions = named.devices;
      break;
    case CollectiveOpGroupMode::kCrossReplicaAndPartition:
      // Each member stands for all partitions of a replica.
      if (counts.partitions == 1) return std::nullopt;
      if (counts.replicas == 1) counts.replicas = named.devices;
      break;
    case CollectiveOpGroupMode::kFlattenedId:
      if (counts.devices() == 1) return std::nullopt;
      if (counts.replicas == 1) {
        counts.replicas = named.devices / counts.partitions;
      } else if (counts.partitions == 1) {
        counts.partitions = named.devices / counts.replicas;
      }
      break;
  }
  if (counts.replicas < 1 || counts.partitions < 1 || counts.replicas > kMaxEvaluatedDevices ||
      counts.partitions > kMaxEvaluatedDevices || counts.devices() > kMaxEvaluatedDevices) {
    return std::nullopt;
  }
  return counts;
}

// Returns `value` as an integer of the type, or nullopt if the type is another kind or has values beyond int64.
std::optional<int64_t> Wrapped(ElementType type, int64_t value) {
  const int bits = BitsOf(type);
  if (!IsInteger(type) || bits > 64) return std::nullopt;
  if (bits == 64) return !IsSigned(type) && value < 0 ? std::nullopt : std::optional<int64_t>(value);
  const uint64_t low = static_cast<uint64_t>(value) << (64 - bits);
  return IsSigned(type) ? static_cast<int64_t>(low) >> (64 - bits) : static_cast<int64_t>(low >> (64 - bits));
}

// Returns element `index` of an integer constant.
std::optional<int64_t> ElementOf(Instruction constant, int64_t index) {
  const LiteralRecord& literal = constant.literal();
  const ElementType type = constant.shape().element_type();
  if (literal.elided || literal.data == nullptr || !IsInteger(type) || BitsOf(type) % 8 != 0) return std::nullopt;
  const auto bytes = static_cast<size_t>(BitsOf(type) / 8);
  if (index < 0 || (static_cast<size_t>(index) + 1) * bytes > literal.size_bytes) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, literal.data + static_cast<size_t>(index) * bytes, bytes);
  return Wrapped(type, static_cast<int64_t>(bits));
}

bool IsOneInteger(Instruction i) {
  return i.shape().IsArray() && IsInteger(i.shape().element_type()) && i.shape().element_count() == 1;
}

using Function = std::optional<int64_t> (*)(absl::Span<const int64_t> operands);

// Unsigned, so that overflow is defined.
constexpr uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }

struct ScalarFunction {
  Opcode opcode;
  Function compute;
};
constexpr ScalarFunction kScalarFunctions[] = {
    {Opcode::kAdd, [](auto x) { return std::optional<int64_t>(Bits(x[0]) + Bits(x[1])); }},
    {Opcode::kSubtract, [](auto x) { return std::optional<int64_t>(Bits(x[0]) - Bits(x[1])); }},
    {Opcode::kMultiply, [](auto x) { return std::optional<int64_t>(Bits(x[0]) * Bits(x[1])); }},
    {Opcode::kDivide, [](auto x) { return x[1] > 0 ? std::optional<int64_t>(x[0] / x[1]) : std::nullopt; }},
    {Opcode::kRemainder, [](auto x) { return x[1] > 0 ? std::optional<int64_t>(x[0] % x[1]) : std::nullopt; }},
    {Opcode::kMaximum, [](auto x) { return std::optional<int64_t>(std::max(x[0], x[1])); }},
    {Opcode::kMinimum, [](auto x) { return std::optional<int64_t>(std::min(x[0], x[1])); }},
    {Opcode::kClamp, [](auto x) { return std::optional<int64_t>(std::min(std::max(x[1], x[0]), x[2])); }},
    {Opcode::kConvert, [](auto x) { return std::optional<int64_t>(x[0]); }},
    {Opcode::kCopy, [](auto x) { return std::optional<int64_t>(x[0]); }},
    {Opcode::kReshape, [](auto x) { return std::optional<int64_t>(x[0]); }},
    {Opcode::kBitcast, [](auto x) { return std::optional<int64_t>(x[0]); }},
};

// Returns the function that `opcode` applies to integers, or nullptr.
Function FunctionOf(Opcode opcode) {
  for (const ScalarFunction& row : kScalarFunctions) {
    if (row.opcode == opcode) return row.compute;
  }
  return nullptr;
}

// Looks up one element of a table at the starts that follow it: `x` are their values.
std::optional<int64_t> LookUp(Instruction slice, absl::Span<const int64_t> x) {
  const Instruction table = slice.operand(0);
  int64_t index = 0;
  for (int64_t d = 0; d < table.shape().rank(); ++d) {
    const int64_t size = table.shape().dim(d);
    index = index * size + std::clamp<int64_t>(x[static_cast<size_t>(d)], 0, size - 1);
  }
  if (table.opcode() == Opcode::kConstant) return ElementOf(table, index);
  return table.shape().rank() == 1 ? std::optional<int64_t>(index) : std::nullopt;  // an iota
}

bool IsTableLookup(Instruction i) {
  if (i.opcode() != Opcode::kDynamicSlice || i.operand_count() != i.operand(0).shape().rank() + 1) return false;
  return OpcodeSet{Opcode::kConstant, Opcode::kIota}.Contains(i.operand(0).opcode());
}

// Returns the operands whose values `i` is a function of, or nullopt if it is not such a function.
std::optional<std::vector<Instruction>> Inputs(Instruction i) {
  if (!IsOneInteger(i)) return std::nullopt;
  const Opcode opcode = i.opcode();
  std::vector<Instruction> inputs;
  if (opcode == Opcode::kConstant || HasTrait(opcode, kDeviceId)) return inputs;
  const bool table = IsTableLookup(i);
  if (!table && FunctionOf(opcode) == nullptr) return std::nullopt;
  if (opcode == Opcode::kBitcast && i.shape().element_type() != i.operand(0).shape().element_type()) {
    return std::nullopt;
  }
  for (int64_t k = table ? 1 : 0; k < i.operand_count(); ++k) inputs.push_back(i.operand(k));
  return inputs;
}

std::optional<DeviceValues> ValuesOf(Instruction i, const DeviceCounts& counts,
                                     absl::Span<const DeviceValues* const> inputs) {
  // A count of one may stand for a number that the program does not say.
  if (i.opcode() == Opcode::kReplicaId && counts.replicas == 1) return std::nullopt;
  if (i.opcode() == Opcode::kPartitionId && counts.partitions == 1) return std::nullopt;
  // The value on a device of opcodes that are no function of their operands alone.
  using ValueOn = std::optional<int64_t> (*)(Instruction, const DeviceCounts&, int64_t, absl::Span<const int64_t>);
  static constexpr OpcodeRow<ValueOn> kRows[] = {
      {Opcode::kReplicaId,
       [](Instruction, const DeviceCounts& counts, int64_t device,
          absl::Span<const int64_t>) -> std::optional<int64_t> { return device / counts.partitions; }},
      {Opcode::kPartitionId,
       [](Instruction, const DeviceCounts& counts, int64_t device,
          absl::Span<const int64_t>) -> std::optional<int64_t> { return device % counts.partitions; }},
      {Opcode::kConstant,
       [](Instruction i, const DeviceCounts&, int64_t, absl::Span<const int64_t>) -> std::optional<int64_t> {
         return ElementOf(i, 0);
       }},
      {Opcode::kDynamicSlice,
       [](Instruction i, const DeviceCounts&, int64_t, absl::Span<const int64_t> x) -> std::optional<int64_t> {
         return LookUp(i, x);
       }},
  };
  static constexpr auto kValues = MakeOpcodeHandlers<ValueOn>(kRows);
  DeviceValues values;
  std::vector<int64_t> x(inputs.size());
  for (int64_t device = 0; device < counts.devices(); ++device) {
    for (size_t k = 0; k < x.size(); ++k) x[k] = (*inputs[k])[static_cast<size_t>(device)];
    const ValueOn of = kValues[static_cast<size_t>(i.opcode())];
    std::optional<int64_t> value = of != nullptr ? of(i, counts, device, x) : FunctionOf(i.opcode())(x);
    if (value) value = Wrapped(i.shape().element_type(), *value);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

// Returns true if the value of `i` is a function of its operands, the same one on all devices.
bool IsFunctionOfOperands(Instruction i) {
  constexpr uint32_t kDiffers = kSideEffect | kImpure | kCollective | kControlFlow | kAsyncChain;
  const Opcode opcode = i.opcode();
  return opcode != Opcode::kUnknown && (kOpcodeTraits[static_cast<size_t>(opcode)] & kDiffers) == 0 &&
         opcode != Opcode::kParameter && !HasTrait(opcode, kDeviceId);
}

// Returns true if each callee applies functions to its parameters.
bool CalleesAreFunctions(Instruction i) {
  bool all = true;
  i.ForEachCallee([&](Computation callee) {
    for (Instruction inner : callee.instructions()) {
      all = all && (inner.opcode() == Opcode::kParameter ||
                    (IsFunctionOfOperands(inner) && !MightHaveCalledComputations(inner.opcode())));
    }
  });
  return all;
}

std::pair<uint32_t, int> GroupingOf(Instruction collective) {
  return {AttrReader(collective).list_id(Attr::kReplicaGroups).value,
          static_cast<int>(GetCollectiveOpGroupMode(collective))};
}

// Returns true if each group of `small` is known to be a part of a group of `large`.
bool GroupsArePartsOf(Instruction small, Instruction large) {
  if (GroupingOf(small) == GroupingOf(large)) return true;
  const std::optional<DeviceGroups> parts = DeviceGroupsOf(small), whole = DeviceGroupsOf(large);
  if (!parts || !whole || parts->counts.replicas != whole->counts.replicas ||
      parts->counts.partitions != whole->counts.partitions) {
    return false;
  }
  std::vector<size_t> group_of(static_cast<size_t>(whole->counts.devices()));
  for (size_t g = 0; g < whole->groups.size(); ++g) {
    for (int64_t device : whole->groups[g]) group_of[static_cast<size_t>(device)] = g;
  }
  for (const std::vector<int64_t>& part : parts->groups) {
    for (int64_t device : part) {
      if (group_of[static_cast<size_t>(device)] != group_of[static_cast<size_t>(part[0])]) return false;
    }
  }
  return true;
}

// Returns true if each member of a group receives the same.
bool GivesAllTheSame(Instruction i) {
  return OpcodeSet{Opcode::kAllReduce, Opcode::kAllGather}.Contains(i.opcode()) && !i.shape().has_dynamic_dims();
}

}  // namespace

std::optional<DeviceGroups> DeviceGroupsOf(Instruction i) {
  const ReplicaGroupCounts named =
      CountReplicaGroups(i.module().context(), AttrReader(i).list_id(Attr::kReplicaGroups));
  if (!named.uniform) return std::nullopt;
  DeviceGroups result;
  if (named.groups == 0) {
    // One group of all, whose number must be in the header.
    const ModuleHeader& header = i.module().header();
    result.counts = {header.replica_count, header.num_partitions};
    const CollectiveOpGroupMode mode = GetCollectiveOpGroupMode(i);
    if (result.counts.replicas < 1 || result.counts.partitions < 1 || result.counts.replicas > kMaxEvaluatedDevices ||
        result.counts.partitions > kMaxEvaluatedDevices || result.counts.devices() > kMaxEvaluatedDevices) {
      return std::nullopt;
    }
    if (mode != CollectiveOpGroupMode::kCrossPartition && result.counts.replicas == 1) return std::nullopt;
    if (mode != CollectiveOpGroupMode::kCrossReplica && result.counts.partitions == 1) return std::nullopt;
  } else {
    const std::optional<DeviceCounts> counts = DeviceCountsOf(i, named);
    if (!counts) return std::nullopt;
    result.counts = *counts;
  }
  auto groups = GetParticipatingDevicesGroups(i, result.counts.replicas, result.counts.partitions);
  if (!groups.ok() || groups->empty()) return std::nullopt;
  result.groups = *std::move(groups);
  std::vector<uint8_t> seen(static_cast<size_t>(result.counts.devices()), 0);
  for (const std::vector<int64_t>& group : result.groups) {
    if (group.size() != result.groups[0].size()) return std::nullopt;
    for (int64_t device : group) {
      if (std::exchange(seen[static_cast<size_t>(device)], 1) != 0) return std::nullopt;
    }
  }
  if (std::find(seen.begin(), seen.end(), 0) != seen.end()) return std::nullopt;
  return result;
}

std::optional<DeviceValues> ScalarByDevice(Instruction scalar, const DeviceCounts& counts) {
  absl::flat_hash_map<uint32_t, DeviceValues> known;
  std::vector<Instruction> open = {scalar};
  size_t budget = 8 * kMaxScalars;
  while (!open.empty()) {
    const Instruction i = open.back();
    if (known.contains(i.id().value)) {
      open.pop_back();
      continue;
    }
    if (known.size() >= kMaxScalars || budget-- == 0) return std::nullopt;
    const std::optional<std::vector<Instruction>> inputs = Inputs(i);
    if (!inputs) return std::nullopt;
    const size_t before = open.size();
    for (Instruction input : *inputs) {
      if (!known.contains(input.id().value)) open.push_back(input);
    }
    if (open.size() != before) continue;
    std::vector<const DeviceValues*> values;
    for (Instruction input : *inputs) values.push_back(&known.find(input.id().value)->second);
    std::optional<DeviceValues> value = ValuesOf(i, counts, values);
    if (!value) return std::nullopt;
    known.emplace(i.id().value, *std::move(value));
    open.pop_back();
  }
  return known.find(scalar.id().value)->second;
}

std::vector<uint8_t> UniformValues::Analyze(Instruction collective) const {
  std::map<std::pair<uint32_t, int>, bool> covers;  // by grouping: its groups contain those of `collective`
  std::vector<uint8_t> uniform(module_.instruction_id_bound(), 0);
  for (Computation c : module_.computations()) {
    for (InstructionId id : PostOrder(c)) {
      const Instruction i = module_.instruction(id);
      if (i.opcode() == Opcode::kGetTupleElement && i.operand(0).opcode() == Opcode::kTuple) {
        uniform[id.value] = uniform[i.operand(0).operand(i.int_attr(Attr::kIndex)).id().value];
      } else if (GivesAllTheSame(i)) {
        const auto [at, is_new] = covers.try_emplace(GroupingOf(i), false);
        if (is_new && covers.size() <= kMaxGroupings) at->second = GroupsArePartsOf(collective, i);
        uniform[id.value] = at->second;
      } else if (IsFunctionOfOperands(i) && !HasSideEffectNoRecurse(i) && CalleesAreFunctions(i)) {
        bool all = true;
        for (Instruction operand : i.operands()) all = all && uniform[operand.id().value] != 0;
        uniform[id.value] = all;
      }
    }
  }
  return uniform;
}

bool UniformValues::IsUniform(Instruction value, Instruction collective) {
  const std::pair<uint32_t, int> grouping = GroupingOf(collective);
  auto at = uniform_.find(grouping);
  if (at == uniform_.end()) {
    if (uniform_.size() >= kMaxGroupings) return false;
    at = uniform_.emplace(grouping, Analyze(collective)).first;
  }
  return value.id().value < at->second.size() && at->second[value.id().value] != 0;
}

}  // namespace hlokit
