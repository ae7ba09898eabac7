// SPDX-License-Identifier: Apache-2.0
// A while loop over little data: its instructions, with those of the loops, calls and conditionals in it, as one flat
// list of operations in memory that is laid out beforehand.
//
// The virtual machine allocates and releases a block for each result and pushes a frame for each condition and body,
// which costs more than the arithmetic of a scalar. Here an iteration only calls kernels and copies the results of the
// body to the loop state. Steps, iterations and errors are counted and reported as by the virtual machine.
//
// Loops of nothing but scalars are generated functions in the fast engine (interp/compiled/loops/while_thunk.h).
// Without this list, in either engine, loops of scalars take 2.8 to 3.8 times as long (a counter and two operations; a
// nested loop with a conditional), those over 1024 elements 1.1 to 1.2 times.
#ifndef HLOKIT_INTERP_EXACT_MACHINE_SMALL_LOOP_H_
#define HLOKIT_INTERP_EXACT_MACHINE_SMALL_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/program.h"

namespace hlokit::interp {

class SmallLoop {
 public:
  // Returns null if the loop has much data, many operations, or some that the virtual machine must see (collectives,
  // observations). `state_bytes`: sizes of the leaves of the state. The computations must outlive the loop.
  static std::unique_ptr<SmallLoop> Create(const WhileParams& loop, InstructionId instruction,
                                           absl::Span<const int64_t> state_bytes);

  // Bytes of the memory that Run takes.
  int64_t bytes() const { return bytes_; }
  // Nesting of loops, calls and conditionals, this loop included.
  int depth() const { return depth_; }
  // Offset of a leaf of the state: of the initial one before Run, of the final one after it.
  int64_t state_offset(size_t leaf) const { return state_offsets_[leaf]; }

  // Runs the loop. Returns false after an error, whose position is in the context. One run at a time.
  bool Run(RunContext& context, std::byte* memory);

 private:
  friend class SmallLoopBuilder;

  // A value: at an offset in the memory, or at an address that outlives the run.
  struct Location {
    const std::byte* constant = nullptr;
    int64_t offset = 0;
  };
  struct Copy {
    Location from;
    int64_t to;
    int64_t bytes;
  };
  enum class OperationKind : uint8_t {
    kKernel,
    kCopies,
    kCount,   // an instruction without a kernel: the begin of a call or conditional
    kEnter,   // of an inner loop
    kOnce,    // jumps over call-invariant operations that have run
    kTest,    // leaves the loop or begins an iteration, by the condition
    kJump,    //
    kSelect,  // jumps to the branch of a conditional
  };
  struct Operation {
    OperationKind kind;
    bool in_condition = false;  // of `loop`
    uint32_t loop = 0;          // the innermost one
    // kKernel: first operand and result; kCopies: range of copies; kTest, kSelect: `in` is the pred or index; kOnce:
    // number.
    uint32_t in = 0, out = 0;
    // kOnce, kTest, kJump: the next operation; kEnter: the loop; kSelect: the first of `branch_count` targets.
    uint32_t target = 0;
    uint32_t branch_count = 0;
    bool predicate = false;
    Kernel kernel = nullptr;
    const ThunkParams* params = nullptr;
    InstructionId instruction;
  };
  struct Loop {
    InstructionId instruction;
    uint32_t parent = 0;
    bool in_condition = false;  // of the parent
    int64_t iterations = 0;
  };
  struct BoundCopy {
    const std::byte* from;
    std::byte* to;
    int64_t bytes;
  };
  static constexpr uint32_t kNoLoop = 0xffffffffu;

  // Computes addresses in this memory.
  void Bind(std::byte* memory);
  bool Fail(RunContext& context, const Operation& at);

  std::vector<Operation> operations_;
  std::vector<Location> operands_;
  std::vector<int64_t> results_;
  std::vector<Copy> copies_;
  std::vector<uint32_t> branches_;
  std::vector<Loop> loops_;
  std::vector<int64_t> state_offsets_;
  uint32_t once_count_ = 0;
  int64_t bytes_ = 0;
  int depth_ = 1;

  std::vector<bool> done_;  // kOnce, in this run
  // For `memory_`.
  std::byte* memory_ = nullptr;
  std::vector<const std::byte*> in_;
  std::vector<std::byte*> out_;
  std::vector<BoundCopy> bound_copies_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_MACHINE_SMALL_LOOP_H_
