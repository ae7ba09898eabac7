// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/shardy_propagation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/graph/instruction_queries.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "ir/sharding/tiling_reshape.h"
#include "ir/text/frontend_attributes.h"
#include "passes/core/pass_row.h"
#include "passes/sharding/graph_order.h"
#include "passes/sharding/sdy_text.h"
#include "passes/sharding/sharding_rule.h"
#include "passes/sharding/shardy_import.h"

namespace hlokit::sharding {
namespace {

// The tiling of one array, and which of its dimensions may gain axes.
struct OpenTiling {
  Tiling tiling = Tiling::Of(ShardingKind::kReplicated);
  std::vector<bool> open;
  bool known = false;  // the text or propagation has given it something
};

constexpr int kRounds = 5;

class ShardyPropagator {
 public:
  explicit ShardyPropagator(Module& module) : module_(module), order_(GraphOrderOf(module)) {}

  absl::StatusOr<PropagationCounts> Run() {
    if (absl::Status status = Read(); !status.ok()) return status;
    if (devices_ == 0) return PropagationCounts();
    MarkManual();
    for (round_ = 0; round_ < kRounds; ++round_) {
      do {
        progress_ = false;
        for (Computation c : order_.computations) {
          const std::vector<InstructionId>& order = order_.post_order[c.id().value];
          for (InstructionId id : order) Visit(module_.instruction(id));
          for (size_t n = order.size(); n-- > 0;) Visit(module_.instruction(order[n]));
        }
      } while (progress_);
    }
    CutUneven();
    return Write();
  }

 private:
  using LeafList = std::vector<OpenTiling>;

  absl::Status Read();
  absl::Status ReadSharding(Instruction i, LeafList* leaves);
  void ReadSdy(Instruction i, LeafList* leaves);
  void MarkManual();
  void Visit(Instruction i);
  void VisitEdges(Instruction i);
  void VisitRule(Instruction i);
  // Makes two leaves of one value equal, as far as they agree.
  void Tie(OpenTiling* a, OpenTiling* b);
  bool Extend(OpenTiling* target, size_t dim, const AxisList& axes);
  void CutUneven();
  PropagationCounts Write();
  LeafList& At(Instruction i) { return state_[i.id().value]; }
  std::string_view Sdy(Instruction i, std::string_view key) const {
    const StringId value = FindFrontendAttribute(i, key);
    return value.valid() ? module_.context().str(value) : std::string_view();
  }

  Module& module_;
  const GraphOrder order_;
  std::vector<LeafList> state_;                    // by instruction
  std::vector<uint8_t> has_, fixed_;               // the text gives it a sharding; it keeps that
  absl::flat_hash_map<uint32_t, LeafList> given_;  // by id: what the text says of parameters and the root of the entry
  std::vector<std::unique_ptr<ShardingRule>> rules_;
  std::string meshes_;
  int64_t devices_ = 0;  // of all tilings
  int round_ = 0;
  bool progress_ = false;
};

absl::Status ShardyPropagator::ReadSharding(Instruction i, LeafList* leaves) {
  Context& context = module_.context();
  const ListId id = NormalizeForShape(&context, ListId(*i.payload(Attr::kSharding)), i.shape());
  const Sharding sharding = DecodeSharding(context, id);
  if (sharding.leaf_count() != static_cast<int64_t>(leaves->size())) return absl::OkStatus();
  size_t at = 0;
  for (const Sharding::Run& run : sharding.runs) {
    for (int64_t n = 0; n < run.count; ++n, ++at) {
      OpenTiling& leaf = (*leaves)[at];
      std::optional<Tiling> tiling = TilingOf(run.leaf, static_cast<int64_t>(leaf.open.size()));
      if (!tiling) {
        return absl::InvalidArgumentError(StrCat("the sharding of ", i.name(), " has too many devices to be listed"));
      }
      leaf.tiling = *std::move(tiling);
      leaf.known = leaf.tiling.kind != ShardingKind::kUnknown;
      leaf.open.assign(leaf.open.size(), !leaf.known);
    }
  }
  return absl::OkStatus();
}

void ShardyPropagator::ReadSdy(Instruction i, LeafList* leaves) {
  const bool to_global = IsCustomCall(i, kToGlobal);
  const std::string_view text = Sdy(i, to_global ? "xla.sdy.out_shardings" : "xla.sdy.sharding");
  if (text.empty()) return;
  const std::vector<Shape> shapes = Leaves(i.shape());
  const std::optional<std::vector<SdySharding>> parsed = ParseSdyShardings(text, meshes_, shapes);
  if (!parsed) return;
  for (size_t k = 0; k < leaves->size(); ++k) {
    (*leaves)[k].tiling = (*parsed)[k].tiling;
    (*leaves)[k].tiling.Normalize();
    (*leaves)[k].open = (*parsed)[k].open;
    (*leaves)[k].known = true;
  }
  has_[i.id().value] = 1;
}

absl::Status ShardyPropagator::Read() {
  const size_t bound = module_.instruction_id_bound();
  state_.resize(bound);
  has_.resize(bound);
  fixed_.resize(bound);
  rules_.resize(bound);
  meshes_ = SdyMeshesOf(module_);
  const auto allowed = [&](ListId list, int64_t k) {
    if (!list.valid()) return false;
    const absl::Span<const int64_t> values = module_.context().list(list);
    if (values.size() == 1) return values[0] != 0;
    return k < static_cast<int64_t>(values.size()) && values[ToSize(k)] != 0;
  };
  int64_t count = 0;
  for (Computation c : order_.computations) {
    for (InstructionId id : order_.post_order[c.id().value]) {
      const Instruction i = module_.instruction(id);
      count += std::min<int64_t>(i.shape().leaf_count(), kMaxLeaves);
      if (count > kMaxLeaves) return absl::ResourceExhaustedError("the tuples of the module have too many leaves");
      LeafList& leaves = At(i);
      for (Shape shape : Leaves(i.shape())) leaves.emplace_back().open.assign(ToSize(shape.rank()), true);
      if (i.has(Attr::kSharding)) {
        if (absl::Status status = ReadSharding(i, &leaves); !status.ok()) return status;
        has_[id.value] = 1;
        if (c.is_entry() && (i.opcode() == Opcode::kParameter || i.is_root())) given_[id.value] = leaves;
      }
      ReadSdy(i, &leaves);
      const bool parameter = c.is_entry() && i.opcode() == Opcode::kParameter;
      for (size_t k = 0; k < leaves.size(); ++k) {
        OpenTiling& leaf = leaves[k];
        const bool free =
            (parameter &&
             allowed(module_.header().allow_spmd_sharding_propagation_to_parameters, i.parameter_number())) ||
            (i.is_root() && c.is_entry() &&
             allowed(module_.header().allow_spmd_sharding_propagation_to_output, static_cast<int64_t>(k)));
        if (free && i.has(Attr::kSharding)) leaf.open.assign(leaf.open.size(), true);
        if (leaf.tiling.tiled()) devices_ = std::max(devices_, leaf.tiling.device_count);
      }
    }
  }
  // Only values of one order of devices relate.
  for (LeafList& leaves : state_) {
    for (OpenTiling& leaf : leaves) {
      const Tiling& t = leaf.tiling;
      if (t.tiled() && (t.device_count != devices_ || !t.order.empty())) leaf.open.assign(leaf.open.size(), false);
    }
  }
  return absl::OkStatus();
}

// Values inside a manual computation over all axes are manual.
void ShardyPropagator::MarkManual() {
  std::vector<Computation> pending;
  const auto mark = [&](Instruction i) {
    for (OpenTiling& leaf : At(i)) {
      leaf.tiling = Tiling::Of(ShardingKind::kManual);
      leaf.open.assign(leaf.open.size(), false);
      leaf.known = true;
    }
    has_[i.id().value] = 1;
    fixed_[i.id().value] = 1;
    i.ForEachCallee([&](Computation callee) {
      if (HasTrait(i.opcode(), kControlFlow)) pending.push_back(callee);
    });
  };
  for (Computation c : order_.computations) {
    for (InstructionId id : order_.post_order[c.id().value]) {
      const Instruction i = module_.instruction(id);
      if (IsCustomCall(i, kToLocal)) {
        // Over all axes of the mesh that its shardings name.
        const std::string_view in = Sdy(i, "xla.sdy.in_shardings");
        const size_t mesh = in.find("mesh<[");
        const std::string_view axes = mesh == in.npos ? "" : in.substr(mesh, in.find(']', mesh) - mesh);
        const size_t manual = CountSdyAxes(Sdy(i, "xla.sdy.manual_axes"));
        if (manual == 0 || (!axes.empty() && manual != CountSdyAxes(axes))) continue;
        mark(i);
        std::vector<Shape> shapes;
        for (Instruction operand : i.operands()) shapes.push_back(operand.shape());
        if (const auto parsed = ParseSdyShardings(in, meshes_, shapes)) {
          for (int64_t k = 0; k < i.operand_count(); ++k) {
            OpenTiling wanted{(*parsed)[ToSize(k)].tiling, std::vector<bool>(ToSize(shapes[ToSize(k)].rank())), true};
            devices_ = std::max(devices_, wanted.tiling.device_count);
            if (At(i.operand(k)).size() == 1) Tie(&wanted, &At(i.operand(k))[0]);
          }
        }
        continue;
      }
      if (IsCustomCall(i, kToGlobal) || fixed_[id.value] != 0) continue;
      bool manual = false;
      for (Instruction operand : i.operands()) manual = manual || fixed_[operand.id().value] != 0;
      if (manual) mark(i);
    }
  }
  while (!pending.empty()) {
    const Computation c = pending.back();
    pending.pop_back();
    for (InstructionId id : order_.post_order[c.id().value]) {
      if (fixed_[id.value] == 0) mark(module_.instruction(id));
    }
  }
}

// Adds the axes that `axes` has beyond those of the dimension, up to the first that the array uses elsewhere.
bool ShardyPropagator::Extend(OpenTiling* target, size_t dim, const AxisList& axes) {
  if (dim >= target->open.size() || !target->open[dim]) return false;
  Tiling& t = target->tiling;
  if (!t.tiled()) {
    if (t.kind != ShardingKind::kReplicated && t.kind != ShardingKind::kUnknown) return false;
    Tiling tiled = Tiling::Of(ShardingKind::kTiled);
    tiled.device_count = devices_;
    tiled.dims.resize(target->open.size());
    tiled.metadata = t.metadata;
    t = std::move(tiled);
  }
  const auto done = [&](bool changed) {
    if (changed) {
      progress_ = true;
      target->known = true;
    } else {
      t.Normalize();
    }
    return changed;
  };
  const AxisList& have = t.dims[dim];
  if (have == axes || !IsPrefix(have, axes)) return done(false);
  AxisList used = t.replicated;
  for (const AxisList& other : t.dims) used.insert(used.end(), other.begin(), other.end());
  for (const AxisList* list : {&t.manual, &t.unreduced, &t.maximal})
    used.insert(used.end(), list->begin(), list->end());
  AxisList rest = axes, extended = have;
  if (!TakeMajor(&rest, SizeOf(have))) return done(false);
  for (const DeviceAxis& axis : rest) {
    const std::optional<AxisList> left = Subtract({axis}, used, devices_);
    if (!left || left->empty() || left->front().end() != axis.end()) break;
    AxisList candidate = extended;
    AppendAxis(&candidate, left->front());
    // All axes of the array must belong to one factorization.
    std::vector<const AxisList*> lists = {&t.manual, &t.unreduced, &t.maximal, &t.replicated, &candidate};
    for (size_t d = 0; d < t.dims.size(); ++d) {
      if (d != dim) lists.push_back(&t.dims[d]);
    }
    if (!Complement(lists, devices_)) break;
    extended = std::move(candidate);
    if (left->front() != axis) break;
  }
  if (extended == have) return done(false);
  t.dims[dim] = std::move(extended);
  return done(true);
}

void ShardyPropagator::Tie(OpenTiling* a, OpenTiling* b) {
  if (a->open.size() != b->open.size()) return;
  for (size_t d = 0; d < a->open.size(); ++d) {
    if (a->tiling.tiled()) Extend(b, d, a->tiling.dims[d]);
    if (b->tiling.tiled()) Extend(a, d, b->tiling.dims[d]);
  }
}

void ShardyPropagator::VisitEdges(Instruction i) {
  const auto tie_all = [&](LeafList& a, size_t a_first, LeafList& b, size_t b_first, size_t count) {
    for (size_t k = 0; k < count && a_first + k < a.size() && b_first + k < b.size(); ++k) {
      Tie(&a[a_first + k], &b[b_first + k]);
    }
  };
  LeafList& own = At(i);
  const Opcode opcode = i.opcode();
  if (opcode == Opcode::kTuple) {
    size_t first = 0;
    for (Instruction operand : i.operands()) {
      tie_all(own, first, At(operand), 0, At(operand).size());
      first += At(operand).size();
    }
    return;
  }
  if (opcode == Opcode::kGetTupleElement) {
    size_t first = 0;
    for (int64_t k = 0; k < i.int_attr(Attr::kIndex); ++k) {
      first += ToSize(i.operand(0).shape().element(k).leaf_count());
    }
    tie_all(own, 0, At(i.operand(0)), first, own.size());
    return;
  }
  if (opcode == Opcode::kWhile) {
    const Computation body = i.computation_attr(Attr::kBody), condition = i.computation_attr(Attr::kCondition);
    for (Instruction other : {i.operand(0), body.root(), body.parameter(0), condition.parameter(0)}) {
      tie_all(own, 0, At(other), 0, own.size());
    }
    return;
  }
  if (OpcodeSet{Opcode::kCall, Opcode::kConditional}.Contains(opcode)) {
    const bool call = i.opcode() == Opcode::kCall;
    const std::vector<Computation> callees = i.called_computations();
    for (size_t n = 0; n < callees.size(); ++n) {
      tie_all(own, 0, At(callees[n].root()), 0, own.size());
      for (int64_t p = 0; p < callees[n].parameter_count(); ++p) {
        const int64_t operand = call ? p : static_cast<int64_t>(n) + 1;
        if (operand < i.operand_count()) {
          tie_all(At(callees[n].parameter(p)), 0, At(i.operand(operand)), 0, At(i.operand(operand)).size());
        }
      }
    }
    return;
  }
  if (i.operand_count() > 0 && Compatible(i.shape(), i.operand(0).shape())) {
    tie_all(own, 0, At(i.operand(0)), 0, own.size());
  }
}

void ShardyPropagator::Visit(Instruction i) {
  if (fixed_[i.id().value] != 0) return;
  const RuleClass rule = RuleClassOf(i);
  if (rule == RuleClass::kForwarding) {
    VisitEdges(i);
    return;
  }
  const bool early = rule == RuleClass::kElementwise || rule == RuleClass::kReshape || rule == RuleClass::kTranspose ||
                     rule == RuleClass::kBitcastConvert || rule == RuleClass::kDynamicSlice ||
                     rule == RuleClass::kDynamicUpdateSlice;
  if (round_ < 2) {
    if (!early) return;
    // First where no operand is used elsewhere too.
    for (Instruction operand : i.operands()) {
      if (round_ == 0 && operand.users().size() > 1) return;
    }
  }
  if (rule != RuleClass::kNothing && rule != RuleClass::kSource) VisitRule(i);
}

// Carries axes along the factors of one operation: for each factor the axes of one array, which others get as far as
// they agree.
void ShardyPropagator::VisitRule(Instruction i) {
  std::unique_ptr<ShardingRule>& rule_of = rules_[i.id().value];
  if (rule_of == nullptr) rule_of = std::make_unique<ShardingRule>(RuleOf(i));
  const ShardingRule& rule = *rule_of;
  if (!rule.known) return;
  struct Array {
    OpenTiling* value;
    const ArrayFactors* factors;
    bool result;
    int64_t bytes;
  };
  std::vector<Array> arrays;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape shape = i.operand(k).shape();
    if (!shape.IsArray()) continue;
    arrays.push_back({&At(i.operand(k))[0], &rule.operands[ToSize(k)], false, ByteSize(shape)});
  }
  const std::vector<Shape> result_shapes = Leaves(i.shape());
  for (size_t k = 0; k < result_shapes.size() && k < rule.results.size(); ++k) {
    arrays.push_back({&At(i)[k], &rule.results[k], true, ByteSize(result_shapes[k])});
  }
  const bool broadcast = RuleClassOf(i) == RuleClass::kBroadcast;
  const bool slices = RuleClassOf(i) == RuleClass::kDynamicSlice || RuleClassOf(i) == RuleClass::kDynamicUpdateSlice;
  const auto sizes_of = [&](const std::vector<int32_t>& dim) {
    std::vector<int64_t> sizes;
    for (int32_t f : dim) sizes.push_back(rule.factors[ToSize(f)].size);
    return sizes;
  };
  struct Candidate {
    AxisList axes;
    int32_t factor;
    size_t array;
  };
  std::vector<Candidate> candidates;
  std::vector<std::vector<AxisList>> have(arrays.size(), std::vector<AxisList>(rule.factors.size()));
  for (size_t a = 0; a < arrays.size(); ++a) {
    const Tiling& tiling = arrays[a].value->tiling;
    if (!tiling.tiled() || tiling.device_count != devices_ || !tiling.order.empty()) continue;
    for (size_t d = 0; d < arrays[a].factors->size(); ++d) {
      const std::vector<int32_t>& dim = (*arrays[a].factors)[d];
      std::vector<AxisList> lists = AxesByFactor(tiling.dims[d], sizes_of(dim));
      for (size_t k = 0; k < dim.size(); ++k) {
        // Until the last rounds only factors that need no communication.
        const FactorKind kind = rule.factors[ToSize(dim[k])].kind;
        if (round_ == 2 && kind != FactorKind::kParallel) continue;
        if (!lists[k].empty()) candidates.push_back({lists[k], dim[k], a});
        have[a][ToSize(dim[k])] = std::move(lists[k]);
      }
    }
  }
  // The larger array decides, then the first; of elementwise operations the one that is divided more.
  const bool elementwise = RuleClassOf(i) == RuleClass::kElementwise;
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& x, const Candidate& y) {
    if (elementwise && SizeOf(x.axes) != SizeOf(y.axes)) return SizeOf(x.axes) > SizeOf(y.axes);
    if (arrays[x.array].bytes != arrays[y.array].bytes) return arrays[x.array].bytes > arrays[y.array].bytes;
    return x.array != y.array ? x.array < y.array : x.factor < y.factor;
  });
  for (const Candidate& candidate : candidates) {
    for (size_t a = 0; a < arrays.size(); ++a) {
      const bool forward = arrays[a].result && !arrays[candidate.array].result;
      if (a == candidate.array || (broadcast && forward && round_ < 4)) continue;
      if (slices && round_ < 2 && !forward) continue;
      AxisList& now = have[a][ToSize(candidate.factor)];
      if (now == candidate.axes || !IsPrefix(now, candidate.axes)) continue;
      for (size_t d = 0; d < arrays[a].factors->size(); ++d) {
        const std::vector<int32_t>& dim = (*arrays[a].factors)[d];
        const auto at = std::find(dim.begin(), dim.end(), candidate.factor);
        if (at == dim.end()) continue;
        std::vector<AxisList> lists;
        for (int32_t f : dim) lists.push_back(f == candidate.factor ? candidate.axes : have[a][ToSize(f)]);
        if (!Extend(arrays[a].value, d, AxesOfFactors(lists, sizes_of(dim)))) continue;
        std::vector<AxisList> updated = AxesByFactor(arrays[a].value->tiling.dims[d], sizes_of(dim));
        for (size_t k = 0; k < dim.size(); ++k) have[a][ToSize(dim[k])] = std::move(updated[k]);
      }
    }
  }
}

// Axes that were found for parameters and results of the entry, beyond those of the text, must divide them.
void ShardyPropagator::CutUneven() {
  const auto cut = [&](Instruction i) {
    const auto given = given_.find(i.id().value);
    if (has_[i.id().value] != 0 && given == given_.end()) return;
    const std::vector<Shape> shapes = Leaves(i.shape());
    for (size_t k = 0; k < shapes.size(); ++k) {
      Tiling& tiling = At(i)[k].tiling;
      // An outfeed, a token, has the sharding of its operand.
      if (!tiling.tiled() || !shapes[k].IsArray() || tiling.rank() != shapes[k].rank()) continue;
      for (size_t d = 0; d < tiling.dims.size(); ++d) {
        AxisList rest = tiling.dims[d];
        tiling.dims[d] = TakeMajorDivisor(&rest, shapes[k].dim(static_cast<int64_t>(d)));
        if (given == given_.end() || d >= given->second[k].tiling.dims.size()) continue;
        const AxisList& least = given->second[k].tiling.dims[d];
        if (least.size() > tiling.dims[d].size()) tiling.dims[d] = least;
      }
      tiling.Normalize();
    }
  };
  for (int64_t p = 0; p < module_.entry().parameter_count(); ++p) cut(module_.entry().parameter(p));
  cut(module_.entry().root());
}

PropagationCounts ShardyPropagator::Write() {
  Context& context = module_.context();
  PropagationCounts counts;
  for (Computation c : order_.computations) {
    for (InstructionId id : order_.post_order[c.id().value]) {
      const Instruction i = module_.instruction(id);
      const LeafList& leaves = At(i);
      const bool known =
          has_[id.value] != 0 || std::any_of(leaves.begin(), leaves.end(), [](const OpenTiling& t) { return t.known; });
      if (!known || leaves.empty()) continue;
      std::vector<ListId> ids;
      for (const OpenTiling& leaf : leaves) {
        Tiling tiling = leaf.tiling;
        if (tiling.kind == ShardingKind::kUnknown) tiling = Tiling::Of(ShardingKind::kReplicated);
        ids.push_back(EncodeLeaf(&context, LeafOf(tiling)));
      }
      const ListId sharding = i.shape().IsTuple() ? EncodeTupleSharding(&context, ids) : ids[0];
      const std::optional<uint32_t> before = i.payload(Attr::kSharding);
      if (before && SameSharding(context, ListId(*before), sharding)) continue;
      module_.SetAttr(id, Attr::kSharding, sharding.value);
      ++(before ? counts.changed : counts.added);
    }
  }
  return counts;
}

}  // namespace

absl::StatusOr<PropagationCounts> PropagateLikeShardy(Module& module) { return ShardyPropagator(module).Run(); }

}  // namespace hlokit::sharding

namespace hlokit {
namespace {

class ShardyPropagation : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    // A manual computation within another one, or in a loop, is beyond Shardy's own forms: its axes are read first.
    int64_t imported = 0;
    if (HasInnerManualComputation(module)) {
      const absl::StatusOr<int64_t> read = sharding::ImportShardy(module);
      if (!read.ok()) return read.status();
      imported = *read;
      if (imported > 0) Count("attributes and custom-calls of Shardy read", imported);
    }
    const absl::StatusOr<sharding::PropagationCounts> counts = sharding::PropagateLikeShardy(module);
    if (!counts.ok()) return counts.status();
    if (counts->added > 0) Count("shardings added", counts->added);
    if (counts->changed > 0) Count("shardings changed", counts->changed);
    return imported + counts->total() > 0;
  }

 private:
  static bool HasInnerManualComputation(const Module& module) {
    for (Computation c : module.computations()) {
      if (c == module.entry()) continue;
      for (Instruction i : c.instructions()) {
        if (IsCustomCall(i, "xla.sdy.GlobalToLocalShape")) {
          return true;
        }
      }
    }
    return false;
  }
};

}  // namespace

HLOKIT_PASS(ShardyPropagation) {
  return {.name = "shardy-propagation",
          .category = "sharding",
          .summary = "spread shardings factor by factor",
          .doc =
              "Propagation by Shardy's policy over the same rules: each operation in turn carries axes "
              "along its factors, in rounds from elementwise operations to everything. Dimensions that "
              "are given are closed unless the text opens them; parameters and results as the header "
              "allows. Shardings and meshes may be Shardy's frontend attributes. Priorities, sharding "
              "groups and manual computations over some of the axes are not read.",
          .example = R"(HloModule layer

ENTRY main {
  x = f32[64,256]{1,0} parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  w = f32[256,512]{1,0} parameter(1), sharding={devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  y = f32[64,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[64,512]{1,0} tanh(y)
}
)",
          .preserves = "the program: only shardings change.",
          .create = MakePass<ShardyPropagation>};
}

}  // namespace hlokit
