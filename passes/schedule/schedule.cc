// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ir/core/saturating.h"
#include "ir/graph/instruction_map.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/analysis/memory.h"
#include "passes/core/pass_row.h"
#include "passes/target/aliases.h"

namespace hlokit {
namespace {

bool StartsAsync(Instruction i) { return HasTrait(i.opcode(), kStartsAsync); }
bool EndsAsync(Instruction i) { return HasTrait(i.opcode(), kEndsAsync); }

int64_t BytesMoved(Instruction i) {
  int64_t bytes = 0;
  for (Instruction operand : i.operands()) bytes = SaturatingAdd(bytes, BufferBytes(operand.shape()));
  return bytes;
}

class ListScheduler {
 public:
  ListScheduler(Computation computation, const CostAnalysis& costs, const ScheduleOptions& options)
      : module_(computation.module()), costs_(costs), options_(options), order_(PostOrder(computation)) {
    Prepare();
  }

  std::vector<InstructionId> Run(SchedulePriority priority, AsyncStartPolicy policy);
  // Returns the duration of the last schedule, stalls included.
  int64_t duration() const { return now_; }

 private:
  static constexpr size_t kMaxLinks = 32;
  static constexpr size_t kMaxStartCandidates = 32;  // considered per start

  // The least rank goes first.
  struct Rank {
    int stage;    // 0: async start, 1: other work
    int64_t key;  // by priority: bytes defined less bytes freed, 0, or the negated height
    uint32_t place;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };

  void Prepare();
  void KeepOrderOfEffects();
  void ComputeTimes();
  void ComputeHeights();
  int64_t TimeOf(Instruction i) const;
  // Returns the time at which the links of asynchronous operation `n` are free.
  int64_t LinksFree(uint32_t n) const;
  // Returns the time at which asynchronous operation `n` ends if it starts now.
  int64_t EndOf(uint32_t n);
  Rank RankOf(uint32_t n) const;
  void Enter(uint32_t n);
  void Update(uint32_t n);
  void Take(uint32_t n);
  uint32_t Next();
  // Removes and returns the first start whose links are free before `until`, or kNone.
  uint32_t NextStart(int64_t until);
  static constexpr uint32_t kNone = 0xffffffffu;

  const Module& module_;
  const CostAnalysis& costs_;
  const ScheduleOptions options_;
  const std::vector<InstructionId> order_;
  InstructionMap<uint32_t> node_of_;
  std::vector<int32_t> num_predecessors_;       // including those already scheduled
  std::vector<std::vector<uint32_t>> next_;     // successors
  std::vector<std::vector<uint32_t>> reads_;    // distinct values that a node reads
  std::vector<std::vector<uint32_t>> readers_;  // by value
  std::vector<int64_t> value_bytes_;
  std::vector<uint8_t> is_never_freed_;  // by value: argument, constant or result
  std::vector<int64_t> made_bytes_;      // by node
  std::vector<int64_t> time_;            // by node
  std::vector<uint32_t> links_;          // by node: a bit for each
  std::vector<int64_t> height_;          // by node: critical path from its start to the end of the computation

  // State of one run.
  SchedulePriority priority_ = SchedulePriority::kMemory;
  AsyncStartPolicy policy_ = AsyncStartPolicy::kAsap;
  std::vector<int32_t> unscheduled_predecessors_;
  std::vector<int32_t> readers_left_;  // by value
  std::vector<uint8_t> is_ready_;
  std::vector<Rank> rank_;
  std::set<Rank> ready_;
  std::set<Rank> starts_;                           // kByPriority: ready asynchronous starts
  std::set<std::pair<int64_t, uint32_t>> waiting_;  // dones of operations in flight, by end time
  int64_t now_ = 0;                                 // time at which the last scheduled instruction ends
  std::vector<int64_t> due_;                        // by node: for a done, when its operation ends
  std::array<int64_t, kMaxLinks> link_free_{};      // time at which each link is free
};

// Returns the duration in picoseconds, or in bytes if no latencies are given.
int64_t ListScheduler::TimeOf(Instruction i) const {
  if (!options_.latencies.empty()) {
    const size_t at = i.id().value;
    const double seconds = at < options_.latencies.size() ? options_.latencies[at].seconds : 0;
    return static_cast<int64_t>(std::clamp(seconds * 1e12, 0.0, 4e18));
  }
  return BytesMoved(i);
}

void ListScheduler::Prepare() {
  const auto count = static_cast<uint32_t>(order_.size());
  node_of_ = InstructionMap<uint32_t>(order_);
  for (uint32_t n = 0; n < count; ++n) node_of_[order_[n]] = n;
  num_predecessors_.assign(count, 0);
  next_.resize(count);
  reads_.resize(count);
  made_bytes_.assign(count, 0);
  const absl::StatusOr<DataflowAnalysis> flow = DataflowAnalysis::Create(module_, order_);
  const size_t values = flow.ok() ? flow->values().size() : 0;
  readers_.resize(values);
  is_never_freed_.assign(values, 0);
  for (size_t v = 0; v < values; ++v) {
    const DataflowValue& value = flow->values()[v];
    const Instruction producer = module_.instruction(value.defining_instruction);
    value_bytes_.push_back(BufferBytes(value.shape));
    const bool is_never_freed = HasTrait(producer.opcode(), kLeaf);
    is_never_freed_[v] = is_never_freed;
    if (!is_never_freed) {
      int64_t& made = made_bytes_[node_of_[value.defining_instruction]];
      made = SaturatingAdd(made, value_bytes_[v]);
    }
  }
  for (uint32_t n = 0; n < count; ++n) {
    const Instruction i = module_.instruction(order_[n]);
    const auto after = [&](Instruction before) {
      next_[node_of_[before.id()]].push_back(n);
      ++num_predecessors_[n];
    };
    for (Instruction operand : i.operands()) after(operand);
    if (i.has(Attr::kControlPredecessors)) {
      for (Instruction p : i.control_predecessors()) after(p);
    }
    if (!flow.ok() || HasTrait(i.opcode(), kForwards)) continue;
    std::vector<uint32_t>& reads = reads_[n];
    for (Instruction operand : i.operands()) {
      const absl::Span<const uint32_t> held = flow->ValuesOf(operand);
      reads.insert(reads.end(), held.begin(), held.end());
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (uint32_t v : reads) readers_[v].push_back(n);
  }
  KeepOrderOfEffects();
  ComputeTimes();
  ComputeHeights();
  if (flow.ok() && count > 0) {
    for (uint32_t v : flow->ValuesOf(module_.computation(module_.record(order_[0]).parent).root()))
      is_never_freed_[v] = 1;
  }
}

// Keeps host transfers, communication and random number generation in program order: a message is sent before it is
// awaited, and random draws are numbered.
void ListScheduler::KeepOrderOfEffects() {
  if (order_.empty()) return;
  Instruction last;
  for (Instruction i : module_.computation(module_.record(order_[0]).parent).instructions()) {
    if (!HasTrait(i.opcode(), kSideEffect)) continue;
    if (last.valid()) {
      const uint32_t n = node_of_[i.id()];
      next_[node_of_[last.id()]].push_back(n);
      ++num_predecessors_[n];
    }
    last = i;
  }
}

// Computes durations and links. Without link information, transfers within the same groups of devices are serialized.
void ListScheduler::ComputeTimes() {
  time_.resize(order_.size());
  links_.assign(order_.size(), 0);
  absl::flat_hash_map<uint32_t, uint32_t> link_of;  // by groups of devices
  for (uint32_t n = 0; n < order_.size(); ++n) {
    const Instruction i = module_.instruction(order_[n]);
    time_[n] = TimeOf(i);
    if (!StartsAsync(i)) continue;
    if (!options_.latencies.empty()) {
      links_[n] = i.id().value < options_.latencies.size() ? options_.latencies[i.id().value].links : 0;
    } else if (const Instruction collective = tpu::AsyncWrappedInstruction(i);
               HasTrait(collective.opcode(), kCollective)) {
      const uint32_t groups = collective.payload(Attr::kReplicaGroups).value_or(0xffffffffu);
      const auto [place, fresh] = link_of.insert({groups, static_cast<uint32_t>(link_of.size() % kMaxLinks)});
      links_[n] = 1u << place->second;
    }
  }
}

int64_t ListScheduler::LinksFree(uint32_t n) const {
  int64_t free = 0;
  for (size_t link = 0; link < kMaxLinks; ++link) {
    if (links_[n] >> link & 1) free = std::max(free, link_free_[link]);
  }
  return free;
}

int64_t ListScheduler::EndOf(uint32_t n) {
  const int64_t end = SaturatingAdd(std::max(now_, LinksFree(n)), time_[n]);
  for (size_t link = 0; link < kMaxLinks; ++link) {
    if (links_[n] >> link & 1) link_free_[link] = end;
  }
  return end;
}

// Computes heights along the longest path; the time of an asynchronous operation counts at its start.
void ListScheduler::ComputeHeights() {
  height_.assign(order_.size(), 0);
  for (size_t n = order_.size(); n-- > 0;) {
    int64_t after = 0;
    for (uint32_t next : next_[n]) after = std::max(after, height_[next]);
    const Instruction i = module_.instruction(order_[n]);
    height_[n] = SaturatingAdd(after, EndsAsync(i) ? 0 : time_[n]);
  }
}

ListScheduler::Rank ListScheduler::RankOf(uint32_t n) const {
  const Instruction i = module_.instruction(order_[n]);
  const int stage = options_.overlap && StartsAsync(i) ? 0 : 1;
  if (priority_ == SchedulePriority::kProgram) return {stage, 0, n};
  if (priority_ == SchedulePriority::kCriticalPath) return {stage, -height_[n], n};
  int64_t freed = 0;
  for (uint32_t v : reads_[n]) {
    if (readers_left_[v] == 1 && !is_never_freed_[v]) freed = SaturatingAdd(freed, value_bytes_[v]);
  }
  return {stage, made_bytes_[n] - freed, n};
}

void ListScheduler::Enter(uint32_t n) {
  is_ready_[n] = 1;
  const Instruction i = module_.instruction(order_[n]);
  if (options_.overlap && EndsAsync(i)) {
    waiting_.insert({due_[n], n});
  } else if (options_.overlap && StartsAsync(i) && policy_ == AsyncStartPolicy::kByPriority) {
    starts_.insert({0, -height_[n], n});
  } else {
    ready_.insert(rank_[n] = RankOf(n));
  }
}

void ListScheduler::Update(uint32_t n) {
  // Instructions that are not ready have no rank.
  if (!is_ready_[n] || rank_[n].place != n || ready_.erase(rank_[n]) == 0) return;
  ready_.insert(rank_[n] = RankOf(n));
}

void ListScheduler::Take(uint32_t n) {
  is_ready_[n] = 0;
  const Instruction i = module_.instruction(order_[n]);
  if (StartsAsync(i)) {
    const int64_t end = EndOf(n);
    for (uint32_t next : next_[n]) due_[next] = end;
  } else if (!EndsAsync(i)) {
    now_ = SaturatingAdd(now_, time_[n]);
  } else {
    now_ = std::max(now_, due_[n]);
  }
  for (uint32_t v : reads_[n]) {
    if (--readers_left_[v] != 1 || priority_ != SchedulePriority::kMemory) continue;
    for (uint32_t reader : readers_[v]) Update(reader);
  }
  for (uint32_t next : next_[n]) {
    if (--unscheduled_predecessors_[next] == 0) Enter(next);
  }
}

uint32_t ListScheduler::NextStart(int64_t until) {
  size_t seen = 0;
  for (auto start = starts_.begin(); start != starts_.end() && seen < kMaxStartCandidates; ++start, ++seen) {
    const int64_t free = LinksFree(start->place);
    if (free > now_ && free >= until) continue;
    const uint32_t n = start->place;
    starts_.erase(start);
    return n;
  }
  return kNone;
}

// Selects the next instruction: a done whose operation has ended, else ready work, else a done that stalls.
uint32_t ListScheduler::Next() {
  uint32_t n = kNone;
  const bool is_over = !waiting_.empty() && waiting_.begin()->first <= now_;
  if (!is_over && !starts_.empty()) {
    // Until the core takes the next instruction.
    int64_t until = INT64_MAX;
    if (!ready_.empty()) {
      until = SaturatingAdd(now_, time_[ready_.begin()->place]);
    } else if (!waiting_.empty()) {
      until = waiting_.begin()->first;
    }
    n = NextStart(until);
    if (n == kNone && ready_.empty() && waiting_.empty()) {
      n = starts_.begin()->place;
      starts_.erase(starts_.begin());
    }
    if (n != kNone) return n;
  }
  if (is_over || ready_.empty()) {
    n = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
  } else {
    n = ready_.begin()->place;
    ready_.erase(ready_.begin());
  }
  return n;
}

std::vector<InstructionId> ListScheduler::Run(SchedulePriority priority, AsyncStartPolicy policy) {
  const size_t count = order_.size();
  priority_ = priority;
  policy_ = policy;
  unscheduled_predecessors_ = num_predecessors_;
  readers_left_.clear();
  for (const std::vector<uint32_t>& readers : readers_) readers_left_.push_back(static_cast<int32_t>(readers.size()));
  is_ready_.assign(count, 0);
  rank_.assign(count, Rank());
  due_.assign(count, 0);
  link_free_.fill(0);
  now_ = 0;
  std::vector<InstructionId> schedule;
  schedule.reserve(count);
  for (uint32_t n = 0; n < count; ++n) {
    if (num_predecessors_[n] == 0) Enter(n);
  }
  while (!ready_.empty() || !waiting_.empty() || !starts_.empty()) {
    const uint32_t n = Next();
    Take(n);
    schedule.push_back(order_[n]);
  }
  return schedule;
}

void Reorder(Module& module, absl::Span<const InstructionId> order) {
  for (InstructionId id : order) module.MoveBefore(id, InstructionId());
}

}  // namespace

namespace {

// Lowest memory first.
constexpr std::pair<SchedulePriority, AsyncStartPolicy> kHeuristics[] = {
    {SchedulePriority::kMemory, AsyncStartPolicy::kAsap},
    {SchedulePriority::kMemory, AsyncStartPolicy::kByPriority},
    {SchedulePriority::kProgram, AsyncStartPolicy::kAsap},
    {SchedulePriority::kProgram, AsyncStartPolicy::kByPriority},
    {SchedulePriority::kCriticalPath, AsyncStartPolicy::kAsap},
    {SchedulePriority::kCriticalPath, AsyncStartPolicy::kByPriority}};

// Orders all computations. With `fast`, chooses by duration for those with asynchronous operations, otherwise by
// memory.
absl::StatusOr<ScheduleCounts> Order(Module& module, const ScheduleOptions& options, bool fast) {
  ScheduleCounts counts;
  const CallGraph calls(module);
  const CostAnalysis costs(module);
  std::vector<int64_t> needs(module.computation_id_bound(), 0), needed(module.computation_id_bound(), 0);
  for (ComputationId id : calls.PostOrder()) {
    const Computation c = module.computation(id);
    std::vector<InstructionId> post_order = PostOrder(c);
    ++counts.computations;
    if (!calls.IsSequential(c)) {
      Reorder(module, post_order);
      continue;
    }
    bool async = false;
    for (InstructionId i : post_order) async |= StartsAsync(module.instruction(i));
    const auto peak_of = [&](const std::vector<InstructionId>& order,
                             const std::vector<int64_t>& of_callees) -> absl::StatusOr<MemoryUse> {
      std::vector<int64_t> callee_bytes(order.size(), 0);
      for (size_t n = 0; n < order.size(); ++n) {
        const Instruction i = module.instruction(order[n]);
        if (!RunsCallees(i.opcode())) continue;
        i.ForEachCallee(
            [&](Computation callee) { callee_bytes[n] = std::max(callee_bytes[n], of_callees[callee.id().value]); });
      }
      return MemoryOf(c, order, callee_bytes);
    };
    const absl::StatusOr<MemoryUse> before = peak_of(post_order, needed);
    if (!before.ok()) return before.status();
    needed[id.value] = before->peak_bytes_beyond_arguments;
    std::vector<InstructionId> list;
    int64_t shortest = 0;
    ListScheduler scheduler(c, costs, options);
    for (const auto& [priority, policy] : kHeuristics) {
      std::vector<InstructionId> order = scheduler.Run(priority, policy);
      // Lower memory is worth 1/256 of the time.
      if (list.empty() || SaturatingAdd(scheduler.duration(), scheduler.duration() / 256) < shortest) {
        list = std::move(order);
        shortest = scheduler.duration();
      }
      if (!fast || !async || !options.overlap) break;
    }
    const absl::StatusOr<MemoryUse> as_list = peak_of(list, needs), as_post_order = peak_of(post_order, needs);
    if (!as_list.ok()) return as_list.status();
    if (!as_post_order.ok()) return as_post_order.status();
    const bool take_list = (async && options.overlap) || as_list->peak_bytes < as_post_order->peak_bytes;
    const MemoryUse& taken = take_list ? *as_list : *as_post_order;
    needs[id.value] = taken.peak_bytes_beyond_arguments;
    if (c.is_entry()) {
      counts.peak_bytes = taken.peak_bytes;
      counts.post_order_peak_bytes = before->peak_bytes;
    }
    Reorder(module, take_list ? list : post_order);
  }
  return counts;
}

}  // namespace

absl::StatusOr<ScheduleCounts> ScheduleModule(Module& module, const ScheduleOptions& options) {
  absl::StatusOr<ScheduleCounts> counts = Order(module, options, /*fast=*/true);
  if (counts.ok() && options.memory_bytes > 0 && counts->peak_bytes > options.memory_bytes) {
    const int64_t fast_peak = counts->peak_bytes;
    counts = Order(module, options, /*fast=*/false);
    // Keep the fast schedule unless the slower one saves at least 1/64 of the peak.
    const int64_t worthwhile = fast_peak - fast_peak / 64;
    if (counts.ok() && counts->peak_bytes > std::max(options.memory_bytes, worthwhile)) {
      counts = Order(module, options, /*fast=*/true);
    }
  }
  if (counts.ok()) module.header().is_scheduled = true;
  return counts;
}

namespace {

class Schedule : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled) return false;
    const absl::StatusOr<ScheduleCounts> counts = ScheduleModule(module, {options().Bool("overlap")});
    if (!counts.ok()) return counts.status();
    Count("computations ordered", counts->computations);
    Count("bytes at the peak", counts->peak_bytes);
    Count("bytes at the peak of the post-order", counts->post_order_peak_bytes);
    return true;
  }
};

}  // namespace

HLOKIT_PASS(Schedule) {
  return {.name = "schedule",
          .category = "schedule",
          .summary = "order the instructions for low memory and overlapped communication",
          .doc =
              "A list schedule that prefers instructions which free more bytes than they define, or the "
              "post-order if it needs less memory. Asynchronous operations start as early as possible, and "
              "their done operations come when the work in between moves as many bytes. The module is marked "
              "as scheduled, and its text is in the order of the schedule.",
          .example = R"(HloModule overlap

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  w = f32[64,64]{1,0} parameter(1)
  start = (f32[64,64]{1,0}, f32[128,64]{1,0}) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}
  done = f32[128,64]{1,0} all-gather-done(start)
  d = f32[64,64]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[128,64]{1,0}, f32[64,64]{1,0}) tuple(done, d)
}
)",
          .options = {{.name = "overlap",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "true",
                       .doc = "overlap asynchronous operations with other work"}},
          .create = MakePass<Schedule>};
}

}  // namespace hlokit
