// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/machine/small_loop.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "interp/exact/machine/current_step.h"
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
        current_step.store(o.instruction.value, std::memory_order_relaxed);
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

  // Lays out a loop whose state is at `state`, with the loops, calls and conditionals in it. Returns false if it is not
  // small.
  bool Build(const WhilePlan& plan, InstructionId instruction, const std::vector<int64_t>& state) {
    frames_.emplace_back();
    EnterLoop(plan, instruction, state);
    while (!frames_.empty()) {
      if (frames_.size() > kMaxFrames || IsTooLarge() || !Step()) return false;
    }
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
  static constexpr size_t kMaxFrames = 13;  // nested computations

  // What a frame waits for while that of another computation is above it.
  enum class Stage : uint8_t { kThunk, kCall, kCondition, kBody, kBranch };

  // A computation that is being laid out.
  struct Frame {
    const CompiledComputation* routine = nullptr;  // null: outside of the loop
    std::vector<Place> places;                     // by slot
    std::vector<bool> own;                         // by slot: its memory may be overwritten
    size_t once = 0;                               // the operation that jumps over invariant thunks
    uint32_t next = 0;                             // thunk
    Stage stage = Stage::kThunk;
    // Of the loop at `next`.
    struct Loop {
      const WhilePlan* plan = nullptr;
      InstructionId instruction;
      std::vector<int64_t> state;
      size_t first = 0, test = 0;  // operations
      uint32_t outer = 0;
      bool outer_condition = false;
    } loop;
    // Of the conditional at `next`.
    struct Branches {
      std::vector<Place> operands;
      uint32_t first = 0, next = 0;  // in the list of branches
      std::vector<size_t> jumps;     // operations, to what follows
    } branches;
  };

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

  static Place PlaceOf(const Frame& frame, const OperandRef& ref) {
    Place place = frame.places[ref.slot];
    if (place.constant != nullptr) {
      place.constant += ref.offset;
    } else {
      place.offset += ref.offset;
    }
    return place;
  }

  static std::vector<Place> OperandsOf(const Frame& frame, const Thunk& thunk) {
    std::vector<Place> places;
    for (uint32_t i = 0; i < thunk.operand_count; ++i) {
      places.push_back(PlaceOf(frame, frame.routine->operands[thunk.operand_begin + i]));
    }
    return places;
  }

  // Begins a computation with parameters at `arguments`, which it may overwrite if `owned`.
  void Push(const CompiledComputation& routine, const std::vector<Place>& arguments, bool owned) {
    slots_ += routine.slots.size();
    if (IsTooLarge()) return;
    loop_.depth_ = std::max(loop_.depth_, static_cast<int>(frames_.size()));
    Frame frame;
    frame.routine = &routine;
    frame.places.resize(routine.slots.size());
    frame.own.assign(routine.slots.size(), false);
    for (size_t i = 0; i < frame.places.size(); ++i) frame.places[i].constant = routine.slots[i].constant;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const uint32_t slot = routine.parameters[i];
      if (slot == kNoSlot) continue;
      frame.places[slot] = arguments[i];
      frame.own[slot] = owned;
    }
    // Call-invariant values are computed the first time.
    if (routine.first_variant_thunk > 0) {
      frame.once = Add(OperationKind::kOnce, routine.thunks[0].instruction);
      loop_.operations_[frame.once].in = loop_.once_count_++;
    }
    frames_.push_back(std::move(frame));
  }

  // Lays out the next thunk of the top frame, or goes on with it after the frame above. Returns false for a thunk that
  // the virtual machine must see.
  bool Step() {
    Frame& frame = frames_.back();
    switch (frame.stage) {
      case Stage::kThunk:
        return BeginThunk(frame);
      case Stage::kCall: {
        const Thunk& thunk = frame.routine->thunks[frame.next];
        std::copy(results_.begin(), results_.end(), frame.places.begin() + thunk.result_begin);
        // A result may be an operand.
        for (uint32_t i = 0; i < thunk.operand_count; ++i) {
          frame.own[frame.routine->operands[thunk.operand_begin + i].slot] = false;
        }
        EndThunk(frame);
        return true;
      }
      case Stage::kCondition:
        TestLoop(frame);
        return true;
      case Stage::kBody:
        LeaveLoop(frame);
        return true;
      case Stage::kBranch:
        EndBranch(frame);
        return true;
    }
    return false;
  }

  bool BeginThunk(Frame& frame) {
    const CompiledComputation& routine = *frame.routine;
    if (frame.next == routine.first_variant_thunk && frame.next > 0) {
      loop_.operations_[frame.once].target = static_cast<uint32_t>(loop_.operations_.size());
    }
    if (frame.next == routine.thunks.size()) {
      std::vector<Place> results;
      for (const OperandRef& ref : routine.results) results.push_back(PlaceOf(frame, ref));
      results_ = std::move(results);
      frames_.pop_back();
      return true;
    }
    const Thunk& thunk = routine.thunks[frame.next];
    switch (thunk.kind) {
      case ThunkKind::kKernel:
        AddKernel(routine, thunk, OperandsOf(frame, thunk), &frame.places, &frame.own);
        EndThunk(frame);
        return true;
      case ThunkKind::kCall:
        Add(OperationKind::kCount, thunk.instruction);
        frame.stage = Stage::kCall;
        Push(*static_cast<const CallPlan*>(thunk.plan)->callee, OperandsOf(frame, thunk), /*owned=*/false);
        return true;
      case ThunkKind::kWhile:
        BeginInnerLoop(frame, thunk);
        return true;
      case ThunkKind::kConditional:
        BeginConditional(frame, thunk);
        return true;
      case ThunkKind::kCollective:
      case ThunkKind::kObserve:
        return false;
    }
    return false;
  }

  void EndThunk(Frame& frame) {
    frame.stage = Stage::kThunk;
    ++frame.next;
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

  void BeginInnerLoop(Frame& frame, const Thunk& thunk) {
    const std::vector<Place> initial = OperandsOf(frame, thunk);
    std::vector<int64_t> state;
    std::vector<SmallLoop::Copy> copies;
    for (uint32_t i = 0; i < thunk.operand_count; ++i) {
      const uint32_t slot = thunk.result_begin + i;
      const int64_t bytes = frame.routine->slots[slot].bytes;
      state.push_back(AllocateState(bytes));
      copies.push_back({initial[i], state[i], bytes});
      frame.places[slot] = {nullptr, state[i]};
      frame.own[slot] = true;
    }
    const size_t enter = Add(OperationKind::kEnter, thunk.instruction);
    loop_.operations_[enter].target = static_cast<uint32_t>(loop_.loops_.size());
    AddCopies(thunk.instruction, copies);
    EnterLoop(*static_cast<const WhilePlan*>(thunk.plan), thunk.instruction, state);
  }

  // Begins the condition of a loop, for the top frame.
  void EnterLoop(const WhilePlan& plan, InstructionId instruction, const std::vector<int64_t>& state) {
    Frame& frame = frames_.back();
    frame.loop = {&plan, instruction, state, loop_.operations_.size(), 0, loop_index_, in_condition_};
    frame.stage = Stage::kCondition;
    loop_.loops_.push_back({instruction, loop_index_, in_condition_, 0});
    loop_index_ = static_cast<uint32_t>(loop_.loops_.size() - 1);
    in_condition_ = true;
    Push(*plan.condition, PlacesOf(state), /*owned=*/false);
  }

  static std::vector<Place> PlacesOf(const std::vector<int64_t>& offsets) {
    std::vector<Place> places;
    for (int64_t offset : offsets) places.push_back({nullptr, offset});
    return places;
  }

  // Begins the body, after the condition.
  void TestLoop(Frame& frame) {
    frame.loop.test = Add(OperationKind::kTest, frame.loop.instruction);
    loop_.operations_[frame.loop.test].in = AddOperand(results_[0]);
    in_condition_ = false;
    frame.stage = Stage::kBody;
    Push(*frame.loop.plan->body, PlacesOf(frame.loop.state), /*owned=*/true);
  }

  void LeaveLoop(Frame& frame) {
    const Frame::Loop& loop = frame.loop;
    AddStateCopies(loop.instruction, results_, loop.state, *loop.plan->body);
    loop_.operations_[Add(OperationKind::kJump, loop.instruction)].target = static_cast<uint32_t>(loop.first);
    loop_.operations_[loop.test].target = static_cast<uint32_t>(loop_.operations_.size());
    loop_index_ = loop.outer;
    in_condition_ = loop.outer_condition;
    if (frame.routine == nullptr) {
      frames_.pop_back();
    } else {
      EndThunk(frame);
    }
  }

  void BeginConditional(Frame& frame, const Thunk& thunk) {
    const auto& plan = *static_cast<const ConditionalPlan*>(thunk.plan);
    Frame::Branches& branches = frame.branches;
    branches = Frame::Branches();
    branches.operands = OperandsOf(frame, thunk);
    for (uint32_t r = 0; r < thunk.result_count; ++r) {
      const uint32_t slot = thunk.result_begin + r;
      frame.places[slot] = {nullptr, Allocate(frame.routine->slots[slot].bytes)};
      frame.own[slot] = true;
    }
    Add(OperationKind::kCount, thunk.instruction);
    const size_t select = Add(OperationKind::kSelect, thunk.instruction);
    const auto count = static_cast<uint32_t>(plan.branches.size());
    branches.first = static_cast<uint32_t>(loop_.branches_.size());
    loop_.operations_[select].in = AddOperand(branches.operands[0]);
    loop_.operations_[select].predicate = plan.predicate;
    loop_.operations_[select].branch_count = count;
    loop_.operations_[select].target = branches.first;
    loop_.branches_.resize(branches.first + count);
    BeginBranch(frame);
  }

  // Begins the next branch, or ends the conditional after the last one.
  void BeginBranch(Frame& frame) {
    const auto& plan = *static_cast<const ConditionalPlan*>(frame.routine->thunks[frame.next].plan);
    Frame::Branches& branches = frame.branches;
    const uint32_t b = branches.next++;
    if (b == plan.branches.size()) {
      for (size_t jump : branches.jumps) {
        loop_.operations_[jump].target = static_cast<uint32_t>(loop_.operations_.size());
      }
      EndThunk(frame);
      return;
    }
    loop_.branches_[branches.first + b] = static_cast<uint32_t>(loop_.operations_.size());
    const std::vector<Place> arguments(branches.operands.begin() + plan.operand_begins[b],
                                       branches.operands.begin() + plan.operand_begins[b + 1]);
    frame.stage = Stage::kBranch;
    Push(*plan.branches[b], arguments, /*owned=*/false);
  }

  void EndBranch(Frame& frame) {
    const Thunk& thunk = frame.routine->thunks[frame.next];
    std::vector<SmallLoop::Copy> copies;
    for (uint32_t r = 0; r < thunk.result_count; ++r) {
      const uint32_t slot = thunk.result_begin + r;
      copies.push_back({results_[r], frame.places[slot].offset, frame.routine->slots[slot].bytes});
    }
    AddCopies(thunk.instruction, copies);
    frame.branches.jumps.push_back(Add(OperationKind::kJump, thunk.instruction));
    BeginBranch(frame);
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
  std::vector<Frame> frames_;
  std::vector<Place> results_;                         // of the computation that ended last
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
  if (!builder.Build(loop, instruction, small->state_offsets_) || !builder.Finish()) return nullptr;
  return small;
}

}  // namespace hlokit::interp
