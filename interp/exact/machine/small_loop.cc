// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/machine/small_loop.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "interp/exact/program/view.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

void SmallLoop::Bind(std::byte* memory) {
  if (memory_ == memory) return;
  memory_ = memory;
  const auto at = [&](const Place& place) {
    return place.constant != nullptr ? place.constant : memory + place.offset;
  };
  in_.clear();
  out_.clear();
  bound_copies_.clear();
  for (const Place& place : operands_) in_.push_back(at(place));
  for (int64_t offset : results_) out_.push_back(memory + offset);
  for (const Copy& copy : copies_) bound_copies_.push_back({at(copy.from), memory + copy.to, copy.bytes});
}

bool SmallLoop::Fail(RunContext& context, const Operation& at) {
  if (!context.error_instruction.valid()) context.error_instruction = at.instruction;
  bool in_condition = at.in_condition;
  for (uint32_t loop = at.loop; loop != kNoLoop; loop = loops_[loop].parent) {
    const Loop& l = loops_[loop];
    context.error_loops.push_back({l.instruction, in_condition ? l.iterations + 1 : l.iterations});
    in_condition = l.in_condition;
  }
  return false;
}

bool SmallLoop::Run(RunContext& context, std::byte* memory) {
  Bind(memory);
  for (Loop& loop : loops_) loop.iterations = 0;
  done_.assign(once_count_, false);
  const std::byte* const* const in = in_.data();
  std::byte* const* const out = out_.data();
  const size_t end = operations_.size();
  for (size_t next = 0; next < end;) {
    const Operation& o = operations_[next++];
    switch (o.kind) {
      case OperationKind::kKernel:
        if (!context.CountStep()) return Fail(context, o);
        o.kernel(o.plan, in + o.in, out + o.out, context);
        if (context.failed()) return Fail(context, o);
        break;
      case OperationKind::kCopies:
        for (uint32_t i = o.in; i < o.out; ++i) {
          const BoundCopy& copy = bound_copies_[i];
          if (copy.bytes == 4) {
            std::memcpy(copy.to, copy.from, 4);
          } else if (copy.bytes == 8) {
            std::memcpy(copy.to, copy.from, 8);
          } else {
            std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
          }
        }
        break;
      case OperationKind::kEnter:
        loops_[o.target].iterations = 0;
        [[fallthrough]];
      case OperationKind::kCount:
        if (!context.CountStep()) return Fail(context, o);
        break;
      case OperationKind::kTest: {
        if (*in[o.in] == std::byte{0}) {
          next = o.target;
          break;
        }
        Loop& loop = loops_[o.loop];
        if (loop.iterations >= context.limits().max_loop_iterations) {
          context.Fail(StrCat("a loop exceeded the limit of ", context.limits().max_loop_iterations,
                              " iterations (--max-loop-trips)"));
          return Fail(context, o);
        }
        ++loop.iterations;
        ++context.loop_iterations;
        if (!context.CountStep()) return Fail(context, o);
        break;
      }
      case OperationKind::kOnce:
        if (done_[o.in]) next = o.target;
        done_[o.in] = true;
        break;
      case OperationKind::kJump:
        next = o.target;
        break;
      case OperationKind::kSelect: {
        uint32_t branch;
        if (o.predicate) {
          branch = *in[o.in] != std::byte{0} ? 0 : 1;
        } else {
          int32_t index;
          std::memcpy(&index, in[o.in], sizeof(index));
          branch = index < 0 || static_cast<uint32_t>(index) >= o.branch_count ? o.branch_count - 1
                                                                               : static_cast<uint32_t>(index);
        }
        next = branches_[o.target + branch];
        break;
      }
    }
  }
  return true;
}

// Lays out the computations of a loop.
class SmallLoopBuilder {
 public:
  explicit SmallLoopBuilder(SmallLoop* loop) : loop_(*loop) {}

  // Adds a loop whose state is at `state`. Returns false if it is not small.
  bool AddLoop(const WhilePlan& plan, InstructionId instruction, const std::vector<int64_t>& state, int depth) {
    const uint32_t outer = loop_index_;
    const bool outer_condition = in_condition_;
    loop_index_ = static_cast<uint32_t>(loop_.loops_.size());
    loop_.loops_.push_back({instruction, outer, outer_condition, 0});
    std::vector<Place> places;
    for (int64_t offset : state) places.push_back({nullptr, offset});
    in_condition_ = true;
    const size_t first = loop_.operations_.size();
    std::vector<Place> go_on;
    if (!AddComputation(*plan.condition, places, /*owned=*/false, depth, &go_on)) return false;
    const size_t test = Add(OperationKind::kTest, instruction);
    loop_.operations_[test].in = AddOperand(go_on[0]);
    in_condition_ = false;
    std::vector<Place> next;
    if (!AddComputation(*plan.body, places, /*owned=*/true, depth, &next)) return false;
    AddStateCopies(instruction, next, state, *plan.body);
    loop_.operations_[Add(OperationKind::kJump, instruction)].target = static_cast<uint32_t>(first);
    loop_.operations_[test].target = static_cast<uint32_t>(loop_.operations_.size());
    loop_index_ = outer;
    in_condition_ = outer_condition;
    return true;
  }

  int64_t Allocate(int64_t bytes) {
    const int64_t at = loop_.bytes_;
    // Whole vectors; limited in all.
    if (bytes < 0 || bytes > kMaxBytes || at > kMaxBytes) {
      too_large_ = true;
      return 0;
    }
    loop_.bytes_ += std::max<int64_t>((bytes + 63) / 64 * 64, 64);
    return at;
  }

  // Returns false if the loop is too large.
  bool Finish() {
    // Kernels of elementwise operations read three operand pointers regardless of the operand count.
    for (int i = 0; i < 3; ++i) AddOperand({});
    return !IsTooLarge();
  }

 private:
  using Place = SmallLoop::Place;
  using OperationKind = SmallLoop::OperationKind;
  static constexpr int64_t kMaxBytes = 64 << 10;
  static constexpr size_t kMaxOperations = 2048;
  static constexpr size_t kMaxSlots = 16 << 10;
  static constexpr int kMaxDepth = 12;

  bool IsTooLarge() const { return too_large_ || slots_ > kMaxSlots || loop_.operations_.size() > kMaxOperations; }

  size_t Add(OperationKind kind, InstructionId instruction) {
    SmallLoop::Operation o;
    o.kind = kind;
    o.in_condition = in_condition_;
    o.loop = loop_index_;
    o.instruction = instruction;
    loop_.operations_.push_back(o);
    return loop_.operations_.size() - 1;
  }

  uint32_t AddOperand(const Place& place) {
    loop_.operands_.push_back(place);
    return static_cast<uint32_t>(loop_.operands_.size() - 1);
  }

  void AddCopies(InstructionId instruction, const std::vector<SmallLoop::Copy>& copies) {
    if (copies.empty()) return;
    const size_t at = Add(OperationKind::kCopies, instruction);
    loop_.operations_[at].in = static_cast<uint32_t>(loop_.copies_.size());
    loop_.copies_.insert(loop_.copies_.end(), copies.begin(), copies.end());
    loop_.operations_[at].out = static_cast<uint32_t>(loop_.copies_.size());
  }

  // Copies the results of a body to the state. Results that lie in the state itself, where they may be overwritten
  // before they are read, go by way of other memory.
  void AddStateCopies(InstructionId instruction, const std::vector<Place>& next, const std::vector<int64_t>& state,
                      const CompiledComputation& body) {
    std::vector<SmallLoop::Copy> first, second, third;
    for (size_t i = 0; i < next.size(); ++i) {
      const int64_t bytes = body.slots[body.results[i].slot].bytes - body.results[i].offset;
      if (bytes <= 0 || (next[i].constant == nullptr && next[i].offset == state[i])) continue;
      const int64_t used = std::min(bytes, state_bytes_[state[i]]);
      if (next[i].constant == nullptr && IsInState(next[i].offset, state)) {
        const int64_t between = Allocate(used);
        first.push_back({next[i], between, used});
        third.push_back({{nullptr, between}, state[i], used});
      } else {
        second.push_back({next[i], state[i], used});
      }
    }
    first.insert(first.end(), second.begin(), second.end());
    first.insert(first.end(), third.begin(), third.end());
    AddCopies(instruction, first);
  }

  bool IsInState(int64_t offset, const std::vector<int64_t>& state) const {
    return std::any_of(state.begin(), state.end(), [&](int64_t begin) {
      return offset >= begin && offset < begin + std::max<int64_t>(state_bytes_.at(begin), 1);
    });
  }

  // Adds the operations of a computation with parameters at `arguments`, which it may overwrite if `owned`.
  bool AddComputation(const CompiledComputation& routine, const std::vector<Place>& arguments, bool owned, int depth,
                      std::vector<Place>* results) {
    slots_ += routine.slots.size();
    if (depth > kMaxDepth || IsTooLarge()) return false;
    loop_.depth_ = std::max(loop_.depth_, depth);
    std::vector<Place> places(routine.slots.size());
    std::vector<bool> own(routine.slots.size(), false);
    for (size_t i = 0; i < places.size(); ++i) places[i].constant = routine.slots[i].constant;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const uint32_t slot = routine.parameters[i];
      if (slot == kNoSlot) continue;
      places[slot] = arguments[i];
      own[slot] = owned;
    }
    const auto place_of = [&](const OperandRef& ref) {
      Place place = places[ref.slot];
      if (place.constant != nullptr) {
        place.constant += ref.offset;
      } else {
        place.offset += ref.offset;
      }
      return place;
    };
    // Call-invariant values are computed the first time.
    size_t once = 0;
    const uint32_t invariant = routine.first_variant_thunk;
    if (invariant > 0) {
      once = Add(OperationKind::kOnce, routine.thunks[0].instruction);
      loop_.operations_[once].in = loop_.once_count_++;
    }
    for (uint32_t t = 0; t < routine.thunks.size(); ++t) {
      if (t == invariant && t > 0) loop_.operations_[once].target = static_cast<uint32_t>(loop_.operations_.size());
      const Thunk& thunk = routine.thunks[t];
      const OperandRef* const operands = routine.operands.data() + thunk.operand_begin;
      const auto operand_places = [&](uint32_t begin, uint32_t end) {
        std::vector<Place> list;
        for (uint32_t i = begin; i < end; ++i) list.push_back(place_of(operands[i]));
        return list;
      };
      switch (thunk.kind) {
        case ThunkKind::kKernel:
          AddKernel(routine, thunk, operand_places(0, thunk.operand_count), &places, &own);
          break;
        case ThunkKind::kCall: {
          Add(OperationKind::kCount, thunk.instruction);
          std::vector<Place> made;
          if (!AddComputation(*static_cast<const CallPlan*>(thunk.plan)->callee, operand_places(0, thunk.operand_count),
                              /*owned=*/false, depth + 1, &made)) {
            return false;
          }
          std::copy(made.begin(), made.end(), places.begin() + thunk.result_begin);
          // A result may be an operand.
          for (uint32_t i = 0; i < thunk.operand_count; ++i) own[operands[i].slot] = false;
          break;
        }
        case ThunkKind::kWhile:
          if (!AddInnerLoop(routine, thunk, operand_places(0, thunk.operand_count), depth, &places, &own)) return false;
          break;
        case ThunkKind::kConditional: {
          const std::vector<Place> list = operand_places(0, thunk.operand_count);
          if (!AddConditional(routine, thunk, list, depth, &places, &own)) return false;
          break;
        }
        case ThunkKind::kCollective:
        case ThunkKind::kObserve:
          return false;
      }
      if (IsTooLarge()) return false;
    }
    if (invariant == routine.thunks.size() && invariant > 0) {
      loop_.operations_[once].target = static_cast<uint32_t>(loop_.operations_.size());
    }
    for (const OperandRef& ref : routine.results) results->push_back(place_of(ref));
    return true;
  }

  void AddKernel(const CompiledComputation& routine, const Thunk& thunk, const std::vector<Place>& operands,
                 std::vector<Place>* places, std::vector<bool>* own) {
    const size_t at = Add(OperationKind::kKernel, thunk.instruction);
    SmallLoop::Operation& o = loop_.operations_[at];
    o.kernel = thunk.kernel;
    o.plan = thunk.plan;
    o.in = static_cast<uint32_t>(loop_.operands_.size());
    o.out = static_cast<uint32_t>(loop_.results_.size());
    for (const Place& place : operands) AddOperand(place);
    std::vector<bool> placed(thunk.result_count, false);
    for (uint32_t i = 0; i < thunk.reuse_count; ++i) {
      const InPlaceReuse& reuse = routine.reuses[thunk.reuse_begin + i];
      const uint32_t from = routine.operands[thunk.operand_begin + reuse.operand].slot;
      if (placed[reuse.result] || !(*own)[from]) continue;
      (*places)[thunk.result_begin + reuse.result] = (*places)[from];
      (*own)[from] = false;
      placed[reuse.result] = true;
    }
    for (uint32_t r = 0; r < thunk.result_count; ++r) {
      const uint32_t slot = thunk.result_begin + r;
      if (!placed[r]) (*places)[slot] = {nullptr, Allocate(routine.slots[slot].bytes)};
      (*own)[slot] = true;
      loop_.results_.push_back((*places)[slot].offset);
    }
  }

  bool AddInnerLoop(const CompiledComputation& routine, const Thunk& thunk, const std::vector<Place>& initial,
                    int depth, std::vector<Place>* places, std::vector<bool>* own) {
    std::vector<int64_t> state;
    std::vector<SmallLoop::Copy> copies;
    for (uint32_t i = 0; i < thunk.operand_count; ++i) {
      const int64_t bytes = routine.slots[thunk.result_begin + i].bytes;
      state.push_back(AllocateState(bytes));
      copies.push_back({initial[i], state[i], bytes});
      (*places)[thunk.result_begin + i] = {nullptr, state[i]};
      (*own)[thunk.result_begin + i] = true;
    }
    const size_t enter = Add(OperationKind::kEnter, thunk.instruction);
    loop_.operations_[enter].target = static_cast<uint32_t>(loop_.loops_.size());
    AddCopies(thunk.instruction, copies);
    return AddLoop(*static_cast<const WhilePlan*>(thunk.plan), thunk.instruction, state, depth + 1);
  }

  bool AddConditional(const CompiledComputation& routine, const Thunk& thunk, const std::vector<Place>& operands,
                      int depth, std::vector<Place>* places, std::vector<bool>* own) {
    const auto& plan = *static_cast<const ConditionalPlan*>(thunk.plan);
    for (uint32_t r = 0; r < thunk.result_count; ++r) {
      const uint32_t slot = thunk.result_begin + r;
      (*places)[slot] = {nullptr, Allocate(routine.slots[slot].bytes)};
      (*own)[slot] = true;
    }
    Add(OperationKind::kCount, thunk.instruction);
    const size_t select = Add(OperationKind::kSelect, thunk.instruction);
    const uint32_t count = static_cast<uint32_t>(plan.branches.size());
    const uint32_t first = static_cast<uint32_t>(loop_.branches_.size());
    loop_.operations_[select].in = AddOperand(operands[0]);
    loop_.operations_[select].predicate = plan.predicate;
    loop_.operations_[select].branch_count = count;
    loop_.operations_[select].target = first;
    loop_.branches_.resize(first + count);
    std::vector<size_t> jumps;
    for (uint32_t b = 0; b < count; ++b) {
      loop_.branches_[first + b] = static_cast<uint32_t>(loop_.operations_.size());
      const std::vector<Place> arguments(operands.begin() + plan.operand_begins[b],
                                         operands.begin() + plan.operand_begins[b + 1]);
      std::vector<Place> made;
      if (!AddComputation(*plan.branches[b], arguments, /*owned=*/false, depth + 1, &made)) return false;
      std::vector<SmallLoop::Copy> copies;
      for (uint32_t r = 0; r < thunk.result_count; ++r) {
        const uint32_t slot = thunk.result_begin + r;
        copies.push_back({made[r], (*places)[slot].offset, routine.slots[slot].bytes});
      }
      AddCopies(thunk.instruction, copies);
      jumps.push_back(Add(OperationKind::kJump, thunk.instruction));
    }
    for (size_t jump : jumps) loop_.operations_[jump].target = static_cast<uint32_t>(loop_.operations_.size());
    return true;
  }

 public:
  // Memory for a leaf of a loop's state.
  int64_t AllocateState(int64_t bytes) {
    const int64_t at = Allocate(bytes);
    state_bytes_[at] = bytes;
    return at;
  }

 private:
  SmallLoop& loop_;
  absl::flat_hash_map<int64_t, int64_t> state_bytes_;  // by offset
  uint32_t loop_index_ = SmallLoop::kNoLoop;
  bool in_condition_ = false;
  size_t slots_ = 0;  // of the computations
  bool too_large_ = false;
};

std::unique_ptr<SmallLoop> SmallLoop::Create(const WhilePlan& loop, InstructionId instruction,
                                             absl::Span<const int64_t> state_bytes) {
  std::unique_ptr<SmallLoop> small(new SmallLoop());
  SmallLoopBuilder builder(small.get());
  for (int64_t bytes : state_bytes) small->state_offsets_.push_back(builder.AllocateState(bytes));
  if (!builder.AddLoop(loop, instruction, small->state_offsets_, 1) || !builder.Finish()) return nullptr;
  return small;
}

}  // namespace hlokit::interp
