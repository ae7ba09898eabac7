// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/machine/small_loop.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "interp/exact/machine/current_instruction.h"
#include "interp/exact/program/view.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

void SmallLoop::Bind(std::byte* memory) {
  if (memory_ == memory) return;
  memory_ = memory;
  const auto at = [&](const Location& location) {
    return location.constant != nullptr ? location.constant : memory + location.offset;
  };
  in_.clear();
  out_.clear();
  bound_copies_.clear();
  for (const Location& location : operands_) in_.push_back(at(location));
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
        current_instruction.store(o.instruction.value, std::memory_order_relaxed);
        o.kernel(o.params, in + o.in, out + o.out, context);
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
  bool Build(const WhileParams& params, InstructionId instruction, const std::vector<int64_t>& state) {
    frames_.emplace_back();
    EnterLoop(params, instruction, state);
    while (!frames_.empty()) {
      if (frames_.size() > kMaxFrames || IsTooLarge() || !Advance()) return false;
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
  using Location = SmallLoop::Location;
  using OperationKind = SmallLoop::OperationKind;
  static constexpr int64_t kMaxBytes = 64 << 10;
  static constexpr size_t kMaxOperations = 2048;
  static constexpr size_t kMaxSlots = 16 << 10;
  static constexpr size_t kMaxFrames = 13;  // nested computations

  // What a frame waits for while that of another computation is above it.
  enum class Stage : uint8_t { kThunk, kCall, kCondition, kBody, kBranch };

  // A computation that is being laid out.
  struct Frame {
    const CompiledComputation* computation = nullptr;  // null: outside of the loop
    std::vector<Location> locations;                   // by slot
    std::vector<bool> own;                             // by slot: its memory may be overwritten
    size_t once = 0;                                   // the operation that jumps over invariant thunks
    uint32_t next = 0;                                 // thunk
    Stage stage = Stage::kThunk;
    // Of the loop at `next`.
    struct Loop {
      const WhileParams* params = nullptr;
      InstructionId instruction;
      std::vector<int64_t> state;
      size_t first = 0, test = 0;  // operations
      uint32_t outer = 0;
      bool outer_condition = false;
    } loop;
    // Of the conditional at `next`.
    struct Branches {
      std::vector<Location> operands;
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

  uint32_t AddOperand(const Location& location) {
    loop_.operands_.push_back(location);
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
  void AddStateCopies(InstructionId instruction, const std::vector<Location>& next, const std::vector<int64_t>& state,
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

  static Location LocationOf(const Frame& frame, const OperandRef& ref) {
    Location location = frame.locations[ref.slot];
    if (location.constant != nullptr) {
      location.constant += ref.offset;
    } else {
      location.offset += ref.offset;
    }
    return location;
  }

  static std::vector<Location> OperandsOf(const Frame& frame, const Thunk& thunk) {
    std::vector<Location> locations;
    for (uint32_t i = 0; i < thunk.operand_count; ++i) {
      locations.push_back(LocationOf(frame, frame.computation->operands[thunk.operand_begin + i]));
    }
    return locations;
  }

  // Begins a computation with parameters at `arguments`, which it may overwrite if `owned`.
  void Push(const CompiledComputation& computation, const std::vector<Location>& arguments, bool owned) {
    slots_ += computation.slots.size();
    if (IsTooLarge()) return;
    loop_.depth_ = std::max(loop_.depth_, static_cast<int>(frames_.size()));
    Frame frame;
    frame.computation = &computation;
    frame.locations.resize(computation.slots.size());
    frame.own.assign(computation.slots.size(), false);
    for (size_t i = 0; i < frame.locations.size(); ++i) frame.locations[i].constant = computation.slots[i].constant;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const uint32_t slot = computation.parameters[i];
      if (slot == kNoSlot) continue;
      frame.locations[slot] = arguments[i];
      frame.own[slot] = owned;
    }
    // Call-invariant values are computed the first time.
    if (computation.first_variant_thunk > 0) {
      frame.once = Add(OperationKind::kOnce, computation.thunks[0].instruction);
      loop_.operations_[frame.once].in = loop_.once_count_++;
    }
    frames_.push_back(std::move(frame));
  }

  // Lays out the next thunk of the top frame, or goes on with it after the frame above. Returns false for a thunk that
  // the virtual machine must see.
  bool Advance() {
    Frame& frame = frames_.back();
    switch (frame.stage) {
      case Stage::kThunk:
        return BeginThunk(frame);
      case Stage::kCall: {
        const Thunk& thunk = frame.computation->thunks[frame.next];
        std::copy(results_.begin(), results_.end(), frame.locations.begin() + thunk.result_begin);
        // A result may be an operand.
        for (uint32_t i = 0; i < thunk.operand_count; ++i) {
          frame.own[frame.computation->operands[thunk.operand_begin + i].slot] = false;
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
    const CompiledComputation& computation = *frame.computation;
    if (frame.next == computation.first_variant_thunk && frame.next > 0) {
      loop_.operations_[frame.once].target = static_cast<uint32_t>(loop_.operations_.size());
    }
    if (frame.next == computation.thunks.size()) {
      std::vector<Location> results;
      for (const OperandRef& ref : computation.results) results.push_back(LocationOf(frame, ref));
      results_ = std::move(results);
      frames_.pop_back();
      return true;
    }
    const Thunk& thunk = computation.thunks[frame.next];
    switch (thunk.kind) {
      case ThunkKind::kKernel:
        AddKernel(computation, thunk, OperandsOf(frame, thunk), &frame.locations, &frame.own);
        EndThunk(frame);
        return true;
      case ThunkKind::kCall:
        Add(OperationKind::kCount, thunk.instruction);
        frame.stage = Stage::kCall;
        Push(*static_cast<const CallParams*>(thunk.params)->callee, OperandsOf(frame, thunk), /*owned=*/false);
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

  void AddKernel(const CompiledComputation& computation, const Thunk& thunk, const std::vector<Location>& operands,
                 std::vector<Location>* locations, std::vector<bool>* own) {
    const size_t at = Add(OperationKind::kKernel, thunk.instruction);
    SmallLoop::Operation& o = loop_.operations_[at];
    o.kernel = thunk.kernel;
    o.params = thunk.params;
    o.in = static_cast<uint32_t>(loop_.operands_.size());
    o.out = static_cast<uint32_t>(loop_.results_.size());
    for (const Location& location : operands) AddOperand(location);
    std::vector<bool> placed(thunk.result_count, false);
    for (uint32_t i = 0; i < thunk.reuse_count; ++i) {
      const InPlaceReuse& reuse = computation.reuses[thunk.reuse_begin + i];
      const uint32_t from = computation.operands[thunk.operand_begin + reuse.operand].slot;
      if (placed[reuse.result] || !(*own)[from]) continue;
      (*locations)[thunk.result_begin + reuse.result] = (*locations)[from];
      (*own)[from] = false;
      placed[reuse.result] = true;
    }
    for (uint32_t r = 0; r < thunk.result_count; ++r) {
      const uint32_t slot = thunk.result_begin + r;
      if (!placed[r]) (*locations)[slot] = {nullptr, Allocate(computation.slots[slot].bytes)};
      (*own)[slot] = true;
      loop_.results_.push_back((*locations)[slot].offset);
    }
  }

  void BeginInnerLoop(Frame& frame, const Thunk& thunk) {
    const std::vector<Location> initial = OperandsOf(frame, thunk);
    std::vector<int64_t> state;
    std::vector<SmallLoop::Copy> copies;
    for (uint32_t i = 0; i < thunk.operand_count; ++i) {
      const uint32_t slot = thunk.result_begin + i;
      const int64_t bytes = frame.computation->slots[slot].bytes;
      state.push_back(AllocateState(bytes));
      copies.push_back({initial[i], state[i], bytes});
      frame.locations[slot] = {nullptr, state[i]};
      frame.own[slot] = true;
    }
    const size_t enter = Add(OperationKind::kEnter, thunk.instruction);
    loop_.operations_[enter].target = static_cast<uint32_t>(loop_.loops_.size());
    AddCopies(thunk.instruction, copies);
    EnterLoop(*static_cast<const WhileParams*>(thunk.params), thunk.instruction, state);
  }

  // Begins the condition of a loop, for the top frame.
  void EnterLoop(const WhileParams& params, InstructionId instruction, const std::vector<int64_t>& state) {
    Frame& frame = frames_.back();
    frame.loop = {&params, instruction, state, loop_.operations_.size(), 0, loop_index_, in_condition_};
    frame.stage = Stage::kCondition;
    loop_.loops_.push_back({instruction, loop_index_, in_condition_, 0});
    loop_index_ = static_cast<uint32_t>(loop_.loops_.size() - 1);
    in_condition_ = true;
    Push(*params.condition, LocationsOf(state), /*owned=*/false);
  }

  static std::vector<Location> LocationsOf(const std::vector<int64_t>& offsets) {
    std::vector<Location> locations;
    for (int64_t offset : offsets) locations.push_back({nullptr, offset});
    return locations;
  }

  // Begins the body, after the condition.
  void TestLoop(Frame& frame) {
    frame.loop.test = Add(OperationKind::kTest, frame.loop.instruction);
    loop_.operations_[frame.loop.test].in = AddOperand(results_[0]);
    in_condition_ = false;
    frame.stage = Stage::kBody;
    Push(*frame.loop.params->body, LocationsOf(frame.loop.state), /*owned=*/true);
  }

  void LeaveLoop(Frame& frame) {
    const Frame::Loop& loop = frame.loop;
    AddStateCopies(loop.instruction, results_, loop.state, *loop.params->body);
    loop_.operations_[Add(OperationKind::kJump, loop.instruction)].target = static_cast<uint32_t>(loop.first);
    loop_.operations_[loop.test].target = static_cast<uint32_t>(loop_.operations_.size());
    loop_index_ = loop.outer;
    in_condition_ = loop.outer_condition;
    if (frame.computation == nullptr) {
      frames_.pop_back();
    } else {
      EndThunk(frame);
    }
  }

  void BeginConditional(Frame& frame, const Thunk& thunk) {
    const auto& params = *static_cast<const ConditionalParams*>(thunk.params);
    Frame::Branches& branches = frame.branches;
    branches = Frame::Branches();
    branches.operands = OperandsOf(frame, thunk);
    for (uint32_t r = 0; r < thunk.result_count; ++r) {
      const uint32_t slot = thunk.result_begin + r;
      frame.locations[slot] = {nullptr, Allocate(frame.computation->slots[slot].bytes)};
      frame.own[slot] = true;
    }
    Add(OperationKind::kCount, thunk.instruction);
    const size_t select = Add(OperationKind::kSelect, thunk.instruction);
    const auto count = static_cast<uint32_t>(params.branches.size());
    branches.first = static_cast<uint32_t>(loop_.branches_.size());
    loop_.operations_[select].in = AddOperand(branches.operands[0]);
    loop_.operations_[select].predicate = params.predicate;
    loop_.operations_[select].branch_count = count;
    loop_.operations_[select].target = branches.first;
    loop_.branches_.resize(branches.first + count);
    BeginBranch(frame);
  }

  // Begins the next branch, or ends the conditional after the last one.
  void BeginBranch(Frame& frame) {
    const auto& params = *static_cast<const ConditionalParams*>(frame.computation->thunks[frame.next].params);
    Frame::Branches& branches = frame.branches;
    const uint32_t b = branches.next++;
    if (b == params.branches.size()) {
      for (size_t jump : branches.jumps) {
        loop_.operations_[jump].target = static_cast<uint32_t>(loop_.operations_.size());
      }
      EndThunk(frame);
      return;
    }
    loop_.branches_[branches.first + b] = static_cast<uint32_t>(loop_.operations_.size());
    const std::vector<Location> arguments(branches.operands.begin() + params.operand_begins[b],
                                          branches.operands.begin() + params.operand_begins[b + 1]);
    frame.stage = Stage::kBranch;
    Push(*params.branches[b], arguments, /*owned=*/false);
  }

  void EndBranch(Frame& frame) {
    const Thunk& thunk = frame.computation->thunks[frame.next];
    std::vector<SmallLoop::Copy> copies;
    for (uint32_t r = 0; r < thunk.result_count; ++r) {
      const uint32_t slot = thunk.result_begin + r;
      copies.push_back({results_[r], frame.locations[slot].offset, frame.computation->slots[slot].bytes});
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
  std::vector<Location> results_;                      // of the computation that ended last
  absl::flat_hash_map<int64_t, int64_t> state_bytes_;  // by offset
  uint32_t loop_index_ = SmallLoop::kNoLoop;
  bool in_condition_ = false;
  size_t slots_ = 0;  // of the computations
  bool too_large_ = false;
};

std::unique_ptr<SmallLoop> SmallLoop::Create(const WhileParams& loop, InstructionId instruction,
                                             absl::Span<const int64_t> state_bytes) {
  std::unique_ptr<SmallLoop> small(new SmallLoop());
  SmallLoopBuilder builder(small.get());
  for (int64_t bytes : state_bytes) small->state_offsets_.push_back(builder.AllocateState(bytes));
  if (!builder.Build(loop, instruction, small->state_offsets_) || !builder.Finish()) return nullptr;
  return small;
}

}  // namespace hlokit::interp
