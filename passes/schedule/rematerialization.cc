// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/rematerialization.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/instruction_map.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/analysis/memory.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/clone.h"
#include "passes/schedule/memory_limit.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

constexpr int kMaxRounds = 64;
constexpr int kMaxPeaks = 64;  // of one analysis
constexpr std::string_view kSuffix = ".remat";

size_t ToIndex(int32_t position) { return static_cast<size_t>(position); }

bool IsRematerialized(Instruction i) { return i.name().find(kSuffix) != std::string_view::npos; }

bool CanRematerialize(Instruction i) {
  const Opcode opcode = i.opcode();
  if (!i.shape().IsArray() || IsRematerialized(i) || i.is_root()) return false;
  if (i.has_control_edges()) return false;
  if (opcode == Opcode::kFusion) return i.enum_attr(Attr::kFusionKind, FusionKind::kCustom) != FusionKind::kCustom;
  constexpr uint32_t kNever = kControlFlow | kCollective | kSideEffect | kAsyncChain;
  if ((InfoOf(opcode).traits & kNever) != 0 || HasTrait(opcode, kForwards)) return false;
  return !HasTrait(opcode, kLeaf) && !OpcodeSet{Opcode::kCustomCall, Opcode::kUnknown}.Contains(opcode);
}

// Reduces the peaks of one computation.
class PeakReducer {
 public:
  PeakReducer(Module* module, const CostAnalysis& costs, const MemoryUse& use, RemarkCollector* remarks)
      : module_(*module),
        remarks_(remarks),
        costs_(costs),
        use_(use),
        live_bytes_(use.live_bytes),
        peak_(use.peak_position),
        position_of_(use.order, -1) {
    for (size_t position = 0; position < use.order.size(); ++position) {
      position_of_[use.order[position]] = static_cast<int32_t>(position);
    }
  }

  // Rematerializes values until the peak has fallen by `excess`, or at its highest position no candidate is left.
  // Returns their number. A value whose live range has changed is no candidate until the next analysis.
  int64_t Run(int64_t excess);

 private:
  // An operand of a candidate whose live range grows up to the clone.
  struct KeptOperand {
    int32_t last;  // position of its last use
    int64_t bytes;
  };
  struct Candidate {
    InstructionId value;
    int32_t use;                    // position of the first use after the peak
    int32_t last;                   // position of the last use before the peak
    int64_t bytes;                  // of the value
    int64_t saves;                  // bytes, less those of `kept`
    double price;                   // recomputation cost per saved byte
    std::vector<KeptOperand> kept;  // up to `use`
  };

  // Position of an instruction; of one made since the analysis, that of the use before which it was inserted.
  int32_t PositionOf(Instruction i) const {
    const auto made = made_.find(i.id().value);
    return made == made_.end() ? position_of_[i.id()] : made->second;
  }
  int32_t LastUse(Instruction i) const;
  std::vector<Candidate> Find() const;
  void RematerializeValue(const Candidate& candidate);
  int64_t ReducePeak(int64_t excess);

  void RemarkOn(const Candidate& candidate) const;

  Module& module_;
  RemarkCollector* const remarks_;
  const CostAnalysis& costs_;
  const MemoryUse& use_;
  std::vector<int64_t> live_bytes_;  // as use_.live_bytes, with the values made since
  int32_t peak_;
  InstructionMap<int32_t> position_of_;
  absl::flat_hash_map<uint32_t, int32_t> made_;  // by id of a rematerialized instruction: its position
  absl::flat_hash_set<uint32_t> touched_;        // values whose live range has changed
};

// Returns the position of the last use of the value, through tuples and aliases.
int32_t PeakReducer::LastUse(Instruction i) const {
  int32_t last = PositionOf(i);
  std::vector<Instruction> open = {i};
  for (size_t seen = 0; !open.empty() && seen < 1024; ++seen) {
    const Instruction value = open.back();
    open.pop_back();
    if (value.is_root()) return static_cast<int32_t>(use_.order.size());
    for (const auto use : value.uses()) {
      last = std::max(last, PositionOf(use.user));
      if (HasTrait(use.user.opcode(), kForwards)) open.push_back(use.user);
    }
  }
  return open.empty() ? last : static_cast<int32_t>(use_.order.size());
}

std::vector<PeakReducer::Candidate> PeakReducer::Find() const {
  std::vector<Candidate> candidates;
  const int32_t peak = peak_;
  for (const LiveBuffer& buffer : use_.buffers) {
    const bool made_here = buffer.kind == BufferKind::kTemporary || buffer.kind == BufferKind::kResult;
    if (!made_here || buffer.begin >= peak || buffer.end <= peak) continue;
    if (touched_.contains(buffer.defining_instruction.value)) continue;
    const Instruction i = module_.instruction(buffer.defining_instruction);
    if (!CanRematerialize(i) || buffer.bytes == 0) continue;
    int32_t next = -1, last = buffer.begin;
    bool plain = true;  // every use is at a known position, none at the peak
    for (const auto use : i.uses()) {
      const int32_t at = PositionOf(use.user);
      plain &= at != peak && !HasTrait(use.user.opcode(), kForwards);
      if (at > peak && (next < 0 || at < next)) next = at;
      if (at < peak) last = std::max(last, at);
    }
    // No use after the peak: the memory is reused by another value.
    if (!plain || next < 0) continue;
    std::vector<KeptOperand> kept;
    int64_t kept_bytes = 0;
    bool all = true;
    for (Instruction operand : i.operands()) {
      const Opcode opcode = operand.opcode();
      if (HasTrait(opcode, kLeaf)) continue;
      const int32_t last_use = LastUse(operand);
      if (last_use >= next) continue;
      kept.push_back({last_use, BufferBytes(operand.shape())});
      kept_bytes += kept.back().bytes;
      all &= operand.shape().IsArray();
    }
    if (!all || kept_bytes > buffer.bytes / 2) continue;
    const Cost& cost = costs_.Of(i);
    const double saved = static_cast<double>(buffer.bytes - kept_bytes);
    const double price = static_cast<double>(cost.bytes()) + static_cast<double>(cost.flops) / 64;
    candidates.push_back({i.id(), next, last, buffer.bytes, buffer.bytes - kept_bytes, price / saved, std::move(kept)});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.price < b.price; });
  return candidates;
}

void PeakReducer::RemarkOn(const Candidate& candidate) const {
  Remark remark(RemarkRule::kRematerialized, module_.instruction(candidate.value));
  remark.Text(" is computed again before ");
  remark.Name("Use", module_.instruction(use_.order[ToIndex(candidate.use)]));
  remark.Text(": it does not live at the peak at ").Name("Peak", module_.instruction(use_.order[ToIndex(peak_)]));
  remark.Text(" of ").Number("PeakBytes", live_bytes_[ToIndex(peak_)]).Text(" bytes, which saves ");
  remark.Number("Bytes", candidate.saves).Text(" bytes");
  if (candidate.saves < candidate.bytes) {
    remark.Text(" (").Number("ValueBytes", candidate.bytes).Text(" of the value less ");
    remark.Number("OperandBytes", candidate.bytes - candidate.saves).Text(" of operands that live longer)");
  }
  remarks_->Add(std::move(remark));
}

void PeakReducer::RematerializeValue(const Candidate& candidate) {
  if (remarks_ != nullptr) RemarkOn(candidate);
  const Instruction i = module_.instruction(candidate.value);
  std::vector<InstructionId> operands;
  for (Instruction operand : i.operands()) operands.push_back(operand.id());
  ComputationId fused;
  if (i.opcode() == Opcode::kFusion) fused = CloneWithFusions(module_, i.computation_attr(Attr::kCalls).id());
  Builder builder(&module_, use_.order[static_cast<size_t>(candidate.use)]);
  builder.WithName(StrCat(i.name(), kSuffix));
  const InstructionId again = builder.MakeClone(candidate.value, operands);
  if (fused.valid()) module_.SetAttr(again, Attr::kCalls, fused.value);
  made_.emplace(again.value, candidate.use);
  // Keeps later passes from moving or merging the clone before the peak.
  const int64_t after[] = {use_.order[static_cast<size_t>(peak_)].value};
  module_.SetAttr(again, Attr::kControlPredecessors, module_.ListPayload(after));
  std::vector<std::pair<InstructionId, int64_t>> later;
  for (const auto use : module_.instruction(candidate.value).uses()) {
    if (PositionOf(use.user) > peak_) later.push_back({use.user.id(), use.operand_index});
  }
  for (const auto& [user, index] : later) module_.ReplaceOperand(user, index, again);
}

int64_t PeakReducer::ReducePeak(int64_t excess) {
  int64_t made = 0;
  std::vector<int64_t> change(live_bytes_.size() + 1, 0);  // of live_bytes_, from the position before
  for (const Candidate& candidate : Find()) {
    if (excess <= 0) break;
    bool free = !touched_.contains(candidate.value.value);
    for (Instruction operand : module_.instruction(candidate.value).operands()) {
      free &= !touched_.contains(operand.id().value) && !made_.contains(operand.id().value);
    }
    if (!free) continue;
    touched_.insert(candidate.value.value);
    for (Instruction operand : module_.instruction(candidate.value).operands()) {
      if (!HasTrait(operand.opcode(), kLeaf)) {
        touched_.insert(operand.id().value);
      }
    }
    RematerializeValue(candidate);
    change[static_cast<size_t>(candidate.last) + 1] -= candidate.bytes;
    change[static_cast<size_t>(candidate.use)] += candidate.bytes;
    for (const KeptOperand& operand : candidate.kept) {
      change[static_cast<size_t>(operand.last) + 1] += operand.bytes;
      change[static_cast<size_t>(candidate.use) + 1] -= operand.bytes;
    }
    excess -= candidate.saves;
    ++made;
  }
  int64_t sum = 0;
  for (size_t position = 0; position < live_bytes_.size(); ++position) {
    sum += change[position];
    live_bytes_[position] += sum;
  }
  return made;
}

int64_t PeakReducer::Run(int64_t excess) {
  const int64_t limit = live_bytes_[static_cast<size_t>(peak_)] - excess;
  int64_t made = 0;
  for (int round = 0; round < kMaxPeaks; ++round) {
    const int64_t more = ReducePeak(live_bytes_[static_cast<size_t>(peak_)] - limit);
    made += more;
    const auto highest = std::max_element(live_bytes_.begin(), live_bytes_.end());
    const auto position = static_cast<int32_t>(highest - live_bytes_.begin());
    if (more == 0 || *highest <= limit || position == peak_) break;
    peak_ = position;
  }
  return made;
}

// Says that the peak stays above the limit, and names the largest array that lives there.
void RemarkOnPeak(const Module& module, const MemoryUse& use, int64_t peak, int64_t limit, RemarkCollector* remarks) {
  Remark remark(RemarkRule::kPeakAboveLimit, module.instruction(use.order[ToIndex(use.peak_position)]));
  remark.Text(" is at the peak of ").Number("PeakBytes", peak).Text(" bytes, above the limit of ");
  remark.Number("Limit", limit).Text(" bytes: no value is left whose recomputation would lower it");
  const LiveBuffer* largest = nullptr;
  for (const LiveBuffer& buffer : use.buffers) {
    if (buffer.begin > use.peak_position || buffer.end < use.peak_position) continue;
    if (largest == nullptr || buffer.bytes > largest->bytes) largest = &buffer;
  }
  if (largest != nullptr && largest->defining_instruction.valid()) {
    remark.Text("; the largest array there is ").Name("Largest", module.instruction(largest->defining_instruction));
    remark.Text(" of ").Number("LargestBytes", largest->bytes).Text(" bytes");
  }
  remarks->Add(std::move(remark));
}

}  // namespace

absl::StatusOr<RematerializationCounts> Rematerialize(Module& module, int64_t limit_bytes, RemarkCollector* remarks) {
  remarks = RemarksFor(remarks, RemarkCategory::kMemory);
  RematerializationCounts counts;
  if (!module.header().is_scheduled || !module.entry().valid()) return counts;
  absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module);
  if (!memory.ok()) return memory.status();
  // Of the instructions there are now: rematerialized ones are not rematerialized again.
  std::optional<CostAnalysis> costs;
  for (int round = 0; round <= kMaxRounds; ++round) {
    const int64_t peak = memory->OfModule().peak_bytes;
    if (round == 0) counts.peak_before = peak;
    counts.peak_after = peak;
    if (peak <= limit_bytes || round == kMaxRounds) break;
    if (!costs) costs.emplace(module);
    // Find the computation at the peak, from the entry through its callees.
    Computation c = module.entry();
    int64_t made = 0;
    for (int depth = 0; depth < kMaxRounds && made == 0; ++depth) {
      const MemoryUse& use = memory->Of(c);
      if (use.order.empty()) break;
      made = PeakReducer(&module, *costs, use, remarks).Run(peak - limit_bytes);
      if (made > 0) break;
      const Instruction at = module.instruction(use.order[static_cast<size_t>(use.peak_position)]);
      Computation largest;
      if (HasTrait(at.opcode(), kControlFlow) && at.opcode() != Opcode::kFusion) {
        at.ForEachCallee([&](Computation callee) {
          if (!largest.valid() ||
              memory->Of(callee).peak_bytes_beyond_arguments > memory->Of(largest).peak_bytes_beyond_arguments) {
            largest = callee;
          }
        });
      }
      if (!largest.valid()) break;
      c = largest;
    }
    if (made == 0) break;
    counts.instructions += made;
    if (absl::Status status = memory->Update(module, c); !status.ok()) return status;
  }
  if (remarks != nullptr && counts.peak_after > limit_bytes) {
    const MemoryUse& use = memory->Of(module.entry());
    if (!use.order.empty()) RemarkOnPeak(module, use, counts.peak_after, limit_bytes, remarks);
  }
  return counts;
}

namespace {

class Rematerialization : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<RematerializationCounts> counts =
        Rematerialize(module, HbmBytes(*this, tpu::TargetOf(*this, module)), context().remarks);
    if (!counts.ok()) return counts.status();
    if (counts->instructions == 0) return false;
    Count("instructions computed again", counts->instructions);
    Count("bytes at the peak before", counts->peak_before);
    Count("bytes at the peak", counts->peak_after);
    return true;
  }
};

}  // namespace

HLOKIT_PASS(Rematerialization) {
  return {.name = "rematerialization",
          .category = "schedule",
          .summary = "recompute values to reduce the peak memory",
          .doc =
              "Values that are live but unused at the peak of the schedule are recomputed before their next "
              "use, those with the lowest cost per saved byte first, until the peak is below the limit or "
              "there is no candidate left.",
          .example = R"(HloModule again, is_scheduled=true

ENTRY main {
  x = f32[20480,32768]{1,0} parameter(0)
  w = f32[32768,32768]{1,0} parameter(1)
  v = f32[32768,32768]{1,0} parameter(2)
  a = f32[20480,32768]{1,0} tanh(x)
  d = f32[20480,32768]{1,0} dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[20480,32768]{1,0} tanh(d)
  c = f32[20480,32768]{1,0} multiply(b, d)
  e = f32[20480,32768]{1,0} dot(c, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[20480,32768]{1,0} add(a, e)
}
)",
          .options = {tpu::DeviceOption(), HbmBytesOption()},
          .preconditions = kScheduled,
          .create = MakePass<Rematerialization>};
}

}  // namespace hlokit
