// SPDX-License-Identifier: Apache-2.0
// An edge from a read to a write may be added if the write does not reach the read. Instead of asking that for each
// edge, a topological order of the body is chosen that delays writes, and all edges that agree with it are added: that
// takes time linear in the body and the number of edges, up to the logarithm of a queue and, for each write on a cycle,
// a search of bounded length.
#include "passes/schedule/loop_schedule_linearizer.h"

#include <algorithm>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/graph/instruction_map.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/dataflow_analysis.h"
#include "passes/core/pass_row.h"

namespace hlokit {
namespace {

// Searches for a write that must precede one of its own reads end after this many instructions.
constexpr int kMaxSearch = 1000;
// A body stays as it is if reads and writes make more pairs than this, and this many for each instruction: instructions
// that read the whole state make as many with each write.
constexpr size_t kMinPairs = 1000;
constexpr size_t kPairsPerInstruction = 16;
// Rounds of edges for a body.
constexpr int kMaxLinearizations = 8;

bool StartsTransfer(Instruction i) { return HasTrait(i.opcode(), kStartsAsync) && i.opcode() != Opcode::kCopyStart; }

// Passes arrays on without reading them.
bool IsForwarding(Instruction i) {
  return OpcodeSet{Opcode::kTuple, Opcode::kGetTupleElement}.Contains(i.opcode()) || HasTrait(i.opcode(), kForwards);
}

// One loop body. Instructions have their index in text order.
class LoopBody {
 public:
  explicit LoopBody(Computation body) : body_(body), index_(body) {
    for (Instruction i : body.instructions()) {
      index_[i.id()] = static_cast<uint32_t>(instructions_.size());
      instructions_.push_back(i);
    }
    predecessors_.resize(instructions_.size());
    for (uint32_t n = 0; n < instructions_.size(); ++n) {
      for (Instruction operand : instructions_[n].operands()) AddPredecessor(operand, n);
      for (Instruction before : instructions_[n].control_predecessors()) AddPredecessor(before, n);
    }
    reads_of_.resize(instructions_.size());
    writes_after_.resize(instructions_.size());
  }

  // Finds the reads of each write that no edge orders yet. Returns false if there are none, or too many.
  absl::StatusOr<bool> FindReads() {
    const std::vector<InstructionId> order = PostOrder(body_);
    const absl::StatusOr<DataflowAnalysis> flow = DataflowAnalysis::Create(body_.module(), order);
    if (!flow.ok()) return flow.status();
    const Instruction state = body_.parameter(0);
    const absl::Span<const uint32_t> before = flow->ValuesOf(state), after = flow->ValuesOf(body_.root());
    if (before.size() != after.size()) return false;
    // By value of the state: the instruction that computes the next one.
    absl::flat_hash_map<uint32_t, uint32_t> write_of;
    for (size_t leaf = 0; leaf < before.size(); ++leaf) {
      const DataflowValue& next = flow->values()[after[leaf]];
      const Instruction write = body_.module().instruction(next.defining_instruction);
      if (write != state && next.shape.IsArray()) write_of[before[leaf]] = index_[write.id()];
    }
    const size_t max_pairs = kMinPairs + kPairsPerInstruction * instructions_.size();
    size_t pairs = 0;
    bool found = false;
    for (Instruction read : instructions_) {
      if (IsForwarding(read)) continue;
      for (Instruction operand : read.operands()) {
        for (uint32_t value : flow->ValuesOf(operand)) {
          const auto write = write_of.find(value);
          if (write == write_of.end()) continue;
          if (++pairs > max_pairs) return false;
          found |= AddRead(index_[read.id()], write->second);
        }
      }
    }
    return found;
  }

  // Adds edges from reads to writes. Returns their number.
  int64_t AddEdges(Module& module) {
    const std::vector<uint32_t> order = Order();
    std::vector<uint32_t> position(order.size());
    for (uint32_t n = 0; n < order.size(); ++n) position[order[n]] = n;
    int64_t added = 0;
    bool in_order = true;
    for (uint32_t write = 0; write < reads_of_.size(); ++write) {
      const InstructionId id = instructions_[write].id();
      const absl::Span<const int64_t> known = module.instruction(id).list_attr(Attr::kControlPredecessors);
      std::vector<int64_t> all(known.begin(), known.end());
      for (uint32_t read : reads_of_[write]) {
        if (position[read] > position[write]) continue;
        all.push_back(instructions_[read].id().value);
        in_order &= read < write;
      }
      if (all.size() == known.size()) continue;
      added += static_cast<int64_t>(all.size() - known.size());
      module.SetAttr(id, Attr::kControlPredecessors, module.ListPayload(all));
    }
    if (!in_order) {
      for (uint32_t n : order) module.MoveBefore(instructions_[n].id(), InstructionId());
    }
    return added;
  }

 private:
  bool AddRead(uint32_t read, uint32_t write) {
    if (read == write || !edges_.emplace(read, write).second) return false;
    reads_of_[write].push_back(read);
    writes_after_[read].push_back(write);
    return true;
  }

  void AddPredecessor(Instruction before, uint32_t n) {
    predecessors_[n].push_back(index_[before.id()]);
    edges_.emplace(index_[before.id()], n);
  }

  // Returns a topological order, near that of the text, in which writes come after their reads unless a cycle prevents
  // that.
  std::vector<uint32_t> Order() const {
    const size_t count = instructions_.size();
    std::vector<uint32_t> unmet(count, 0), reads(count, 0), order;
    std::vector<std::vector<uint32_t>> users(count);
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready, delayed;
    std::vector<uint8_t> placed(count, 0);
    WaitCursors cursors = {.predecessors = std::vector<uint32_t>(count), .reads = std::vector<uint32_t>(count)};
    for (uint32_t n = 0; n < count; ++n) {
      cursors.predecessors[n] = static_cast<uint32_t>(predecessors_[n].size());
      cursors.reads[n] = static_cast<uint32_t>(reads_of_[n].size());
      reads[n] = static_cast<uint32_t>(reads_of_[n].size());
      unmet[n] = static_cast<uint32_t>(predecessors_[n].size());
      for (uint32_t before : predecessors_[n]) users[before].push_back(n);
    }
    const auto enqueue = [&](uint32_t n) { (reads[n] == 0 ? ready : delayed).push(n); };
    for (uint32_t n = 0; n < count; ++n) {
      if (unmet[n] == 0) enqueue(n);
    }
    while (order.size() < count) {
      uint32_t next = 0;
      if (!ready.empty()) {
        next = ready.top();
        ready.pop();
        if (placed[next] != 0) continue;
      } else if (!delayed.empty()) {
        // Those whose reads have all been placed are in `ready` too.
        next = delayed.top();
        if (placed[next] != 0) {
          delayed.pop();
          continue;
        }
        next = WriteOnCycle(next, unmet, placed, &cursors);
      } else {
        break;  // a cycle, which only invalid modules have
      }
      placed[next] = 1;
      order.push_back(next);
      for (uint32_t user : users[next]) {
        if (--unmet[user] == 0) enqueue(user);
      }
      for (uint32_t write : writes_after_[next]) {
        if (--reads[write] == 0 && unmet[write] == 0) ready.push(write);
      }
    }
    return order;
  }

  // By instruction, what is left of its predecessors and reads: all behind have been placed.
  struct WaitCursors {
    std::vector<uint32_t> predecessors, reads;
  };

  // Returns the last of `all`, up to the cursor, that is not placed.
  static uint32_t LastUnplaced(const std::vector<uint32_t>& all, const std::vector<uint8_t>& placed, uint32_t* cursor) {
    while (placed[all[*cursor - 1]] != 0) --*cursor;
    return all[*cursor - 1];
  }

  // From a write with reads that cannot be placed, follows what these wait for. All instructions that can be placed are
  // such writes: the first one that comes twice waits for itself.
  uint32_t WriteOnCycle(uint32_t write, const std::vector<uint32_t>& unmet, const std::vector<uint8_t>& placed,
                        WaitCursors* cursors) const {
    absl::flat_hash_set<uint32_t> seen;
    uint32_t at = write;
    for (int step = 0; step < kMaxSearch; ++step) {
      if (unmet[at] == 0) {
        write = at;
        if (!seen.insert(at).second) break;
        at = LastUnplaced(reads_of_[at], placed, &cursors->reads[at]);
      } else {
        at = LastUnplaced(predecessors_[at], placed, &cursors->predecessors[at]);
      }
    }
    return write;
  }

  const Computation body_;
  std::vector<Instruction> instructions_;
  InstructionMap<uint32_t> index_;
  std::vector<std::vector<uint32_t>> predecessors_;           // operands, then control predecessors
  std::vector<std::vector<uint32_t>> reads_of_;               // by write
  std::vector<std::vector<uint32_t>> writes_after_;           // by read
  absl::flat_hash_set<std::pair<uint32_t, uint32_t>> edges_;  // from predecessor to successor
};

}  // namespace

absl::StatusOr<int64_t> LinearizeLoops(Module& module) {
  if (module.header().is_scheduled) return 0;
  int64_t added = 0;
  const CallGraph calls(module);
  absl::flat_hash_set<uint32_t> done;
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c)) continue;
    for (Instruction loop : c.instructions()) {
      if (loop.opcode() != Opcode::kWhile || !loop.shape().IsTuple()) continue;
      const Computation body = loop.computation_attr(Attr::kBody);
      bool overlaps = false;
      for (Instruction i : body.instructions()) overlaps |= StartsTransfer(i);
      if (overlaps || !done.insert(body.id().value).second) continue;
      // Again, since edges were left out with others that a cycle did not concern.
      for (int round = 0; round < kMaxLinearizations; ++round) {
        LoopBody reads(body);
        const absl::StatusOr<bool> found = reads.FindReads();
        if (!found.ok()) return found.status();
        const int64_t edges = *found ? reads.AddEdges(module) : 0;
        added += edges;
        if (edges == 0) break;
      }
    }
  }
  return added;
}

namespace {

class LoopScheduleLinearizer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = LinearizeLoops(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("reads ordered before writes", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(LoopScheduleLinearizer) {
  return {.name = "loop-schedule-linearizer",
          .category = "schedule",
          .summary = "order reads of loop states before their updates",
          .doc =
              "Control edges let the readers of an array of the state run before the instruction that computes "
              "its next value, which can then take its buffer: copy-insertion has less to do. As XLA's, "
              "except that instructions that only pass arrays on are not readers, nor are operands of the "
              "update, and that in cycles other edges may be left out.",
          .example = R"(HloModule counter

cond {
  p = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  scale = f32[] convert(i)
  scales = f32[8]{0} broadcast(scale), dimensions={}
  y = f32[8]{0} multiply(x, scales)
  ROOT t = (s32[], f32[8]{0}) tuple(next, y)
}

ENTRY main {
  x = f32[8]{0} parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[8]{0}) tuple(zero, x)
  ROOT w = (s32[], f32[8]{0}) while(t), condition=cond, body=body
}
)",
          .preconditions = kNoSchedule,
          .create = MakePass<LoopScheduleLinearizer>};
}

}  // namespace hlokit
