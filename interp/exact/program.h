// SPDX-License-Identifier: Apache-2.0
// A program made ready to run. Each computation becomes a CompiledComputation once: a flat list of steps over the slots
// of a frame. Tuples do not exist at this level (an instruction with a tuple shape has one slot for each leaf), nor do
// instructions that only rearrange indices (they are views, see view.h).
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "interp/exact/buffer_pool.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class RunContext;

// What a kernel needs to know that does not change from run to run; each kernel has its own kind.
struct ThunkParams {
  virtual ~ThunkParams() = default;
};

// A kernel reads in[i] and writes out[j]; both are the first elements of the step's operands and results. Results are
// dense, operands have the strides the plan was made for. out[j] may be in[i] where the step says so (Reuse). Errors go
// to the context.
using Kernel = void (*)(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out,
                        RunContext& context);
// The kernel of a step whose results hold no elements.
inline void RunNothing(const ThunkParams*, const std::byte* const*, std::byte* const*, RunContext&) {}

// The value of one slot: `data` points into `owner`, or into memory that outlives the run (a constant, an argument)
// when there is none.
struct SlotValue {
  PoolBlock* owner = nullptr;
  std::byte* data = nullptr;
};

struct OperandRef {
  uint32_t slot;
  int64_t offset;  // bytes
};

// The step may write result `result` into the bytes of operand `operand` if nothing else refers to them.
struct InPlaceReuse {
  uint16_t operand;
  uint16_t result;
};

enum class ThunkKind : uint8_t {
  kKernel,
  kCall,         // CallPlan
  kWhile,        // WhilePlan
  kConditional,  // ConditionalPlan
  kCollective,   // waits for the other devices; CollectivePlan
  kObserve,      // shows operands to the observer; no results; ObservePlan
};

struct Thunk {
  Kernel kernel = nullptr;
  const ThunkParams* plan = nullptr;
  uint32_t operand_begin = 0;
  uint32_t operand_count = 0;
  uint32_t result_begin = 0;  // slots result_begin, result_begin + 1, ...
  uint32_t result_count = 0;
  uint32_t release_begin = 0;  // slots not used after this step
  uint32_t release_count = 0;
  uint32_t reuse_begin = 0;
  uint16_t reuse_count = 0;
  ThunkKind kind = ThunkKind::kKernel;
  bool pure = true;  // gives the same results whenever it is run on the same operands
  InstructionId instruction;
};

struct SlotInfo {
  int64_t bytes = 0;
  bool call_invariant = false;  // of a step before CompiledComputation::first_variant_thunk: filled once for a frame
                                // and never written again
  const std::byte* constant = nullptr;  // set in every frame, never released
};

struct CompiledComputation {
  Computation computation;
  std::vector<Thunk> thunks;
  std::vector<OperandRef> operands;
  std::vector<uint32_t> releases;
  std::vector<InPlaceReuse> reuses;
  std::vector<SlotInfo> slots;
  std::vector<uint32_t> parameters;    // slot of each leaf of the parameters; kNoSlot where nothing reads it
  std::vector<OperandRef> results;     // each leaf of the root
  std::vector<uint32_t> end_releases;  // slots still held when the last step is done
  std::vector<std::unique_ptr<ThunkParams>> plans;
  // Steps before this one depend on nothing that changes from call to call. They run when a frame is made, and not
  // again when it is used for another call.
  uint32_t first_variant_thunk = 0;
  std::vector<SlotValue*>
      free_frames;  // slot arrays of earlier calls: constants and kept slots set, everything else empty

  // Between runs: the kept values are of the run's memory.
  void DropFrames(BufferPool& pool) {
    for (SlotValue* frame : free_frames) {
      for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i].call_invariant) pool.Release(frame[i].owner);
      }
      delete[] frame;
    }
    free_frames.clear();
  }
};

struct CallPlan : ThunkParams {
  CompiledComputation* callee = nullptr;
};

// The first `value_count` operands are the leaves of the instruction's value, the others those of its operands.
struct ObservePlan : ThunkParams {
  size_t value_count = 0;
};

struct WhilePlan : ThunkParams {
  CompiledComputation* condition = nullptr;
  CompiledComputation* body = nullptr;
};

// Operand 0 chooses the branch; the operands of branch i are [operand_begins[i], operand_begins[i + 1]).
struct ConditionalPlan : ThunkParams {
  std::vector<CompiledComputation*> branches;
  std::vector<uint32_t> operand_begins;
  bool predicate = false;  // true: pred, branch 0 is the true one; false: s32, out of range means the last
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_H_
