// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/memory_space_assignment.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/graph/instruction_map.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/analysis/loop.h"
#include "passes/analysis/trip_count.h"
#include "passes/schedule/loop_pinning.h"
#include "passes/schedule/loop_state.h"
#include "passes/schedule/module_memory_state.h"
#include "passes/schedule/vector_memory.h"
#include "passes/schedule/vmem_interval_selection.h"
#include "passes/schedule/vmem_remarks.h"
#include "passes/target/aliases.h"
#include "passes/target/cost_model.h"
#include "passes/target/minor_to_major.h"
#include "passes/target/tiling.h"

namespace hlokit {
namespace {

constexpr int32_t kMaxLiveRange = 1024;        // positions that a live interval may span
constexpr int32_t kMaxPrefetchInterval = 128;  // positions between the start of a prefetch and its use
constexpr size_t kMaxPrefetchUses = 64;        // of a prefetched array
constexpr size_t kMaxAliases = 16;             // of an array, under other shapes

// Assigns memory spaces in one computation.
class Assigner {
 public:
  Assigner(ModuleMemoryState* shared, Computation computation)
      : shared_(*shared),
        module_(shared->module),
        options_(shared->options),
        counts_(shared->counts),
        remarks_(shared->module, shared->options.vmem_bytes, shared->options.remarks),
        c_(computation) {}

  // Collects the intervals that are in VMEM from definition to last use. Requires: callees are done.
  void AllocatePinned();
  // Collects evictions and prefetches, and changes the module. Requires: callers are done.
  absl::Status Move();
  // Pins the selected loop state (PinLoopState). Requires: Move has run for all computations.
  absl::Status PinState() const {
    if (pinned_.empty()) return absl::OkStatus();
    return PinLoopState(module_, module_.instruction(shared_.loop_of[c_.id().value]), pinned_);
  }

 private:
  // The live interval of an array defined here, in schedule positions.
  struct CandidateInterval {
    InstructionId value;  // defining instruction, or get-tuple-element of a kernel's result
    int32_t from = 0;
    int32_t to = 0;       // last use that can read from VMEM
    bool leaves = false;  // has a use in HBM, or beyond the interval
    int64_t bytes = 0;
    int32_t first_hbm_use = 0;                // position of the first such use
    int32_t copied = 0;                       // position at which the copy to HBM is done
    std::vector<InstructionId> aliases = {};  // instructions that reshape the array or update it in place
  };
  struct Prefetch {
    InstructionId source;
    int32_t start = 0;
    int32_t use = 0;
    std::vector<InstructionId> readers;
  };

  void ComputePositions();
  int64_t PaddedBytes(Shape array) const { return tpu::PaddedBytes(shared_.tile, array); }
  absl::flat_hash_set<uint32_t> NamesOfState(const LoopVariantElement& element) const;
  double SavedBy(const LoopVariantElement& element);
  void ChooseLoopState();
  // Returns the kernel that defines the array of this value, or an invalid instruction.
  Instruction DefiningKernel(Instruction value) const;
  void CollectIntervals();
  struct Times {
    double compute = 0;  // in seconds
    double transfer = 0;
    double duration = 0;  // with the latencies of the kernel
  };
  // Returns the cost of the kernel at a position, or null.
  const tpu::KernelCost* WorkOf(int32_t position);
  Times TimesOf(int32_t position);
  std::vector<VmemInterval::SavedTransfer> TransfersSavedBy(const CandidateInterval& interval) const;
  bool Fits(int32_t from, int32_t to, int64_t bytes) const;
  void Hold(int32_t from, int32_t to, int64_t bytes);
  void ComputeIdleBandwidth();
  double TransferOf(Shape array) const;
  void ReserveBandwidth(int32_t from, int32_t to, double seconds);
  void CollectEvictions();
  std::vector<Prefetch> CollectPrefetches();
  absl::Status Evict(const CandidateInterval& interval);
  absl::Status InsertPrefetch(const Prefetch& prefetch);

  int32_t PositionOf(InstructionId id) const { return position_of_[id]; }
  InstructionId At(int32_t position) const {
    return position < static_cast<int32_t>(order_.size()) ? order_[static_cast<size_t>(position)] : InstructionId();
  }

  ModuleMemoryState& shared_;
  Module& module_;
  const MemorySpaceOptions& options_;
  MemorySpaceCounts& counts_;
  VmemRemarks remarks_;
  const Computation c_;

  std::vector<InstructionId> order_;
  InstructionMap<int32_t> position_of_;
  std::vector<int64_t> free_bytes_;                   // by position: free bytes of VMEM
  std::vector<uint8_t> closed_;                       // by position: runs a loop, with which no copy overlaps
  std::vector<double> idle_seconds_;                  // by position: seconds in which HBM is idle
  std::vector<double> elapsed_seconds_;               // by position: of the instruction
  std::vector<std::optional<tpu::KernelCost>> work_;  // by position, computed on demand
  std::vector<CandidateInterval> intervals_;
  std::vector<LoopVariantElement> pinned_;  // elements of the loop's state
  absl::flat_hash_set<uint32_t> in_vmem_;
};

void Assigner::ComputePositions() {
  for (Instruction i : c_.instructions()) order_.push_back(i.id());
  position_of_ = InstructionMap<int32_t>(order_);
  free_bytes_.assign(order_.size(), options_.vmem_bytes);
  work_.resize(order_.size());
  closed_.assign(order_.size(), 0);
  for (size_t position = 0; position < order_.size(); ++position) {
    position_of_[order_[position]] = static_cast<int32_t>(position);
    const Instruction i = module_.instruction(order_[position]);
    free_bytes_[position] -= shared_.BytesHeldByCallees(i);
    if (!MightHaveCalledComputations(i.opcode()) || i.opcode() == Opcode::kFusion) continue;
    closed_[position] = i.opcode() == Opcode::kWhile;
    i.ForEachCallee([&](Computation callee) { closed_[position] |= shared_.loops[callee.id().value]; });
  }
}

// Returns all aliases of the old and the new value of the element.
absl::flat_hash_set<uint32_t> Assigner::NamesOfState(const LoopVariantElement& element) const {
  absl::flat_hash_set<uint32_t> names;
  const auto add = [&](Instruction value) {
    for (InstructionId name : NamesOf(value)) names.insert(name.value);
  };
  add(element.value);
  for (const auto use : c_.parameter(0).uses()) {
    if (IsStateElement(use.user, c_, element.index)) add(use.user);
  }
  return names;
}

// Returns the seconds per iteration of transfers that access the element.
double Assigner::SavedBy(const LoopVariantElement& element) {
  const absl::flat_hash_set<uint32_t> names = NamesOfState(element);
  double bytes = 0;
  for (int32_t position = 0; position < static_cast<int32_t>(order_.size()); ++position) {
    const tpu::KernelCost* work = WorkOf(position);
    if (work == nullptr) continue;
    for (const tpu::MemoryAccess& access : work->reads) bytes += names.contains(access.value.value) ? access.bytes : 0;
    for (const tpu::MemoryAccess& access : work->writes) bytes += names.contains(access.value.value) ? access.bytes : 0;
  }
  return bytes / (shared_.target.HbmRate() * shared_.target.parts);
}

// Pins loop-variant arrays, smallest first: those that every iteration replaces, then those that it updates in part.
void Assigner::ChooseLoopState() {
  const InstructionId loop_id = shared_.loop_of[c_.id().value];
  if (!loop_id.valid() || free_bytes_.empty()) return;
  const Instruction loop = module_.instruction(loop_id);
  // In a loop that may run only once, the copies would cost more than they save.
  const int64_t trip_count = TripCount(loop).value_or(1);
  if (trip_count < 2 || !MatchCanonicalLoop(loop, shared_.callers)) return;
  const Instruction init = loop.operand(0);
  if (init.opcode() != Opcode::kTuple || !IsFlat(loop.shape())) return;
  // The condition reads the induction variable; other elements that it reads stay in HBM.
  const Computation condition = loop.computation_attr(Attr::kCondition);
  absl::flat_hash_set<int64_t> in_condition;
  for (Instruction i : condition.instructions()) {
    if (IsStateElement(i, condition)) in_condition.insert(i.int_attr(Attr::kIndex));
    if (IsKernel(i) && i.shape().IsArray() && !i.shape().IsScalar()) return;
  }
  std::vector<std::tuple<bool, int64_t, LoopVariantElement>> changing;
  for (const LoopVariantElement& element : LoopVariantElements(c_)) {
    if (in_condition.contains(element.index)) continue;
    // To VMEM and back.
    const double copies = 2 * (TransferOf(element.value.shape()) + shared_.target.machine.hbm_latency);
    if (CanPin(element, c_) && SavedBy(element) * static_cast<double>(trip_count) > copies)
      changing.emplace_back(element.in_place, PaddedBytes(element.value.shape()), element);
  }
  std::stable_sort(changing.begin(), changing.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  const int32_t last = static_cast<int32_t>(order_.size()) - 1;
  const std::vector<int64_t> before = free_bytes_;
  absl::flat_hash_set<int64_t> kept;
  for (const auto& [in_place, bytes, element] : changing) {
    const bool moves = IsStateElement(element.value, c_);
    // The old value is live from the start to its last use, the new one from its definition to the end.
    int32_t end = in_place ? last : 0;
    for (const auto use : c_.parameter(0).uses()) {
      if (!IsStateElement(use.user, c_, element.index)) continue;
      for (InstructionId name : NamesOf(use.user)) {
        end = std::max(end, PositionOf(name));
        for (const auto read : module_.instruction(name).uses()) end = std::max(end, PositionOf(read.user.id()));
      }
    }
    const int32_t made = moves || in_place ? last + 1 : PositionOf(element.value.id());
    const int64_t over = moves || in_place ? -1 : OperandWrittenOver(element.value, c_);
    const bool itself = over >= 0 && element.value.operand(over).int_attr(Attr::kIndex) == element.index;
    if (itself) end = made - 1;
    const bool freed = over >= 0 && !itself && kept.contains(element.value.operand(over).int_attr(Attr::kIndex));
    if (!Fits(0, end, bytes) || (made <= last && !Fits(freed ? made + 1 : made, last, bytes))) continue;
    if (made <= end && !Fits(std::max(made, freed ? made + 1 : made), std::min(end, last), 2 * bytes)) continue;
    Hold(0, end, bytes);
    if (made <= last) Hold(freed ? made + 1 : made, last, bytes);
    kept.insert(element.index);
    pinned_.push_back(element);
  }
  absl::flat_hash_set<uint32_t> names;
  for (const LoopVariantElement& element : pinned_) {
    for (uint32_t name : NamesOfState(element)) names.insert(name);
  }
  // If an array moves between elements, or is in two of them, pin all of these elements or none.
  bool closed = true;
  for (int64_t k = 0; k < c_.root().operand_count(); ++k) {
    closed = closed && (kept.contains(k) || !names.contains(c_.root().operand(k).id().value));
  }
  for (const auto use : c_.parameter(0).uses()) {
    closed = closed && (!names.contains(use.user.id().value) || kept.contains(use.user.int_attr(Attr::kIndex)));
  }
  if (!closed) {
    pinned_.clear();
    free_bytes_ = before;
    return;
  }
  in_vmem_.insert(names.begin(), names.end());
  counts_.pinned += static_cast<int64_t>(pinned_.size());
}

Instruction Assigner::DefiningKernel(Instruction value) const {
  if (!value.shape().IsArray() || value.shape().IsScalar() || tpu::MemorySpaceOf(value.shape()) != 0)
    return Instruction();
  if (value.opcode() != Opcode::kGetTupleElement) {
    return IsKernel(value) && !IsLayoutBitcast(value) && InPlaceOperands(value).empty() ? value : Instruction();
  }
  const Instruction kernel = value.operand(0);
  if (!IsKernel(kernel) || !IsFlat(kernel.shape()) || !InPlaceOperands(kernel).empty() || kernel.is_root()) {
    return Instruction();
  }
  for (const auto use : kernel.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) return Instruction();
    if (use.user != value && use.user.int_attr(Attr::kIndex) == value.int_attr(Attr::kIndex)) return Instruction();
  }
  return kernel;
}

void Assigner::CollectIntervals() {
  for (int32_t position = 0; position < static_cast<int32_t>(order_.size()); ++position) {
    const Instruction i = module_.instruction(At(position));
    const Instruction kernel = DefiningKernel(i);
    if (!kernel.valid() || in_vmem_.contains(i.id().value)) continue;
    const auto end = static_cast<int32_t>(order_.size());
    CandidateInterval interval{i.id(), PositionOf(kernel.id()), -1, i.is_root(), PaddedBytes(i.shape()), end, end};
    if (interval.bytes > options_.vmem_bytes) {
      remarks_.AddMissed(RemarkRule::kVmemTooLarge, i.id(), position, position, interval.bytes);
    }
    if (interval.bytes <= 0 || interval.bytes > options_.vmem_bytes) continue;
    InstructionId unable;  // a user that cannot read it in VMEM
    bool far = false;      // no, only too far away
    std::vector<Instruction> open = {i};
    bool lost = false;  // has a use in HBM under another shape
    while (!open.empty()) {
      const Instruction value = open.back();
      open.pop_back();
      for (const auto use : value.uses()) {
        const int32_t at = PositionOf(use.user.id());
        const bool same = IsArrayAlias(use.user) || IsUpdatedInPlaceBy(value, use.user, use.operand_index);
        if (same && !use.user.is_root() && interval.aliases.size() < kMaxAliases) {
          interval.aliases.push_back(use.user.id());
          open.push_back(use.user);
        } else if (same || !CanReadFromVmem(use.user, use.operand_index) || at - interval.from > kMaxLiveRange) {
          interval.leaves = true;
          if (!unable.valid()) {
            unable = use.user.id();
            far = !same && CanReadFromVmem(use.user, use.operand_index);
          }
          // The copy to HBM has the original shape, so only direct users can read it.
          lost |= value != i || (same && !use.user.is_root());
          interval.first_hbm_use = std::min(interval.first_hbm_use, at);
        } else {
          interval.to = std::max(interval.to, at);
        }
      }
    }
    if (!lost && interval.to > position) {
      intervals_.push_back(interval);
    } else if (i.has_users()) {
      remarks_.AddUser(far ? RemarkRule::kVmemLiveRangeTooLong : RemarkRule::kVmemUnreadable, i.id(), unable,
                       interval.bytes);
    }
  }
  // Shortest interval first, ties in schedule order.
  std::stable_sort(intervals_.begin(), intervals_.end(), [](const CandidateInterval& a, const CandidateInterval& b) {
    return a.to - a.from != b.to - b.from ? a.to - a.from < b.to - b.from : a.from < b.from;
  });
}

bool Assigner::Fits(int32_t from, int32_t to, int64_t bytes) const {
  for (int32_t position = from; position <= to; ++position) {
    if (free_bytes_[static_cast<size_t>(position)] < bytes) return false;
  }
  return true;
}

void Assigner::Hold(int32_t from, int32_t to, int64_t bytes) {
  for (int32_t position = from; position <= to; ++position) free_bytes_[static_cast<size_t>(position)] -= bytes;
}

const tpu::KernelCost* Assigner::WorkOf(int32_t position) {
  const Instruction i = module_.instruction(At(position));
  if (!IsKernel(i) || IsLayoutBitcast(i)) return nullptr;
  std::optional<tpu::KernelCost>& work = work_[static_cast<size_t>(position)];
  if (!work) work = shared_.model.KernelCostOf(i);
  return &*work;
}

// Returns the times of computation and of HBM transfers, without arrays in VMEM.
Assigner::Times Assigner::TimesOf(int32_t position) {
  const tpu::KernelCost* work = WorkOf(position);
  if (work == nullptr) return {};
  tpu::OpTime time;
  shared_.model.Kernel(*work,
                       {.in_vmem = [&](InstructionId value) { return in_vmem_.contains(value.value) ? 1.0 : 0.0; },
                        .prefetchable = [](InstructionId) { return false; }},
                       &time);
  const double transfer = std::exchange(time.times[static_cast<size_t>(tpu::Resource::kHbm)], 0);
  time.times[static_cast<size_t>(tpu::Resource::kOverhead)] = 0;
  return {*std::max_element(time.times.begin(), time.times.end()), transfer, time.duration};
}

// Returns the transfers saved by the interval: those of the defining kernel and of the readers, under all aliases.
std::vector<VmemInterval::SavedTransfer> Assigner::TransfersSavedBy(const CandidateInterval& interval) const {
  const double seconds = static_cast<double>(interval.bytes) / (shared_.target.HbmRate() * shared_.target.parts);
  std::vector<VmemInterval::SavedTransfer> saved = {{interval.from, seconds}};
  const auto add_readers = [&](InstructionId name) {
    for (const auto use : module_.instruction(name).uses()) {
      if (!IsArrayAlias(use.user)) saved.push_back({PositionOf(use.user.id()), seconds});
    }
  };
  add_readers(interval.value);
  for (InstructionId alias : interval.aliases) add_readers(alias);
  return saved;
}

void Assigner::AllocatePinned() {
  ComputePositions();
  ChooseLoopState();
  CollectIntervals();
  std::vector<ScheduleSlot> slots;
  for (size_t position = 0; position < order_.size(); ++position) {
    const Instruction i = module_.instruction(order_[position]);
    const Times times = TimesOf(static_cast<int32_t>(position));
    slots.push_back({free_bytes_[position], tpu::GeneratesCode(i), times.compute, times.transfer});
  }
  std::vector<VmemInterval> candidates;
  std::vector<const CandidateInterval*> interval_of;
  for (const CandidateInterval& interval : intervals_) {
    if (interval.leaves) continue;
    candidates.push_back({interval.from, interval.to, interval.bytes, TransfersSavedBy(interval)});
    interval_of.push_back(&interval);
  }
  for (size_t k : SelectVmemIntervals(candidates, slots)) {
    const CandidateInterval& interval = *interval_of[k];
    Hold(interval.from, interval.to, interval.bytes);
    in_vmem_.insert(interval.value.value);
    for (InstructionId alias : interval.aliases) in_vmem_.insert(alias.value);
    ++counts_.pinned;
    remarks_.AddPlaced(RemarkRule::kPinnedInVmem, interval.value, interval.from, interval.to, interval.bytes);
  }
  for (const CandidateInterval* interval : interval_of) {
    if (in_vmem_.contains(interval->value.value)) continue;
    remarks_.AddMissed(RemarkRule::kVmemFull, interval->value, interval->from, interval->to, interval->bytes);
  }
  int64_t least = options_.vmem_bytes;
  for (int64_t bytes : free_bytes_) least = std::min(least, bytes);
  shared_.held[c_.id().value] = options_.vmem_bytes - least;
}

double Assigner::TransferOf(Shape array) const {
  return static_cast<double>(PaddedBytes(array)) / (shared_.target.HbmRate() * shared_.target.parts);
}

void Assigner::ReserveBandwidth(int32_t from, int32_t to, double seconds) {
  for (int32_t position = from; position < to && seconds > 0; ++position) {
    const double taken = std::min(seconds, idle_seconds_[static_cast<size_t>(position)]);
    idle_seconds_[static_cast<size_t>(position)] -= taken;
    seconds -= taken;
  }
}

// Selects the intervals whose copy to HBM overlaps completely with other work.
void Assigner::CollectEvictions() {
  for (CandidateInterval& interval : intervals_) {
    if (!interval.leaves) continue;
    const Instruction value = module_.instruction(interval.value);
    const double needed = TransferOf(value.shape());
    const int32_t start = PositionOf(interval.value) + 1;
    const int32_t latest = std::min(interval.first_hbm_use, interval.from + kMaxLiveRange);
    const double copied = needed + shared_.target.machine.hbm_latency;
    double found = 0, elapsed = 0;
    int32_t end = start;
    while (end < latest && (found < needed || elapsed < copied) && closed_[static_cast<size_t>(end)] == 0) {
      found += idle_seconds_[static_cast<size_t>(end)];
      elapsed += elapsed_seconds_[static_cast<size_t>(end++)];
    }
    const int32_t last = std::min(std::max(interval.to, end), static_cast<int32_t>(order_.size()) - 1);
    const bool idle = found >= needed && elapsed >= copied;
    if (!idle || !Fits(interval.from, last, interval.bytes)) {
      remarks_.AddMissed(idle ? RemarkRule::kVmemFull : RemarkRule::kVmemNoIdleTime, interval.value, interval.from,
                         last, interval.bytes);
      continue;
    }
    ReserveBandwidth(start, end, needed);
    Hold(interval.from, last, interval.bytes);
    interval.copied = end;
    in_vmem_.insert(interval.value.value);
    for (InstructionId alias : interval.aliases) in_vmem_.insert(alias.value);
    ++counts_.evicted;
    remarks_.AddPlaced(RemarkRule::kEvictedFromVmem, interval.value, interval.from, last, interval.bytes);
  }
}

// Computes how long each instruction takes and leaves HBM idle, without arrays in VMEM.
void Assigner::ComputeIdleBandwidth() {
  idle_seconds_.assign(order_.size(), 0);
  elapsed_seconds_.assign(order_.size(), 0);
  for (size_t position = 0; position < order_.size(); ++position) {
    const Times times = TimesOf(static_cast<int32_t>(position));
    idle_seconds_[position] = std::max(0.0, times.compute - times.transfer);
    elapsed_seconds_[position] = times.duration;
  }
}

std::vector<Assigner::Prefetch> Assigner::CollectPrefetches() {
  std::vector<Prefetch> prefetches;
  absl::flat_hash_set<uint32_t> done;  // arrays already considered
  for (int32_t use = 0; use < static_cast<int32_t>(order_.size()); ++use) {
    const Instruction reader = module_.instruction(At(use));
    if (!IsKernel(reader) || IsLayoutBitcast(reader)) continue;
    for (int64_t k = 0; k < reader.operand_count(); ++k) {
      if (!CanReadFromVmem(reader, k)) continue;
      const Instruction source = reader.operand(k);
      if (!source.shape().IsArray() || source.shape().IsScalar() || tpu::MemorySpaceOf(source.shape()) != 0) continue;
      if (in_vmem_.contains(source.id().value) || !done.insert(source.id().value).second) continue;
      const int64_t bytes = PaddedBytes(source.shape());
      // Few bytes arrive with the launch of the kernel that reads them.
      constexpr int64_t kMinPrefetchBytes = 4096;
      if (bytes <= kMinPrefetchBytes || bytes > options_.vmem_bytes) continue;
      // Later uses within reach, as long as the interval fits.
      std::vector<int32_t> reads = {use};
      size_t uses = 0;
      for (const auto other : source.uses()) {
        if (++uses > kMaxPrefetchUses) break;
        const int32_t at = PositionOf(other.user.id());
        if (at > use && at - use <= kMaxPrefetchInterval && !IsLayoutBitcast(other.user) &&
            CanReadFromVmem(other.user, other.operand_index)) {
          reads.push_back(at);
        }
      }
      std::sort(reads.begin(), reads.end());
      while (reads.size() > 1 && !Fits(use, reads.back(), bytes)) reads.pop_back();
      const int32_t last = reads.back();
      if (!Fits(use, last, bytes)) {
        remarks_.AddMissed(RemarkRule::kVmemFull, source.id(), use, last, bytes);
        continue;
      }
      // Start the prefetch early enough that the idle time suffices.
      const double needed = TransferOf(source.shape());
      const int32_t earliest = std::max(PositionOf(source.id()) + 1, use - kMaxPrefetchInterval);
      const double copied = needed + shared_.target.machine.hbm_latency;
      double found = 0, elapsed = 0;
      int32_t start = use;
      while (start > earliest && (found < needed || elapsed < copied) && closed_[static_cast<size_t>(start - 1)] == 0 &&
             free_bytes_[static_cast<size_t>(start - 1)] >= bytes) {
        found += idle_seconds_[static_cast<size_t>(--start)];
        elapsed += elapsed_seconds_[static_cast<size_t>(start)];
      }
      if (found < needed || elapsed < copied) {
        remarks_.AddMissed(RemarkRule::kVmemNoIdleTime, source.id(), start, use, bytes);
        continue;
      }
      ReserveBandwidth(start, use, needed);
      Hold(start, last, bytes);
      Prefetch prefetch{source.id(), start, use, {}};
      for (int32_t position : reads) prefetch.readers.push_back(At(position));
      prefetches.push_back(std::move(prefetch));
      ++counts_.prefetched;
      remarks_.AddPlaced(RemarkRule::kPrefetchedToVmem, source.id(), start, last, bytes);
    }
  }
  return prefetches;
}

absl::Status Assigner::Evict(const CandidateInterval& interval) {
  const Shape in_hbm = module_.instruction(interval.value).shape();
  const Shape in_vmem = InVmem(module_.context().shapes, in_hbm);
  module_.SetShape(interval.value, in_vmem);
  if (const Instruction part = module_.instruction(interval.value); part.opcode() == Opcode::kGetTupleElement) {
    const absl::Span<const Shape> old = part.operand(0).shape().elements();
    std::vector<Shape> elements(old.begin(), old.end());
    elements[static_cast<size_t>(part.int_attr(Attr::kIndex))] = in_vmem;
    module_.SetShape(part.operand(0).id(), module_.context().shapes.Tuple(elements));
  }
  for (InstructionId alias : interval.aliases)
    module_.SetShape(alias, InVmem(module_.context().shapes, module_.instruction(alias).shape()));
  if (!interval.leaves) return absl::OkStatus();
  std::vector<std::pair<InstructionId, int64_t>> first_hbm_use;
  for (const auto use : module_.instruction(interval.value).uses()) {
    const bool same =
        IsArrayAlias(use.user) || IsUpdatedInPlaceBy(module_.instruction(interval.value), use.user, use.operand_index);
    if (same && !use.user.is_root()) continue;
    if (!same && CanReadFromVmem(use.user, use.operand_index) && PositionOf(use.user.id()) <= interval.to) continue;
    first_hbm_use.push_back({use.user.id(), use.operand_index});
  }
  const absl::StatusOr<InstructionId> copy =
      AddAsyncCopy(module_, interval.value, in_hbm, At(PositionOf(interval.value) + 1), At(interval.copied));
  if (!copy.ok()) return copy.status();
  for (const auto& [user, index] : first_hbm_use) module_.ReplaceOperand(user, index, *copy);
  if (module_.instruction(interval.value).is_root()) module_.SetRoot(module_.record(interval.value).parent, *copy);
  return absl::OkStatus();
}

absl::Status Assigner::InsertPrefetch(const Prefetch& prefetch) {
  const Shape result = InVmem(module_.context().shapes, module_.instruction(prefetch.source).shape());
  const absl::StatusOr<InstructionId> copy =
      AddAsyncCopy(module_, prefetch.source, result, At(prefetch.start), At(prefetch.use));
  if (!copy.ok()) return copy.status();
  for (InstructionId reader : prefetch.readers) {
    for (int64_t k = 0; k < module_.instruction(reader).operand_count(); ++k) {
      if (module_.instruction(reader).operand(k).id() != prefetch.source) continue;
      if (CanReadFromVmem(module_.instruction(reader), k)) module_.ReplaceOperand(reader, k, *copy);
    }
  }
  return absl::OkStatus();
}

absl::Status Assigner::Move() {
  for (int64_t& bytes : free_bytes_) bytes -= shared_.outside[c_.id().value];
  ComputeIdleBandwidth();
  CollectEvictions();
  std::vector<Prefetch> prefetches;
  if (options_.prefetch) prefetches = CollectPrefetches();
  for (size_t position = 0; position < order_.size(); ++position) {
    counts_.peak_bytes = std::max(counts_.peak_bytes, options_.vmem_bytes - free_bytes_[position]);
    const Instruction i = module_.instruction(order_[position]);
    if (!MightHaveCalledComputations(i.opcode()) || i.opcode() == Opcode::kFusion) continue;
    const int64_t held = options_.vmem_bytes - free_bytes_[position] - shared_.BytesHeldByCallees(i);
    i.ForEachCallee([&](Computation callee) {
      int64_t& outside = shared_.outside[callee.id().value];
      outside = std::max(outside, held);
    });
  }
  for (const CandidateInterval& interval : intervals_) {
    if (!in_vmem_.contains(interval.value.value)) continue;
    if (absl::Status status = Evict(interval); !status.ok()) return status;
  }
  for (const Prefetch& prefetch : prefetches) {
    if (absl::Status status = InsertPrefetch(prefetch); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MemorySpaceCounts> AssignMemorySpaces(Module& module, const tpu::TpuTarget& target,
                                                     const MemorySpaceOptions& options) {
  if (!module.header().is_scheduled || !module.entry().valid() || UsesVmem(module)) return MemorySpaceCounts();
  ModuleMemoryState shared(&module, target, options);
  const ComputationRoles roles = RolesOf(module);
  std::vector<Assigner> assigners;
  for (ComputationId id : shared.calls.PostOrder()) {
    const Computation c = module.computation(id);
    if (!shared.calls.IsSequential(c) || !shared.calls.IsLive(c) || roles.async[id.value] != 0) continue;
    assigners.emplace_back(&shared, c);
    assigners.back().AllocatePinned();
  }
  for (size_t n = assigners.size(); n-- > 0;) {
    if (absl::Status status = assigners[n].Move(); !status.ok()) return status;
  }
  for (size_t n = assigners.size(); n-- > 0;) {
    if (absl::Status status = assigners[n].PinState(); !status.ok()) return status;
  }
  return shared.counts;
}

}  // namespace hlokit
