// SPDX-License-Identifier: Apache-2.0
// A prepared program. Each computation becomes one CompiledComputation: a flat list of thunks over the slots of a
// frame. Tuples do not exist at this level (an instruction with a tuple shape has one slot for each leaf), nor do
// instructions that only rearrange indices (they are views, see view.h).
#ifndef HLOKIT_INTERP_EXACT_PROGRAM_PROGRAM_H_
#define HLOKIT_INTERP_EXACT_PROGRAM_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interp/exact/memory/buffer_pool.h"
#include "interp/exact/program/exact_fwd.h"
#include "interp/interface/execution_observer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Parameters of a kernel that are constant over runs; each kernel has its own type.
struct ThunkParams {
  virtual ~ThunkParams() = default;
};

// A kernel reads in[i] and writes out[j], pointers to the first elements of the thunk's operands and results. Results
// are dense; operands have the strides that the parameters were made for. out[j] may alias in[i] as InPlaceReuse
// specifies. Errors are set in the context.
using Kernel = void (*)(const ThunkParams* params, const std::byte* const* in, std::byte* const* out,
                        RunContext& context);
// The kernel that is a function of its own type of parameters: kKernel<RunSort>, for
// `void RunSort(const SortParams& p, in, out, context)`.
template <auto kRun>
struct TypedKernel;
template <typename P, void (*kRun)(const P&, const std::byte* const*, std::byte* const*, RunContext&)>
struct TypedKernel<kRun> {
  static void Run(const ThunkParams* params, const std::byte* const* in, std::byte* const* out, RunContext& context) {
    kRun(*static_cast<const P*>(params), in, out, context);
  }
};
template <auto kRun>
inline constexpr Kernel kKernel = TypedKernel<kRun>::Run;
// Kernel of a thunk whose results have no elements.
inline void RunNothing(const ThunkParams*, const std::byte* const*, std::byte* const*, RunContext&) {}

// The value of one slot: `data` points into `owner`, or into memory that outlives the run (a constant, an argument) if
// that is null.
struct SlotValue {
  PoolBlock* owner = nullptr;
  std::byte* data = nullptr;
};

struct OperandRef {
  uint32_t slot;
  int64_t offset;  // in bytes
};

// The thunk may write result `result` into the bytes of operand `operand` if they have no other references.
struct InPlaceReuse {
  uint16_t operand;
  uint16_t result;
};

enum class ThunkKind : uint8_t {
  kKernel,
  kCall,         // CallParams
  kWhile,        // WhileParams
  kConditional,  // ConditionalParams
  kCollective,   // synchronizes with other devices; CollectiveParams
  kObserve,      // passes operands to the observer; no results; ObserveParams
};

struct Thunk {
  Kernel kernel = nullptr;
  const ThunkParams* params = nullptr;
  uint32_t operand_begin = 0;
  uint32_t operand_count = 0;
  uint32_t result_begin = 0;  // slots result_begin, result_begin + 1, ...
  uint32_t result_count = 0;
  uint32_t release_begin = 0;  // slots without uses after this thunk
  uint32_t release_count = 0;
  uint32_t reuse_begin = 0;
  uint16_t reuse_count = 0;
  ThunkKind kind = ThunkKind::kKernel;
  bool pure = true;  // same operands give the same results
  // The thunk is to leave the body of a loop that does not change its operand.
  bool leaves_loops = false;
  InstructionId instruction;
};

inline constexpr uint32_t kNoResult = 0xffffffffu;

struct SlotInfo {
  int64_t bytes = 0;
  uint32_t result = kNoResult;          // the leaf of the program's result that it is, if it is large
  Shape shape;                          // of that leaf
  int64_t offset = -1;                  // in the arena, where it is placed (block_placement.h)
  int64_t arena_end = -1;               // of a result: no later step needs the arena beyond; -1: it keeps its memory
  bool call_invariant = false;          // written once per frame by a thunk before first_variant_thunk
  const std::byte* constant = nullptr;  // set in every frame, never released
};

// A thunk with one operand and one result that left the body of a loop. The loop has its result as one more element of
// the state.
struct MovedThunk {
  Kernel kernel = nullptr;
  const ThunkParams* params = nullptr;
  uint32_t leaf = 0;   // of the state: the operand
  int64_t offset = 0;  // in it, in bytes
  int64_t bytes = 0;   // of the result
};

// What the values of a computation take while it runs, those of the computations that it calls included.
struct MemoryUsage {
  int64_t live_bytes = 0;      // the most that are live at one time: no placement takes less
  int64_t planned_bytes = 0;   // the most that their places take
  int64_t required_bytes = 0;  // what every run takes at one time: results may have the memory of arguments, and what
                               // is called may not run
  InstructionId at;            // where that is
};

struct CompiledComputation {
  Computation computation;
  MemoryUsage memory;
  std::vector<Thunk> thunks;
  std::vector<OperandRef> operands;
  std::vector<uint32_t> releases;
  std::vector<InPlaceReuse> reuses;
  std::vector<SlotInfo> slots;
  std::vector<uint32_t> parameters;    // slot of each leaf of the parameters; kNoSlot if unused
  std::vector<OperandRef> results;     // leaves of the root
  std::vector<uint32_t> end_releases;  // slots still live after the last thunk
  std::vector<std::unique_ptr<ThunkParams>> thunk_params;
  std::vector<MovedThunk> moved;
  // Thunks before this one are call-invariant. They run when a frame is created, and not again when it is reused.
  uint32_t first_variant_thunk = 0;
  std::vector<SlotValue*>
      free_frames;  // slot arrays of earlier calls with constants and call-invariant slots set, others empty

  // Called between runs: invariant values are in memory of the run.
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

struct CallParams : ThunkParams {
  CompiledComputation* callee = nullptr;
};

// The first `value_count` operands are the leaves of the instruction's value, whose elements fill their memory in some
// order, followed by those of its operands.
struct ObserveParams : ThunkParams {
  size_t value_count = 0;
  // Of operands that are not dense: kernels that copy them, for observers that need the values.
  struct Copy {
    uint32_t operand = 0;
    Kernel kernel = nullptr;
    std::unique_ptr<ThunkParams> params;
    int64_t bytes = 0;
  };
  std::vector<Copy> copies;
  std::optional<ObservedGroup> group;  // set: the values are those of its results and operands
};

struct WhileParams : ThunkParams {
  CompiledComputation* condition = nullptr;
  CompiledComputation* body = nullptr;
  std::shared_ptr<SmallLoop> small;  // null: the loop has much data
};

// Operand 0 selects the branch; the operands of branch i are [operand_begins[i], operand_begins[i + 1]).
struct ConditionalParams : ThunkParams {
  std::vector<CompiledComputation*> branches;
  std::vector<uint32_t> operand_begins;
  bool predicate = false;  // true: pred, branch 0 if true; false: s32, the last branch if out of range
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_PROGRAM_PROGRAM_H_
