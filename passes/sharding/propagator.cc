// SPDX-License-Identifier: Apache-2.0
// Idea: XLA's. Instructions propose shardings to their users (forward.cc) and operands (backward.cc); sweeps over all
// computations go on until a whole sweep changes nothing. Each of kLevels levels lets more opcodes propose than the one
// before, so that what is certain is settled before what is a guess.
// Invariant: the shardings of the text that are fixed stay. Any other changes only to one with more tiles, or to code
// for one device (Improvement in improve.cc): so sweeps end. Cost: sweeps times instructions. An instruction that has
// proposed is skipped until something beside it changes.
#include "passes/sharding/propagator.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/side_effects.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "passes/annotations/annotations.h"
#include "passes/sharding/graph_order.h"
#include "passes/sharding/shardy_import.h"

namespace hlokit::sharding {
namespace {

constexpr std::string_view kCsePrevention = "_sharding_propagation_cse_prevention";
// Leaves of all values together: a module of few instructions can have tuples of many.
constexpr int64_t kMaxStateLeaves = int64_t{1} << 24;

bool IsManualConversion(Instruction i) {
  return IsCustomCall(i, "SPMDFullToShardShape") || IsCustomCall(i, "SPMDShardToFullShape");
}

std::vector<int64_t> UnspecifiedDims(Instruction i) {
  constexpr std::string_view kKey = "unspecified_dims=[";
  const std::string_view config = i.string_attr(Attr::kBackendConfig);
  std::vector<int64_t> dims;
  const size_t begin = config.find(kKey);
  if (begin == config.npos) return dims;
  const size_t end = config.find(']', begin);
  if (end == config.npos) return dims;
  const char* at = config.data() + begin + kKey.size();
  for (const char* last = config.data() + end; at < last; ++at) {
    int64_t dim;
    const auto [next, error] = std::from_chars(at, last, dim);
    if (error != std::errc()) break;
    if (dim >= 0 && dim < i.shape().rank()) dims.push_back(dim);
    at = next;
  }
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  return dims;
}

bool SameMetadata(const LeafTilings& a, const LeafTilings& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->metadata != b[i]->metadata) return false;
  }
  return true;
}

bool SameLeaves(const LeafTilings& a, const LeafTilings& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(*a[i] == *b[i])) return false;
  }
  return true;
}

}  // namespace

Propagator::Propagator(Module& module, const PropagationOptions& options, PropagationLog* log)
    : module_(module), options_(options), log_(log) {}

bool Propagator::InThreads(Computation computation) const {
  if (options_.threads.empty()) return true;
  return std::find(options_.threads.begin(), options_.threads.end(), computation.execution_thread()) !=
         options_.threads.end();
}

TilingRef Propagator::Intern(const Tiling& tiling) {
  Context& context = module_.context();
  const ListId leaf = EncodeLeaf(&context, LeafOf(tiling));
  auto [at, added] = by_leaf_.try_emplace(leaf.value, nullptr);
  if (added) at->second = &tilings_.emplace_back(tiling);
  return at->second;
}

absl::Span<const Shape> Propagator::LeafShapes(Instruction i) {
  std::vector<Shape>& shapes = leaf_shapes_[i.id().value];
  if (shapes.empty()) {
    // The sharding of an outfeed has the leaves of its data, and one for its token.
    if (i.opcode() == Opcode::kOutfeed && i.operand_count() > 0) shapes = Leaves(i.operand(0).shape());
    const std::vector<Shape> own = Leaves(i.shape());
    shapes.insert(shapes.end(), own.begin(), own.end());
    if (shapes.empty()) shapes.push_back(i.shape());  // an empty tuple has one leaf
  }
  return shapes;
}

const ShardingRule& Propagator::Rule(Instruction i) {
  std::unique_ptr<ShardingRule>& rule = rules_[i.id().value];
  if (rule == nullptr) rule = std::make_unique<ShardingRule>(RuleOf(i));
  return *rule;
}

void Propagator::Set(Instruction i, LeafTilings leaves) { state_[i.id().value] = std::move(leaves); }

void Propagator::SetFrom(Instruction i, LeafTilings leaves, const Source& source,
                         absl::Span<const int64_t> source_leaves) {
  if (log_ != nullptr) {
    const LeafTilings& before = Get(i);
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (!before.empty() && *before[leaf] == *leaves[leaf]) continue;
      PropagationStep step{i.id(),
                           static_cast<int64_t>(leaf),
                           source.kind,
                           source.instruction.valid() ? source.instruction.id() : InstructionId(),
                           source.leaf,
                           level_,
                           Tiling::Of(ShardingKind::kUnknown),
                           *leaves[leaf]};
      if (leaf < source_leaves.size()) step.source_leaf = source_leaves[leaf];
      if (!before.empty()) step.before = *before[leaf];
      log_->steps.push_back(std::move(step));
    }
  }
  Set(i, std::move(leaves));
}

int64_t Propagator::FirstLeaf(Shape tuple, int64_t index) const {
  int64_t first = 0;
  for (int64_t k = 0; k < index; ++k) first += tuple.element(k).leaf_count();
  return first;
}

std::vector<Instruction> Propagator::UsersOf(Instruction i) const {
  std::vector<Instruction> users = i.users();
  std::sort(users.begin(), users.end(),
            [this](Instruction a, Instruction b) { return position_[a.id().value] < position_[b.id().value]; });
  return users;
}

int64_t Propagator::NonRootUsers(Instruction i) const {
  const std::vector<Instruction> users = i.users();
  return std::count_if(users.begin(), users.end(), [](Instruction user) { return !user.is_root(); });
}

absl::Status Propagator::ReadShardings() {
  const size_t bound = module_.instruction_id_bound();
  state_.resize(bound);
  rules_.resize(bound);
  leaf_shapes_.resize(bound);
  fixed_.resize(bound);
  Context& context = module_.context();
  int64_t leaves = 0;
  for (Computation c : module_.computations()) {
    for (Instruction i : c.instructions()) {
      leaves = std::min(leaves + std::min(i.shape().leaf_count(), kMaxStateLeaves), kMaxStateLeaves + 1);
      const std::optional<uint32_t> payload = i.payload(Attr::kSharding);
      if (!payload) continue;
      const ListId id = NormalizeForShape(&context, ListId(*payload), i.shape());
      const Sharding sharding = DecodeSharding(context, id);
      const absl::Span<const Shape> shapes = LeafShapes(i);
      const bool for_all = i.opcode() == Opcode::kOutfeed && !sharding.is_tuple;
      if (!for_all && sharding.leaf_count() != static_cast<int64_t>(shapes.size())) continue;
      LeafTilings tilings;
      for (const Sharding::Run& run : sharding.runs) {
        for (int64_t n = for_all ? static_cast<int64_t>(shapes.size()) : run.count; n > 0; --n) {
          std::optional<Tiling> tiling = TilingOf(run.leaf, shapes[tilings.size()].rank());
          if (!tiling) {
            return absl::InvalidArgumentError(
                StrCat("the sharding of ", i.name(), " has too many devices to be listed"));
          }
          if (tiling->group != ShardGroup::kNone) {
            group_marks_.emplace_back(i.id(), std::pair(tiling->group_id, tiling->group == ShardGroup::kLike));
            tiling->group = ShardGroup::kNone;
            tiling->group_id = 0;
          }
          tilings.push_back(Intern(*tiling));
        }
        has_list_ = has_list_ || !run.leaf.tiles.devices.empty();
        has_iota_ = has_iota_ || run.leaf.tiles.is_iota();
      }
      Set(i, std::move(tilings));
    }
  }
  if (leaves > kMaxStateLeaves) return absl::ResourceExhaustedError("the tuples of the module have too many leaves");
  return absl::OkStatus();
}

// Gives shardings the metadata of their instruction, if they have none, or takes all away.
bool Propagator::AssignMetadata() {
  bool changed = false;
  for (Computation c : module_.computations()) {
    if (!InThreads(c)) continue;
    for (Instruction i : c.instructions()) {
      if (!Has(i)) continue;
      if (options_.propagate_metadata && !i.metadata_id().valid()) continue;
      LeafTilings leaves = Get(i);
      for (TilingRef& leaf : leaves) {
        // Of unreduced values the metadata say how they are reduced.
        if (leaf->kind == ShardingKind::kUnreduced || !leaf->unreduced.empty()) continue;
        if (leaf->metadata.empty() != options_.propagate_metadata) continue;
        Tiling tiling = *leaf;
        tiling.metadata.clear();
        if (options_.propagate_metadata) tiling.metadata.push_back(i.metadata_id());
        leaf = Intern(tiling);
        changed = true;
      }
      Set(i, std::move(leaves));
    }
  }
  return changed;
}

void Propagator::ProcessShardingCalls() {
  for (Computation c : order_) {
    if (!InThreads(c)) continue;
    const std::vector<InstructionId>& order = post_order_[c.id().value];
    for (size_t n = order.size(); n-- > 0;) {
      const Instruction i = module_.instruction(order[n]);
      if (!IsCustomCall(i, "Sharding") || i.operand_count() != 1 || !Has(i)) continue;
      const Instruction operand = i.operand(0);
      if (!Compatible(i.shape(), operand.shape())) continue;
      std::vector<int64_t> unspecified = UnspecifiedDims(i);
      if (!options_.cse_prevention_only) {
        // A copy, which needs no treatment of its own.
        for (Attr attr : {Attr::kCustomCallTarget, Attr::kBackendConfig, Attr::kCustomCallHasSideEffect,
                          Attr::kApiVersion, Attr::kOperandLayoutConstraints}) {
          if (i.has(attr)) module_.RemoveAttr(i.id(), attr);
        }
        module_.SetOpcode(i.id(), Opcode::kCopy);
        ++counts_.constraints;
      }
      if (!unspecified.empty()) {
        unspecified_[i.id()] = std::move(unspecified);
      } else if (!Has(operand) && LeafShapes(operand).size() == Get(i).size()) {
        SetFrom(operand, Get(i), {SourceKind::kConstraint, i});
        if (const auto mark = std::find_if(group_marks_.begin(), group_marks_.end(),
                                           [&](const auto& m) { return m.first == i.id(); });
            mark != group_marks_.end()) {
          group_marks_.emplace_back(operand.id(), mark->second);
        }
      }
    }
  }
}

// A loop that is the root of the entry would be fixed.
void Propagator::CopyWhileAtEntryRoot() {
  const Instruction root = module_.entry().root();
  if (root.opcode() != Opcode::kWhile || !InThreads(module_.entry())) return;
  Builder builder(&module_, module_.entry().id());
  AnnotationScope scope(&builder, {root.id()});
  const InstructionId copy =
      builder.WithName(StrCat(root.name(), ".copy")).Make(Opcode::kCopy, root.shape(), {root.id()});
  module_.SetRoot(module_.entry().id(), copy);
  if (const std::optional<uint32_t> sharding = root.payload(Attr::kSharding)) {
    module_.SetAttr(copy, Attr::kSharding, *sharding);
  }
  ++counts_.copied_loops;
}

absl::Status Propagator::CheckLoopDevices() const {
  const auto device_of = [this](Instruction i) -> std::optional<int64_t> {
    const LeafTilings& leaves = Get(i);
    if (leaves.empty()) return std::nullopt;
    for (TilingRef leaf : leaves) {
      if (leaf->kind != ShardingKind::kMaximal || leaf->device != leaves[0]->device) return std::nullopt;
    }
    return leaves[0]->device;
  };
  for (Computation c : order_) {
    if (!InThreads(c)) continue;
    for (InstructionId id : post_order_[c.id().value]) {
      const Instruction loop = module_.instruction(id);
      if (loop.opcode() != Opcode::kWhile) continue;
      const Computation body = loop.computation_attr(Attr::kBody);
      if (!body.valid()) continue;
      Instruction channel;
      std::vector<Instruction> placed;
      for (InstructionId in_body : post_order_[body.id().value]) {
        const Instruction i = module_.instruction(in_body);
        if (!device_of(i)) continue;
        const bool transfer = (HasTrait(i.opcode(), kTransfers) && HasTrait(i.opcode(), kStartsAsync)) &&
                              !i.bool_attr(Attr::kIsHostTransfer);
        const bool reduces = HasTrait(i.opcode(), kReducesAcrossDevices) && i.has(Attr::kChannelId);
        if (!channel.valid() && (transfer || reduces)) channel = i;
        placed.push_back(i);
      }
      if (!channel.valid()) continue;
      placed.push_back(loop);
      for (Instruction i : placed) {
        const std::optional<int64_t> device = device_of(i);
        if (!device || *device == *device_of(channel)) continue;
        return absl::FailedPreconditionError(StrCat("Instruction: ", i.name(), " is on device: ", *device,
                                                    ", which conflicts with device: ", *device_of(channel),
                                                    " of channel instruction: ", channel.name()));
      }
    }
  }
  return absl::OkStatus();
}

void Propagator::MarkFixed() {
  const auto any = [](const std::vector<bool>& values) {
    return std::find(values.begin(), values.end(), true) != values.end();
  };
  const bool to_output = any(options_.to_output), to_parameters = any(options_.to_parameters);
  const Instruction root = module_.entry().root();
  for (Computation c : order_) {
    if (!InThreads(c)) continue;
    for (InstructionId id : post_order_[c.id().value]) {
      const Instruction i = module_.instruction(id);
      if (!Has(i)) continue;
      // An unknown sharding marks a place that propagation decides.
      LeafTilings leaves = Get(i);
      const bool unknown =
          std::any_of(leaves.begin(), leaves.end(), [](TilingRef t) { return t->kind == ShardingKind::kUnknown; });
      if (unknown) {
        for (TilingRef& leaf : leaves) {
          if (leaf->kind != ShardingKind::kUnknown) continue;
          Tiling replicated = Tiling::Of(ShardingKind::kReplicated);
          replicated.metadata = leaf->metadata;
          leaf = Intern(replicated);
        }
        Set(i, std::move(leaves));
        continue;
      }
      fixed_[id.value] = 1;
    }
  }
  root_at_start_ = Get(root);
  for (int64_t p = 0; p < module_.entry().parameter_count(); ++p) {
    const Instruction parameter = module_.entry().parameter(p);
    parameters_at_start_.push_back(Get(parameter));
    if (to_parameters) fixed_[parameter.id().value] = 0;
  }
  if (root.opcode() != Opcode::kParameter || !to_parameters) fixed_[root.id().value] = to_output ? 0 : 1;
}

void Propagator::ClearVisited(Instruction i) { ClearVisited(i, i); }

void Propagator::ClearVisited(Instruction i, Instruction for_users) {
  for (Instruction operand : i.operands()) from_users_done_[operand.id().value] = 0;
  for (Instruction user : for_users.users()) from_operands_done_[user.id().value] = 0;
}

void Propagator::Sweep(Computation computation) {
  const std::vector<InstructionId>& order = post_order_[computation.id().value];
  const auto changed = [this](Instruction i) {
    changed_in_sweep_ = true;
    ClearVisited(i);
    ShareWithRelated(i);
  };
  for (InstructionId id : order) {
    const Instruction i = module_.instruction(id);
    if (!IsFixed(i) && group_of_.contains(id.value) && InferFromShardGroup(i)) changed(i);
  }
  for (InstructionId id : order) {
    const Instruction i = module_.instruction(id);
    if (from_operands_done_[id.value] != 0) continue;
    if (IsFixed(i)) {
      if (MayMerge() && unspecified_.contains(id) && RefineFromOperand(i)) {
        from_operands_done_[id.value] = 1;
        changed_in_sweep_ = true;
      }
      continue;
    }
    from_operands_done_[id.value] = 1;
    if (InferFromOperands(i)) changed(i);
  }
  for (size_t n = order.size(); n-- > 0;) {
    const InstructionId id = order[n];
    const Instruction i = module_.instruction(id);
    // A conversion is treated with the constraint before it.
    if (IsManualConversion(i) && from_users_done_[id.value] == 0 && i.operand_count() > 0) {
      from_users_done_[i.operand(0).id().value] = 0;
    }
    if (from_users_done_[id.value] != 0) continue;
    if (IsFixed(i)) {
      if (MayMerge() && unspecified_.contains(id) && RefineFromUsers(i)) {
        from_users_done_[id.value] = 1;
        changed_in_sweep_ = true;
      }
      continue;
    }
    from_users_done_[id.value] = 1;
    if (InferFromUsers(i)) changed(i);
  }
}

void Propagator::RunToFixedPoint(int level) {
  level_ = level;
  from_operands_done_.assign(module_.instruction_id_bound(), 0);
  from_users_done_.assign(module_.instruction_id_bound(), 0);
  do {
    changed_in_sweep_ = false;
    for (Computation c : order_) {
      if (InThreads(c)) Sweep(c);
    }
  } while (changed_in_sweep_);
}

// Parameters and results that must keep what they had.
void Propagator::RestoreBoundary() {
  const auto any = [](const std::vector<bool>& values) {
    return std::find(values.begin(), values.end(), true) != values.end();
  };
  const auto allowed = [](const std::vector<bool>& values, size_t k) {
    return values.size() == 1 ? values[0] : k < values.size() && values[k];
  };
  const Instruction root = module_.entry().root();
  if (any(options_.to_output) && Has(root) && !root_at_start_.empty() && root.shape().IsTuple()) {
    LeafTilings leaves = Get(root);
    int64_t leaf = 0;
    for (int64_t k = 0; k < root.shape().tuple_size(); ++k) {
      for (int64_t n = root.shape().element(k).leaf_count(); n > 0; --n, ++leaf) {
        if (!allowed(options_.to_output, ToSize(k)) && root_at_start_[ToSize(leaf)]->kind != ShardingKind::kUnknown) {
          leaves[ToSize(leaf)] = root_at_start_[ToSize(leaf)];
        }
      }
    }
    Set(root, std::move(leaves));
  }
  const Computation entry = module_.entry();
  const bool single_tuple = entry.parameter_count() == 1 && entry.parameter(0).shape().IsTuple();
  for (int64_t p = 0; p < entry.parameter_count(); ++p) {
    const Instruction parameter = entry.parameter(p);
    const LeafTilings& start = parameters_at_start_[ToSize(p)];
    if (!single_tuple || options_.to_parameters.size() <= 1) {
      if (allowed(options_.to_parameters, ToSize(p)) || !any(options_.to_parameters)) continue;
      Set(parameter, start);
      continue;
    }
    if (start.empty() || !Has(parameter)) continue;
    LeafTilings leaves = Get(parameter);
    int64_t leaf = 0;
    for (int64_t k = 0; k < parameter.shape().tuple_size(); ++k) {
      for (int64_t n = parameter.shape().element(k).leaf_count(); n > 0; --n, ++leaf) {
        if (!allowed(options_.to_parameters, ToSize(k))) leaves[ToSize(leaf)] = start[ToSize(leaf)];
      }
    }
    Set(parameter, std::move(leaves));
  }
}

// Tilings that were found for parameters and results of the entry must divide them.
void Propagator::ReplicateUneven() {
  const auto any = [](const std::vector<bool>& values) {
    return std::find(values.begin(), values.end(), true) != values.end();
  };
  const auto check = [&](Instruction i, const LeafTilings& start) {
    if (!Has(i)) return;
    const absl::Span<const Shape> shapes = LeafShapes(i);
    LeafTilings leaves = Get(i);
    bool uneven = false;
    for (size_t k = 0; k < leaves.size(); ++k) {
      if (!leaves[k]->tiled()) continue;
      const bool given = !start.empty() && *start[k] == *leaves[k];
      bool divides = true;
      for (int64_t d = 0; d < shapes[k].rank(); ++d) divides = divides && shapes[k].dim(d) % leaves[k]->tiles(d) == 0;
      if (given || divides) continue;
      leaves[k] = !start.empty() && start[k]->kind != ShardingKind::kUnknown
                      ? start[k]
                      : Intern(ReplicateAllDims(*leaves[k], leaves[k]->rank()));
      uneven = true;
    }
    if (uneven) SetFrom(i, std::move(leaves), {SourceKind::kNotDivisible, Instruction()});
  };
  // As XLA, the root only where each element has a value of its own.
  const Instruction root = module_.entry().root();
  const size_t elements = root.shape().IsTuple() ? ToSize(root.shape().tuple_size()) : 1;
  if (any(options_.to_output) && options_.to_output.size() == elements) check(root, root_at_start_);
  if (!any(options_.to_parameters)) return;
  for (int64_t p = 0; p < module_.entry().parameter_count(); ++p) {
    check(module_.entry().parameter(p), parameters_at_start_[ToSize(p)]);
  }
}

void Propagator::KeepCsePrevention() {
  Metadata mark;
  mark.op_name = module_.context().strings.Intern(kCsePrevention);
  const MetadataId id = module_.context().metadata.Intern(mark);
  for (Computation c : order_) {
    if (!InThreads(c)) continue;
    for (InstructionId instruction : post_order_[c.id().value]) {
      const Instruction i = module_.instruction(instruction);
      const bool target = IsBroadcastOfScalar(i);
      if (!target || !original_[instruction.value].empty()) {
        Set(i, original_[instruction.value]);
      } else if (Has(i)) {
        Tiling marked = *Get(i)[0];
        marked.metadata = {id};
        Set(i, {Intern(marked)});
      }
    }
  }
}

// As the shardings of the module are written: where all of them list their devices, so do those that follow from them.
ListId Propagator::Written(const Tiling& tiling) {
  ShardingLeaf leaf = LeafOf(tiling);
  if (has_list_ && !has_iota_) leaf.tiles.Expand(kMaxExpandedDevices);
  return EncodeLeaf(&module_.context(), leaf);
}

void Propagator::WriteShardings() {
  Context& context = module_.context();
  for (Computation c : order_) {
    for (InstructionId id : post_order_[c.id().value]) {
      const Instruction i = module_.instruction(id);
      const LeafTilings &now = state_[id.value], &before = original_[id.value];
      if (now.empty() && before.empty()) continue;
      if (SameLeaves(now, before) && SameMetadata(now, before)) continue;
      // An empty tuple within a tuple is a leaf of the sharding, and has no array here.
      if (i.shape().IsTuple() && i.shape().tuple_size() > 0 &&
          static_cast<int64_t>(now.size()) != i.shape().leaf_count()) {
        continue;
      }
      ++(before.empty() ? counts_.added : counts_.changed);
      if (now.empty()) {
        module_.RemoveAttr(id, Attr::kSharding);
        continue;
      }
      std::vector<ListId> leaves;
      for (TilingRef leaf : now) leaves.push_back(Written(*leaf));
      const bool tuple = i.shape().IsTuple() || leaves.size() > 1;
      const ListId sharding = tuple ? EncodeTupleSharding(&context, leaves) : leaves[0];
      module_.SetAttr(id, Attr::kSharding, sharding.value);
    }
  }
}

absl::StatusOr<PropagationCounts> Propagator::Run() {
  CopyWhileAtEntryRoot();
  if (absl::Status status = ReadShardings(); !status.ok()) return status;
  GraphOrder graph = GraphOrderOf(module_);
  order_ = std::move(graph.computations);
  post_order_ = std::move(graph.post_order);
  position_ = std::move(graph.position);
  original_ = state_;
  if (!options_.cse_prevention_only) {
    for (Computation c : order_) {
      if (!InThreads(c)) continue;
      for (InstructionId id : post_order_[c.id().value]) {
        if (state_[id.value].empty()) continue;
        const std::vector<MetadataId>& metadata = state_[id.value][0]->metadata;
        const bool marked = metadata.size() == 1 &&
                            module_.context().str(module_.context().metadata[metadata[0]].op_name) == kCsePrevention;
        if (marked) state_[id.value].clear();
      }
    }
  }
  AssignMetadata();
  ProcessShardingCalls();
  FindCallers();
  if (absl::Status status = CheckLoopDevices(); !status.ok()) return status;
  MarkFixed();
  ShareAtStart();
  FindShardGroups();
  for (int level = 0; level < kLevels; ++level) RunToFixedPoint(level);
  if (!groups_.empty()) {
    AgreeInShardGroups();
    RunToFixedPoint(kLevels - 1);
  }
  ShareAtStart();  // also what a second run would share before it starts
  if (options_.cse_prevention_only) {
    KeepCsePrevention();
  } else {
    RestoreBoundary();
    ReplicateUneven();
  }
  WriteShardings();
  return counts_;
}

std::vector<bool> AllowedByHeader(const Module& module, ListId list) {
  std::vector<bool> values;
  if (!list.valid()) return values;
  for (int64_t value : module.context().list(list)) values.push_back(value != 0);
  return values;
}

absl::StatusOr<PropagationCounts> PropagateShardings(Module& module, const PropagationOptions& options,
                                                     PropagationLog* log) {
  const absl::StatusOr<int64_t> imported = ImportShardy(module);
  if (!imported.ok()) return imported.status();
  absl::StatusOr<PropagationCounts> counts = Propagator(module, options, log).Run();
  if (counts.ok()) counts->imported = *imported;
  return counts;
}

}  // namespace hlokit::sharding
