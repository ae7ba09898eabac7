// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/machine/virtual_machine.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "interp/exact/machine/current_instruction.h"
#include "interp/exact/machine/small_loop.h"
#include "interp/exact/program/view.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// Returns a frame's slots, reused from an earlier call if possible, and the first thunk to run.
SlotValue* NewSlots(CompiledComputation* computation, uint32_t* first_thunk) {
  if (!computation->free_frames.empty()) {
    SlotValue* slots = computation->free_frames.back();
    computation->free_frames.pop_back();
    *first_thunk = computation->first_variant_thunk;
    return slots;
  }
  *first_thunk = 0;
  SlotValue* slots = new SlotValue[computation->slots.size()];
  for (size_t i = 0; i < computation->slots.size(); ++i) {
    slots[i].data = const_cast<std::byte*>(computation->slots[i].constant);  // never written: it has no owner
  }
  return slots;
}

}  // namespace

VirtualMachine::VirtualMachine(RunContext& context, CompiledComputation* computation,
                               absl::Span<const SlotValue> arguments)
    : context_(context) {
  if (!Push(computation, arguments)) state_ = State::kFailed;
}

VirtualMachine::~VirtualMachine() { Unwind(); }

void VirtualMachine::Unwind() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    CompiledComputation* computation = frame.computation;
    for (size_t i = 0; i < computation->slots.size(); ++i) {
      if (computation->slots[i].constant == nullptr) ReleaseSlot(frame.slots[i]);
    }
    delete[] frame.slots;
    frames_.pop_back();
  }
  for (SlotValue& v : returned_) ReleaseSlot(v);
  returned_.clear();
}

VirtualMachine::State VirtualMachine::Fail(std::string message) {
  context_.Fail(std::move(message));
  return state_ = State::kFailed;
}

bool VirtualMachine::Push(CompiledComputation* computation, absl::Span<const SlotValue> arguments) {
  if (static_cast<int64_t>(frames_.size()) >= context_.limits().max_call_depth) {
    for (const SlotValue& v : arguments) context_.pool.Release(v.owner);
    context_.Fail(StrCat("calls are nested deeper than the limit of ", context_.limits().max_call_depth));
    return false;
  }
  uint32_t first_thunk;
  SlotValue* slots = NewSlots(computation, &first_thunk);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const uint32_t slot = computation->parameters[i];
    if (slot == kNoSlot) {
      context_.pool.Release(arguments[i].owner);
    } else {
      slots[slot] = arguments[i];
    }
  }
  frames_.push_back({computation, slots, first_thunk, Phase::kThunk, 0});
  return true;
}

void VirtualMachine::Pop() {
  Frame& frame = frames_.back();
  CompiledComputation* computation = frame.computation;
  returned_.clear();
  for (const OperandRef& ref : computation->results) {
    SlotValue v = frame.slots[ref.slot];
    if (v.owner != nullptr) ++v.owner->refs;
    v.data += ref.offset;
    returned_.push_back(v);
  }
  for (uint32_t slot : computation->end_releases) ReleaseSlot(frame.slots[slot]);
  computation->free_frames.push_back(frame.slots);
  frames_.pop_back();
}

VirtualMachine::State VirtualMachine::Run() {
  while (state_ == State::kRunning) {
    Frame& frame = frames_.back();
    CompiledComputation* computation = frame.computation;
    const Thunk* thunks = computation->thunks.data();
    const uint32_t count = static_cast<uint32_t>(computation->thunks.size());
    if (frame.phase != Phase::kThunk) {
      // The callee's frame has returned.
      const size_t depth = frames_.size();
      if (!Continue(frame, thunks[frame.next])) state_ = State::kFailed;
      if (frames_.size() != depth || state_ != State::kRunning) continue;
    }
    bool same_frame = true;
    while (same_frame && state_ == State::kRunning && frame.next < count) {
      const Thunk& thunk = thunks[frame.next];
      current_instruction.store(thunk.instruction.value, std::memory_order_relaxed);
      switch (thunk.kind) {
        case ThunkKind::kKernel:
          if (!RunKernel(frame, thunk)) {
            state_ = State::kFailed;
            break;
          }
          ++frame.next;
          break;
        case ThunkKind::kCall:
        case ThunkKind::kWhile:
        case ThunkKind::kConditional:
          if (!context_.CountStep() || !Enter(frame, thunk)) state_ = State::kFailed;
          same_frame = false;
          break;
        case ThunkKind::kCollective:
          if (!context_.CountStep()) {
            state_ = State::kFailed;
            break;
          }
          if (observer_ != nullptr) observer_->OnInstructionBegin(thunk.instruction);
          waiting_thunk_ = &thunk;
          waiting_operands_.clear();
          for (uint32_t i = 0; i < thunk.operand_count; ++i) {
            const OperandRef& ref = computation->operands[thunk.operand_begin + i];
            waiting_operands_.push_back(frame.slots[ref.slot].data + ref.offset);
          }
          state_ = State::kWaiting;
          break;
        case ThunkKind::kObserve:
          if (!Observe(frame, thunk)) {
            state_ = State::kFailed;
            break;
          }
          ReleaseAfter(frame, thunk);
          ++frame.next;
          break;
      }
    }
    if (!same_frame || state_ != State::kRunning) continue;
    Pop();
    if (frames_.empty()) state_ = State::kDone;
  }
  if (observer_ != nullptr) observer_->OnInstructionEnd();
  if (state_ == State::kFailed) RecordPosition();
  return state_;
}

bool VirtualMachine::RunKernel(Frame& frame, const Thunk& thunk) {
  if (!context_.CountStep()) return false;
  CompiledComputation* computation = frame.computation;
  SlotValue* slots = frame.slots;
  // Kernels of elementwise operations read three operand pointers regardless of the operand count.
  constexpr uint32_t kMinOperands = 3;
  if (in_.size() < std::max(thunk.operand_count, kMinOperands)) in_.resize(std::max(thunk.operand_count, kMinOperands));
  if (out_.size() < thunk.result_count) out_.resize(thunk.result_count);
  const OperandRef* operands = computation->operands.data() + thunk.operand_begin;
  for (uint32_t i = 0; i < thunk.operand_count; ++i) in_[i] = slots[operands[i].slot].data + operands[i].offset;

  // Reuses the memory of operands that die here if the thunk allows it and they have no other references.
  for (uint32_t i = 0; i < thunk.reuse_count; ++i) {
    const InPlaceReuse& reuse = computation->reuses[thunk.reuse_begin + i];
    SlotValue& from = slots[operands[reuse.operand].slot];
    SlotValue& to = slots[thunk.result_begin + reuse.result];
    if (from.owner == nullptr || from.owner->refs != 1 || to.data != nullptr) continue;
    if (results_ != nullptr && computation->slots[thunk.result_begin + reuse.result].result != kNoResult) continue;
    to = from;
    from = SlotValue();
  }
  for (uint32_t i = 0; i < thunk.result_count; ++i) {
    SlotValue& to = slots[thunk.result_begin + i];
    if (to.data == nullptr) {
      const SlotInfo& slot = computation->slots[thunk.result_begin + i];
      if (slot.result == kNoResult || !PlaceInLiteral(slot, &to)) {
        to.owner = context_.pool.Allocate(slot.bytes, slot.offset);
        if (to.owner != nullptr) to.data = to.owner->data();
      }
      if (to.owner == nullptr) {
        context_.Fail(Scratch::OutOfMemory(context_, slot.bytes), DiagnosticKind::kTooLarge);
        return false;
      }
    }
    out_[i] = to.data;
  }
  if (observer_ != nullptr) observer_->OnInstructionBegin(thunk.instruction);
  thunk.kernel(thunk.params, in_.data(), out_.data(), context_);
  ReleaseAfter(frame, thunk);
  return !context_.failed();
}

bool VirtualMachine::PlaceInLiteral(const SlotInfo& slot, SlotValue* value) {
  if (results_ == nullptr || slot.result >= results_->size()) return false;
  Literal& literal = (*results_)[slot.result];
  if (literal.data() != nullptr) return false;
  if (slot.arena_end >= 0) context_.pool.ReleaseArenaBeyond(slot.arena_end);
  value->owner = context_.pool.AllocateOutside(slot.bytes);
  if (value->owner == nullptr) return false;
  literal = Literal::Zeros(slot.shape);
  value->data = literal.data();
  return true;
}

void VirtualMachine::ReleaseAfter(const Frame& frame, const Thunk& thunk) {
  const uint32_t* releases = frame.computation->releases.data() + thunk.release_begin;
  for (uint32_t i = 0; i < thunk.release_count; ++i) ReleaseSlot(frame.slots[releases[i]]);
}

bool VirtualMachine::PushArguments(const Frame& frame, const Thunk& thunk, CompiledComputation* callee, uint32_t begin,
                                   uint32_t end) {
  const OperandRef* operands = frame.computation->operands.data() + thunk.operand_begin;
  arguments_.clear();
  for (uint32_t i = begin; i < end; ++i) {
    SlotValue v = frame.slots[operands[i].slot];
    if (v.owner != nullptr) ++v.owner->refs;
    v.data += operands[i].offset;
    arguments_.push_back(v);
  }
  // Releases dying operands now, so that the callee may be their only owner. Push may move frames.
  ReleaseAfter(frame, thunk);
  return Push(callee, arguments_);
}

bool VirtualMachine::PushState(Frame& frame, const Thunk& thunk, CompiledComputation* callee, bool move) {
  arguments_.clear();
  for (uint32_t i = 0; i < thunk.result_count; ++i) {
    SlotValue& state = frame.slots[thunk.result_begin + i];
    arguments_.push_back(state);
    if (move) {
      state = SlotValue();
    } else if (state.owner != nullptr) {
      ++state.owner->refs;
    }
  }
  return Push(callee, arguments_);
}

bool VirtualMachine::Enter(Frame& frame, const Thunk& thunk) {
  if (observer_ != nullptr) observer_->OnInstructionBegin(thunk.instruction);
  switch (thunk.kind) {
    case ThunkKind::kCall: {
      frame.phase = Phase::kCall;
      CompiledComputation* callee = static_cast<const CallParams*>(thunk.params)->callee;
      return PushArguments(frame, thunk, callee, 0, thunk.operand_count);
    }
    case ThunkKind::kWhile: {
      SmallLoop* const small = static_cast<const WhileParams*>(thunk.params)->small.get();
      if (small != nullptr && observer_ == nullptr) {
        if (const std::optional<bool> ran = RunSmallLoop(frame, thunk, *small)) return *ran;
      }
      // The loop state is in the result slots.
      for (uint32_t i = 0; i < thunk.operand_count; ++i) {
        const OperandRef& ref = frame.computation->operands[thunk.operand_begin + i];
        SlotValue v = frame.slots[ref.slot];
        if (v.owner != nullptr) ++v.owner->refs;
        v.data += ref.offset;
        frame.slots[thunk.result_begin + i] = v;
      }
      const uint32_t* releases = frame.computation->releases.data() + thunk.release_begin;
      for (uint32_t i = 0; i < thunk.release_count; ++i) {
        // Unused results are released at the end.
        const uint32_t slot = releases[i];
        if (slot < thunk.result_begin || slot >= thunk.result_begin + thunk.result_count)
          ReleaseSlot(frame.slots[slot]);
      }
      frame.phase = Phase::kCondition;
      frame.iterations = 0;
      return PushState(frame, thunk, static_cast<const WhileParams*>(thunk.params)->condition, /*move=*/false);
    }
    case ThunkKind::kConditional: {
      const auto* params = static_cast<const ConditionalParams*>(thunk.params);
      const OperandRef& ref = frame.computation->operands[thunk.operand_begin];
      const std::byte* data = frame.slots[ref.slot].data + ref.offset;
      const size_t count = params->branches.size();
      size_t branch;
      if (params->predicate) {
        branch = *data != std::byte{0} ? 0 : 1;
      } else {
        const int32_t index = *reinterpret_cast<const int32_t*>(data);
        branch = index < 0 || static_cast<size_t>(index) >= count ? count - 1 : static_cast<size_t>(index);
      }
      frame.phase = Phase::kCall;
      return PushArguments(frame, thunk, params->branches[branch], params->operand_begins[branch],
                           params->operand_begins[branch + 1]);
    }
    case ThunkKind::kKernel:
    case ThunkKind::kCollective:
    case ThunkKind::kObserve:
      break;
  }
  return false;
}

std::optional<bool> VirtualMachine::RunSmallLoop(Frame& frame, const Thunk& thunk, SmallLoop& loop) {
  if (static_cast<int64_t>(frames_.size()) + loop.depth() > context_.limits().max_call_depth) return std::nullopt;
  PoolBlock* const block = context_.pool.Allocate(loop.bytes());
  if (block == nullptr) return std::nullopt;
  std::byte* const memory = block->data();
  const std::vector<SlotInfo>& slots = frame.computation->slots;
  for (uint32_t i = 0; i < thunk.operand_count; ++i) {
    const OperandRef& ref = frame.computation->operands[thunk.operand_begin + i];
    std::memcpy(memory + loop.state_offset(i), frame.slots[ref.slot].data + ref.offset,
                static_cast<size_t>(slots[thunk.result_begin + i].bytes));
  }
  bool ok = loop.Run(context_, memory);
  for (uint32_t i = 0; ok && i < thunk.result_count; ++i) {
    const int64_t bytes = slots[thunk.result_begin + i].bytes;
    SlotValue& to = frame.slots[thunk.result_begin + i];
    to.owner = context_.pool.Allocate(bytes);
    if (to.owner == nullptr) {
      context_.Fail(Scratch::OutOfMemory(context_, bytes), DiagnosticKind::kTooLarge);
      ok = false;
      break;
    }
    to.data = to.owner->data();
    std::memcpy(to.data, memory + loop.state_offset(i), static_cast<size_t>(bytes));
  }
  context_.pool.Release(block);
  if (!ok) return false;
  ReleaseAfter(frame, thunk);
  ++frame.next;
  return true;
}

bool VirtualMachine::Continue(Frame& frame, const Thunk& thunk) {
  switch (frame.phase) {
    case Phase::kCall:
      break;
    case Phase::kCondition: {
      const bool go_on = *returned_[0].data != std::byte{0};
      ReleaseSlot(returned_[0]);
      returned_.clear();
      if (!go_on) {
        for (uint32_t i = 0; i < thunk.release_count; ++i) {
          const uint32_t slot = frame.computation->releases[thunk.release_begin + i];
          ReleaseSlot(frame.slots[slot]);
        }
        frame.phase = Phase::kThunk;
        ++frame.next;
        return true;
      }
      if (frame.iterations >= context_.limits().max_loop_iterations) {
        context_.Fail(StrCat("a loop exceeded the limit of ", context_.limits().max_loop_iterations,
                             " iterations (--max-loop-trips)"));
        return false;
      }
      ++frame.iterations;
      ++context_.loop_iterations;
      if (!context_.CountStep()) return false;
      if (observer_ != nullptr) observer_->OnInstructionBegin(thunk.instruction);
      frame.phase = Phase::kBody;
      return PushState(frame, thunk, static_cast<const WhileParams*>(thunk.params)->body, /*move=*/true);
    }
    case Phase::kBody:
      for (uint32_t i = 0; i < thunk.result_count; ++i) frame.slots[thunk.result_begin + i] = returned_[i];
      returned_.clear();
      frame.phase = Phase::kCondition;
      return PushState(frame, thunk, static_cast<const WhileParams*>(thunk.params)->condition, /*move=*/false);
    case Phase::kThunk:
      return true;
  }
  for (uint32_t i = 0; i < thunk.result_count; ++i) frame.slots[thunk.result_begin + i] = returned_[i];
  returned_.clear();
  // Releases unused results; operands are released already.
  ReleaseAfter(frame, thunk);
  frame.phase = Phase::kThunk;
  ++frame.next;
  return true;
}

void VirtualMachine::HoldOperands(std::vector<PoolBlock*>* blocks) const {
  const Frame& frame = frames_.back();
  for (uint32_t i = 0; i < waiting_thunk_->operand_count; ++i) {
    const OperandRef& ref = frame.computation->operands[waiting_thunk_->operand_begin + i];
    PoolBlock* const owner = frame.slots[ref.slot].owner;
    if (owner == nullptr) continue;
    ++owner->refs;
    blocks->push_back(owner);
  }
}

void VirtualMachine::Resume(absl::Span<const SlotValue> results) {
  Frame& frame = frames_.back();
  const Thunk& thunk = *waiting_thunk_;
  for (uint32_t i = 0; i < thunk.result_count; ++i) frame.slots[thunk.result_begin + i] = results[i];
  ReleaseAfter(frame, thunk);
  ++frame.next;
  waiting_thunk_ = nullptr;
  state_ = State::kRunning;
}

bool VirtualMachine::Observe(const Frame& frame, const Thunk& thunk) {
  if (observer_ == nullptr) return true;
  in_.clear();
  for (uint32_t i = 0; i < thunk.operand_count; ++i) {
    const OperandRef& ref = frame.computation->operands[thunk.operand_begin + i];
    in_.push_back(frame.slots[ref.slot].data + ref.offset);
  }
  const auto& params = *static_cast<const ObserveParams*>(thunk.params);
  const absl::Span<const std::byte* const> shown(in_.data(), thunk.operand_count);
  const auto values = shown.subspan(0, params.value_count), operands = shown.subspan(params.value_count);
  const bool is_needed =
      params.group ? observer_->NeedsGroup(*params.group, values) : observer_->NeedsValue(thunk.instruction, values);
  if (!is_needed) return true;
  std::deque<Scratch> copies;
  for (const ObserveParams::Copy& copy : params.copies) {
    std::byte* const to = copies.emplace_back(context_, copy.bytes).data();
    if (to == nullptr) return false;
    copy.kernel(copy.params.get(), &in_[copy.operand], &to, context_);
    in_[copy.operand] = to;
  }
  if (context_.failed()) return false;
  InstructionId at = thunk.instruction;
  const absl::Status status = params.group ? observer_->OnGroup(*params.group, values, operands, &at)
                                           : observer_->OnValue(thunk.instruction, values, operands);
  if (status.ok()) return true;
  context_.Fail(std::string(status.message()));
  context_.error_instruction = at;
  return false;
}

void VirtualMachine::RecordPosition() {
  constexpr size_t kMaxFrames = 16;
  for (size_t i = frames_.size(); i-- > 0;) {
    const Frame& frame = frames_[i];
    if (frame.next >= frame.computation->thunks.size()) continue;
    const Thunk& thunk = frame.computation->thunks[frame.next];
    if (!context_.error_instruction.valid()) context_.error_instruction = thunk.instruction;
    if (thunk.kind != ThunkKind::kWhile || frame.phase == Phase::kThunk) continue;
    if (context_.error_loops.size() < kMaxFrames) {
      context_.error_loops.push_back(
          {thunk.instruction, frame.phase == Phase::kBody ? frame.iterations : frame.iterations + 1});
    }
  }
}

bool VirtualMachine::RunToEnd(RunContext& context, CompiledComputation* computation,
                              absl::Span<const SlotValue> arguments, absl::Span<SlotValue> results) {
  VirtualMachine machine(context, computation, arguments);
  const State state = machine.state() == State::kRunning ? machine.Run() : machine.state();
  if (state == State::kDone) {
    for (size_t i = 0; i < results.size(); ++i) results[i] = std::exchange(machine.returned_[i], SlotValue());
    return true;
  }
  if (state == State::kWaiting) {
    context.Fail("a collective operation in a computation that is applied to elements");
    context.error_instruction = machine.waiting_thunk_->instruction;
  }
  return false;
}

}  // namespace hlokit::interp
