// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/rematerialization.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/analysis/memory.h"
#include "passes/rewrite/clone.h"

namespace hlokit {
namespace {

constexpr int kMaxRounds = 64;
constexpr std::string_view kSuffix = ".remat";

bool IsRematerialized(Instruction i) { return i.name().find(kSuffix) != std::string_view::npos; }

bool CanRematerialize(Instruction i) {
  const Opcode opcode = i.opcode();
  if (!i.shape().IsArray() || IsRematerialized(i) || i.is_root()) return false;
  if (i.has(Attr::kControlPredecessors) || !i.control_successors().empty()) return false;
  if (opcode == Opcode::kFusion) return i.enum_attr(Attr::kFusionKind, FusionKind::kCustom) != FusionKind::kCustom;
  constexpr uint32_t kNever = kControlFlow | kCollective | kSideEffect | kStartsAsync | kUpdatesAsync | kEndsAsync;
  if ((InfoOf(opcode).traits & kNever) != 0 || HasTrait(opcode, kForwards)) return false;
  return opcode != Opcode::kParameter && opcode != Opcode::kConstant && opcode != Opcode::kCustomCall &&
         opcode != Opcode::kUnknown;
}

// Reduces the peak of one computation.
class PeakReducer {
 public:
  PeakReducer(Module* module, const CostAnalysis& costs, const MemoryUse& use)
      : module_(*module), costs_(costs), use_(use) {
    position_of_.assign(module->instruction_id_bound(), -1);
    for (size_t place = 0; place < use.order.size(); ++place) {
      position_of_[use.order[place].value] = static_cast<int32_t>(place);
    }
  }

  // Rematerializes values until the peak has fallen by `excess` or no candidate is left. Returns their number.
  int64_t Run(int64_t excess);

 private:
  struct Candidate {
    InstructionId value;
    int32_t use;    // position of the first use after the peak
    int64_t saves;  // bytes at the peak
    double price;   // recomputation cost per saved byte
  };

  int32_t LastUse(Instruction i) const;
  std::vector<Candidate> Find() const;
  void RematerializeValue(const Candidate& candidate);

  Module& module_;
  const CostAnalysis& costs_;
  const MemoryUse& use_;
  std::vector<int32_t> position_of_;
};

// Returns the position of the last use of the value, through tuples and aliases.
int32_t PeakReducer::LastUse(Instruction i) const {
  int32_t last = position_of_[i.id().value];
  std::vector<Instruction> open = {i};
  for (size_t seen = 0; !open.empty() && seen < 1024; ++seen) {
    const Instruction value = open.back();
    open.pop_back();
    if (value.is_root()) return static_cast<int32_t>(use_.order.size());
    for (const auto use : value.uses()) {
      last = std::max(last, position_of_[use.user.id().value]);
      if (HasTrait(use.user.opcode(), kForwards)) open.push_back(use.user);
    }
  }
  return open.empty() ? last : static_cast<int32_t>(use_.order.size());
}

std::vector<PeakReducer::Candidate> PeakReducer::Find() const {
  std::vector<Candidate> candidates;
  const int32_t peak = use_.peak_position;
  for (const LiveBuffer& buffer : use_.buffers) {
    const bool made_here = buffer.kind == BufferKind::kTemporary || buffer.kind == BufferKind::kResult;
    if (!made_here || buffer.begin >= peak || buffer.end <= peak) continue;
    const Instruction i = module_.instruction(buffer.defining_instruction);
    if (!CanRematerialize(i) || buffer.bytes == 0) continue;
    int32_t next = -1;
    bool plain = true;  // every use is at a known position, none at the peak
    for (const auto use : i.uses()) {
      const int32_t at = position_of_[use.user.id().value];
      plain &= at != peak && !HasTrait(use.user.opcode(), kForwards);
      if (at > peak && (next < 0 || at < next)) next = at;
    }
    // No use after the peak: the memory is reused by another value.
    if (!plain || next < 0) continue;
    int64_t kept = 0;  // bytes of operands whose live range grows
    bool all = true;
    for (Instruction operand : i.operands()) {
      const Opcode opcode = operand.opcode();
      if (opcode == Opcode::kParameter || opcode == Opcode::kConstant) continue;
      if (LastUse(operand) >= next) continue;
      kept += BufferBytes(operand.shape());
      all &= operand.shape().IsArray();
    }
    if (!all || kept > buffer.bytes / 2) continue;
    const Cost& cost = costs_.Of(i);
    const double saved = static_cast<double>(buffer.bytes - kept);
    const double price = static_cast<double>(cost.bytes()) + static_cast<double>(cost.flops) / 64;
    candidates.push_back({i.id(), next, buffer.bytes - kept, price / saved});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.price < b.price; });
  return candidates;
}

void PeakReducer::RematerializeValue(const Candidate& candidate) {
  const Instruction i = module_.instruction(candidate.value);
  std::vector<InstructionId> operands;
  for (Instruction operand : i.operands()) operands.push_back(operand.id());
  ComputationId fused;
  if (i.opcode() == Opcode::kFusion) fused = CloneWithFusions(module_, i.computation_attr(Attr::kCalls).id());
  Builder builder(&module_, use_.order[static_cast<size_t>(candidate.use)]);
  builder.WithName(StrCat(i.name(), kSuffix));
  const InstructionId again = builder.MakeClone(candidate.value, operands);
  if (fused.valid()) module_.SetAttr(again, Attr::kCalls, fused.value);
  // Keeps later passes from moving or merging the clone before the peak.
  const int64_t after[] = {use_.order[static_cast<size_t>(use_.peak_position)].value};
  module_.SetAttr(again, Attr::kControlPredecessors, module_.ListPayload(after));
  std::vector<std::pair<InstructionId, int64_t>> later;
  for (const auto use : module_.instruction(candidate.value).uses()) {
    if (position_of_[use.user.id().value] > use_.peak_position) later.push_back({use.user.id(), use.operand_index});
  }
  for (const auto& [user, index] : later) module_.ReplaceOperand(user, index, again);
}

int64_t PeakReducer::Run(int64_t excess) {
  int64_t made = 0;
  std::vector<uint8_t> touched(module_.instruction_id_bound(), 0);
  for (const Candidate& candidate : Find()) {
    if (excess <= 0) break;
    // Live ranges changed by this round: reconsider the candidate in the next one.
    bool free = touched[candidate.value.value] == 0;
    for (Instruction operand : module_.instruction(candidate.value).operands()) {
      free &= operand.id().value < touched.size() && touched[operand.id().value] == 0;
    }
    if (!free) continue;
    touched[candidate.value.value] = 1;
    for (Instruction operand : module_.instruction(candidate.value).operands()) {
      if (operand.opcode() != Opcode::kParameter && operand.opcode() != Opcode::kConstant) {
        touched[operand.id().value] = 1;
      }
    }
    RematerializeValue(candidate);
    excess -= candidate.saves;
    ++made;
  }
  return made;
}

}  // namespace

absl::StatusOr<RematerializationCounts> Rematerialize(Module& module, int64_t limit_bytes) {
  RematerializationCounts counts;
  if (!module.header().is_scheduled || !module.entry().valid()) return counts;
  for (int round = 0; round <= kMaxRounds; ++round) {
    const absl::StatusOr<MemoryAnalysis> memory = MemoryAnalysis::Create(module);
    if (!memory.ok()) return memory.status();
    const int64_t peak = memory->OfModule().peak_bytes;
    if (round == 0) counts.peak_before = peak;
    counts.peak_after = peak;
    if (peak <= limit_bytes || round == kMaxRounds) break;
    const CostAnalysis costs(module);
    // Find the computation at the peak, from the entry through its callees.
    Computation c = module.entry();
    int64_t made = 0;
    for (int depth = 0; depth < kMaxRounds && made == 0; ++depth) {
      const MemoryUse& use = memory->Of(c);
      if (use.order.empty()) break;
      made = PeakReducer(&module, costs, use).Run(peak - limit_bytes);
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
  }
  return counts;
}

}  // namespace hlokit
