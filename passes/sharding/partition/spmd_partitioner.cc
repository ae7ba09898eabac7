// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/spmd_partitioner.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/side_effects.h"
#include "ir/graph/traversal.h"
#include "ir/sharding/sharding.h"
#include "ir/sharding/tile_assignment.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/text/frontend_attributes.h"
#include "passes/core/pass_row.h"
#include "passes/sharding/partition/partitioner.h"
#include "passes/sharding/shardy_import.h"

namespace hlokit::spmd {
namespace {

// Returns the number of devices that the shardings name, at least `known`; an error if they differ.
absl::StatusOr<int64_t> CheckDevices(const Module& module, int64_t known) {
  absl::flat_hash_set<uint32_t> seen;
  int64_t largest = -1;  // of the devices that alone have a value
  Instruction at;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
      if (!payload || !seen.insert(*payload).second) continue;
      const Sharding sharding = DecodeSharding(module.context(), ListId(*payload));
      for (const Sharding::Run& run : sharding.runs) {
        if (run.leaf.kind == ShardingKind::kMaximal && run.leaf.device > largest) {
          largest = run.leaf.device;
          at = i;
        }
        const int64_t devices = run.leaf.device_count();
        if (devices == 0 || run.leaf.kind == ShardingKind::kMaximal) continue;
        if (known == 1) known = devices;
        if (devices != known) {
          return absl::InvalidArgumentError(
              StrCat(i.name(), ": the sharding is for ", devices, " devices, not for ", known));
        }
      }
    }
  }
  if (known > 1 && largest >= known) {
    return absl::InvalidArgumentError(
        StrCat(at.name(), ": the sharding is for device ", largest, " of ", known, " devices"));
  }
  return known;
}

// Returns true if some value is not whole on every device, or some custom-call is the partitioner's to resolve.
bool NeedsPartitioning(const Module& module) {
  absl::flat_hash_set<uint32_t> seen;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const std::string_view target = CustomCallTargetOf(i);
      if (target == "Sharding" || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape") return true;
      const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
      if (!payload || !seen.insert(*payload).second) continue;
      for (const Sharding::Run& run : DecodeSharding(module.context(), ListId(*payload)).runs) {
        if (run.leaf.kind != ShardingKind::kReplicated && run.leaf.kind != ShardingKind::kUnknown) return true;
      }
    }
  }
  return false;
}

// Returns the position of each leaf of a shape among the leaves of its sharding, where an empty tuple within a tuple
// counts as one.
std::vector<int64_t> ShardingPositions(Shape shape) {
  std::vector<int64_t> positions;
  std::vector<Shape> stack = {shape};
  int64_t position = 0;
  while (!stack.empty()) {
    const Shape top = stack.back();
    stack.pop_back();
    if (!top.IsTuple()) {
      positions.push_back(position++);
    } else if (top.tuple_size() == 0) {
      ++position;
    } else {
      for (int64_t e = top.tuple_size(); e-- > 0;) stack.push_back(top.element(e));
    }
  }
  return positions;
}

// Returns an error if the state of an asynchronous operation is part of a tuple, such as the state of a loop: it has no
// parts that a device could hold.
absl::Status CheckAsynchronous(const Module& module) {
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!HasTrait(i.opcode(), kStartsAsync) && !HasTrait(i.opcode(), kUpdatesAsync)) continue;
      for (const Instruction user : i.users()) {
        if (user.opcode() != Opcode::kTuple) continue;
        return absl::UnimplementedError(
            StrCat(user.name(), ": the state of the asynchronous operation `", i.name(),
                   "` in a tuple; partitioning takes operations that end in the computation in which they start"));
      }
    }
  }
  return absl::OkStatus();
}

// Returns an error for dimensions whose positions do not fit into s32, in which devices calculate.
absl::Status CheckPositions(const Module& module) {
  constexpr int64_t kLargest = (int64_t{1} << 31) - 1 - (int64_t{1} << 20);  // and the padding of a part
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!i.has(Attr::kSharding)) continue;
      for (const Shape leaf : Leaves(i.shape())) {
        if (!leaf.IsArray()) continue;
        for (const int64_t size : leaf.dims()) {
          if (size <= kLargest) continue;
          return absl::UnimplementedError(
              StrCat(i.name(), ": a dimension of ", size, " elements; partitioning takes up to ", kLargest));
        }
      }
    }
  }
  return absl::OkStatus();
}

// The largest channel in use, plus one; one if none is. Large numbers are left out: there are smaller ones.
int64_t FirstFreeChannel(const Module& module) {
  constexpr int64_t kLarge = int64_t{1} << 48;
  int64_t last = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      const int64_t channel = i.int_attr(Attr::kChannelId);
      if (channel < kLarge) last = std::max(last, channel);
    }
  }
  return last + 1;
}

}  // namespace

std::optional<LeafTilings> ModulePartitioner::GivenTilings(Instruction i, Shape shape) {
  const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
  if (!payload) return std::nullopt;
  LeafTilings& tilings = given_[{*payload, shape.id().value}];
  if (!tilings.empty()) return tilings;
  const Sharding sharding = DecodeSharding(module_.context(), ListId(*payload));
  const std::vector<Shape> leaves = Leaves(shape);
  const std::vector<int64_t> positions = ShardingPositions(shape);
  size_t run = 0;
  int64_t end = sharding.runs.empty() ? 0 : sharding.runs[0].count;  // of the run
  for (size_t k = 0; k < leaves.size(); ++k) {
    while (sharding.is_tuple && run < sharding.runs.size() && positions[k] >= end) {
      if (++run < sharding.runs.size()) end += sharding.runs[run].count;
    }
    std::optional<Tiling> tiling;
    if (run < sharding.runs.size()) tiling = TilingOf(sharding.runs[run].leaf, leaves[k].rank());
    // What cannot be read as axes was rejected before.
    tilings.push_back(state_.tilings.Intern(tiling ? *std::move(tiling) : Tiling()));
    if (tilings.back()->tiled() && tilings.back()->rank() != leaves[k].rank())
      tilings.back() = state_.tilings.Replicated();
  }
  if (leaves.empty()) return LeafTilings();
  return tilings;
}

std::optional<int64_t> ModulePartitioner::OnlyDevice(Instruction i, size_t leaf) const {
  const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
  if (!payload) return std::nullopt;
  const Sharding sharding = DecodeSharding(module_.context(), ListId(*payload));
  const int64_t position = ShardingPositions(i.shape())[leaf];
  int64_t end = 0;
  for (const Sharding::Run& run : sharding.runs) {
    end += run.count;
    if (sharding.is_tuple && position >= end) continue;
    if (run.leaf.kind != ShardingKind::kMaximal) return std::nullopt;
    return run.leaf.device;
  }
  return std::nullopt;
}

std::optional<int64_t> ModulePartitioner::OnlyDevice(Instruction i) const {
  const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
  if (!payload) return std::nullopt;
  std::optional<int64_t> device;
  for (const Sharding::Run& run : DecodeSharding(module_.context(), ListId(*payload)).runs) {
    if (run.leaf.kind != ShardingKind::kMaximal || (device && *device != run.leaf.device)) return std::nullopt;
    device = run.leaf.device;
  }
  return device;
}

ComputationId ModulePartitioner::Variant(ComputationId source, std::vector<LeafTilings> parameters, LeafTilings root) {
  ComputationId& target = variants_[{source.value, parameters, root}];
  if (target.valid()) return target;
  target = module_.AddComputation(module_.UniqueComputationName(module_.computation(source).name()));
  jobs_.push_back({source, target, std::move(parameters), std::move(root)});
  return target;
}

absl::StatusOr<PartitionCounts> ModulePartitioner::Run() {
  const int64_t partitions = options_.partitions != 0 ? options_.partitions : module_.header().num_partitions;
  if (partitions <= 1) return counts_;
  const absl::StatusOr<int64_t> devices = CheckDevices(module_, partitions);
  if (!devices.ok()) return devices.status();
  if (*devices <= 1 || !NeedsPartitioning(module_)) return counts_;
  if (absl::Status status = CheckAsynchronous(module_); !status.ok()) return status;
  if (absl::Status status = CheckPositions(module_); !status.ok()) return status;
  state_.partitions = *devices;
  state_.replicas = std::max<int64_t>(module_.header().replica_count, 1);
  if (state_.partitions > kMaxDevices / state_.replicas) {
    return absl::InvalidArgumentError(StrCat(state_.replicas, " replicas of ", state_.partitions,
                                             " partitions are more than ", kMaxDevices, " devices"));
  }
  state_.next_channel = FirstFreeChannel(module_);

  const Computation entry = module_.entry();
  const std::vector<ComputationId> before = ReachableComputations(module_, {entry.id()});
  const auto tilings_of = [&](Instruction i) {
    if (std::optional<LeafTilings> given = GivenTilings(i)) return *std::move(given);
    return LeafTilings(Leaves(i.shape()).size(), state_.tilings.Replicated());
  };
  std::vector<LeafTilings> parameters;
  for (int64_t p = 0; p < entry.parameter_count(); ++p) parameters.push_back(tilings_of(entry.parameter(p)));
  const ComputationId target = Variant(entry.id(), std::move(parameters), tilings_of(entry.root()));
  while (!jobs_.empty()) {
    const ComputationJob job = std::move(jobs_.front());
    jobs_.pop_front();
    if (absl::Status status = ComputationPartitioner(this, job).Run(); !status.ok()) return status;
    EraseUnused(job.target);
    ++counts_.computations;
  }
  if (options_.diagnostics != nullptr) warnings_.Report(options_.diagnostics);
  module_.SetEntry(target);
  EraseOld(before);
  if (remarks_.enabled()) remarks_.Report();
  UpdateEntryLayout();
  module_.header().num_partitions = state_.partitions;
  module_.header().frontend_attributes =
      WithFrontendAttribute(&module_.context(), module_.header().frontend_attributes, kPartitionedAttribute, "true");
  counts_.collectives = 0;
  for (Computation c : module_.computations()) {
    for (Instruction i : c.instructions()) counts_.collectives += HasTrait(i.opcode(), kCollective) ? 1 : 0;
  }
  return counts_;
}

void ModulePartitioner::EraseUnused(ComputationId computation) {
  std::vector<InstructionId> all;
  for (Instruction i : module_.computation(computation).instructions()) all.push_back(i.id());
  const Instruction root = module_.computation(computation).root();
  for (size_t n = all.size(); n-- > 0;) {
    const Instruction i = module_.instruction(all[n]);
    if (i.has_users() || i == root || i.opcode() == Opcode::kParameter) continue;
    // A collective without users on any device can go, although it has a channel.
    if (!HasTrait(i.opcode(), kCollective) && (HasSideEffectNoRecurse(i) || !i.called_computations().empty())) continue;
    module_.Erase(i.id());
  }
}

// Erases the computations that only the whole program had, and gives their names to those that replace them.
void ModulePartitioner::EraseOld(const std::vector<ComputationId>& before) {
  absl::flat_hash_set<uint32_t> reachable;
  for (ComputationId c : ReachableComputations(module_, {module_.entry().id()})) reachable.insert(c.value);
  std::vector<std::pair<ComputationId, StringId>> names;
  for (const auto& [key, target] : variants_) {
    const ComputationId source(std::get<0>(key));
    if (!reachable.contains(source.value)) names.emplace_back(target, module_.record(source).name);
  }
  for (size_t n = before.size(); n-- > 0;) {  // callers first
    if (!reachable.contains(before[n].value)) module_.EraseComputation(before[n]);
  }
  absl::flat_hash_set<uint32_t> taken;
  for (const auto& [target, name] : names) {
    if (taken.insert(name.value).second) module_.SetName(target, name);
  }
  absl::flat_hash_set<uint32_t> used;
  for (Computation c : module_.computations()) {
    for (Instruction i : c.instructions()) used.insert(module_.record(i.id()).name.value);
  }
  // The last instruction that stands for an old one is its value; others are steps on the way.
  for (size_t n = names_.size(); n-- > 0;) {
    const auto& [id, name] = names_[n];
    if (!module_.record(id).parent.valid() || !used.insert(name.value).second) continue;
    module_.SetName(id, name);
  }
}

void ModulePartitioner::UpdateEntryLayout() {
  // A result that has another shape than the parameter now cannot be in its place.
  std::erase_if(module_.header().input_output_alias, [&](const InputOutputAlias& alias) {
    const Context& context = module_.context();
    const std::optional<Shape> output = SubshapeAt(module_.entry().root().shape(), context.list(alias.output_index));
    if (!output || alias.parameter >= module_.entry().parameter_count()) return false;
    const Shape parameter = module_.entry().parameter(alias.parameter).shape();
    const std::optional<Shape> input = SubshapeAt(parameter, context.list(alias.parameter_index));
    return input && !Compatible(*output, *input);
  });
  if (!module_.header().entry_layout) return;
  EntryLayout& layout = *module_.header().entry_layout;
  const Computation entry = module_.entry();
  layout.result = entry.root().shape();
  layout.parameters.clear();
  for (int64_t p = 0; p < entry.parameter_count(); ++p) layout.parameters.push_back(entry.parameter(p).shape());
}

absl::StatusOr<PartitionCounts> PartitionModule(Module& module, const PartitionOptions& options) {
  if (IsMarkedPartitioned(module) || !module.entry().valid()) return PartitionCounts();
  const absl::StatusOr<int64_t> imported = sharding::ImportShardy(module);
  if (!imported.ok()) return imported.status();
  absl::StatusOr<PartitionCounts> counts = ModulePartitioner(module, options).Run();
  if (counts.ok()) counts->imported = *imported;
  return counts;
}

}  // namespace hlokit::spmd

namespace hlokit {
namespace {

class SpmdPartitioner : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (IsMarkedPartitioned(module)) return false;
    bool changed = false;
    if (options().Int("partitions") == 0) changed = TakePartitionsOfShardings(&module, context().diagnostics);
    spmd::PartitionOptions partition;
    partition.partitions = options().Int("partitions");
    partition.threshold_for_windowed_einsum_mib = options().Int("threshold-for-windowed-einsum-mib");
    partition.total_bytes_windowed_einsum_threshold = options().Int("total-bytes-windowed-einsum-threshold");
    partition.max_windowed_einsum_iteration = options().Int("max-windowed-einsum-iteration");
    partition.skip_checking_windowed_einsum_users = options().Bool("skip-checking-windowed-einsum-users");
    partition.disable_ag_rewrite_for_multiple_consumers = options().Bool("disable-ag-rewrite-for-multiple-consumers");
    partition.diagnostics = context().diagnostics;
    partition.remarks = context().remarks;
    const absl::StatusOr<spmd::PartitionCounts> counts = spmd::PartitionModule(module, partition);
    if (!counts.ok()) return counts.status();
    if (counts->imported > 0) Count("attributes and custom-calls of Shardy read", counts->imported);
    if (counts->computations == 0) return changed || counts->imported > 0;
    if (counts->collectives > 0) Count("collectives", counts->collectives);
    return true;
  }
};

}  // namespace

HLOKIT_PASS(SpmdPartitioner) {
  return {.name = "spmd-partitioner",
          .category = "sharding",
          .summary = "write the program for one device of many",
          .doc =
              "Each value becomes the part of it that a device has by its sharding, and each operation is divided "
              "along the factors of its sharding rule: by the axes that its operands and its result have, of which "
              "those are chosen that need the fewest bytes of communication. Instructions without a sharding are "
              "replicated (sharding-propagation gives them one). Sizes that do not divide are padded at the end. "
              "Reductions of several arrays, and scans marked associative, are taken to be associative. An "
              "operation that cannot be divided is computed whole on every device. Where a window of a divided "
              "select-and-scatter reaches behind the end of the operand, NaN before the end is not selected. "
              "Parameters and root of the entry "
              "get the shapes of parts and keep their shardings; the module is marked by the frontend attribute "
              "spmd_partitioned.",
          .example = R"(HloModule layer, num_partitions=8

ENTRY main {
  x = f32[64,256]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}
  w = f32[256,512]{1,0} parameter(1), sharding={devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  y = f32[64,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,2]<=[8]}
  ROOT z = f32[64,512]{1,0} tanh(y), sharding={devices=[4,2]<=[8]}
}
)",
          .options = {{.name = "partitions",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "0",
                       .doc = "number of devices; 0: as the module says"},
                      {.name = "threshold-for-windowed-einsum-mib",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "256",
                       .doc = "smallest operand, or scattered result, of a dot that becomes a loop over parts"},
                      {.name = "total-bytes-windowed-einsum-threshold",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "-1",
                       .doc = "bytes of both operands from which a dot becomes such a loop, instead; -1: not used",
                       .min = -1},
                      {.name = "max-windowed-einsum-iteration",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "32",
                       .doc = "most iterations of such a loop"},
                      {.name = "skip-checking-windowed-einsum-users",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "such a loop also for an operand that another dot uses"},
                      {.name = "disable-ag-rewrite-for-multiple-consumers",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "of several dots that use an operand only the first becomes such a loop"}},
          .tolerance = 1e-5,
          .create = MakePass<SpmdPartitioner>};
}

}  // namespace hlokit
