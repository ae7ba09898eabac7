// SPDX-License-Identifier: Apache-2.0
// Assigns the arrays of a computation to buffers in HBM.
//
// An array is a leaf of an instruction's result. Aliases, tuples and their elements, operands that an asynchronous
// start forwards, and loop-invariant elements of a loop's state are the same array. An array is live from the step that
// produces it to its last use; the operands of an asynchronous operation until its done. It takes the buffer of an
// operand of its size that dies at its step, where the instruction may overwrite it (buffer_sharing.h), and a new
// buffer otherwise. Results take the buffers of donated or aliased parameters if these are dead by then, and those of a
// loop body the buffers of the loop's state. Arrays in vector memory or on the host have no buffer.
#ifndef HLOKIT_SIMULATOR_MEMORY_BUFFER_ASSIGNMENT_H_
#define HLOKIT_SIMULATOR_MEMORY_BUFFER_ASSIGNMENT_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/target/device_description.h"
#include "simulator/memory/buffer_sharing.h"
#include "simulator/program/kernel_plan.h"

namespace hlokit::tpu {

// How a computation receives its parameters and returns its results.
enum class ComputationRole : uint8_t {
  kEntry,     // parameters live throughout, unless donated
  kLoopBody,  // parameters are the loop's state, which results overwrite
  kCallee,    // reads parameters, and writes results to buffers of the caller
};

struct ArrayName {
  InstructionId value;
  int64_t leaf = 0;   // of the shape of `value`
  uint32_t from = 0;  // the step that produces it; 0 for parameters
};

struct AssignedBuffer {
  int64_t bytes = 0;           // with padding
  int64_t unpadded_bytes = 0;  // of its first array
  uint32_t from = 0;
  uint32_t to = 0;                // its last use; the number of steps for results
  int64_t parameter = -1;         // the entry parameter whose memory it is
  bool outside = false;           // memory of parameters or of the caller
  std::vector<ArrayName> arrays;  // in order; the first names the buffer
};

struct BufferAssignment {
  std::vector<AssignedBuffer> buffers;  // by `from`
};

// Sizes of arrays in HBM on one device.
class ArraySizes {
 public:
  // `parts`: number of devices that share each array of an unpartitioned module.
  ArraySizes(const DeviceDescription& machine, double parts) : machine_(machine), parts_(parts) {}
  // Return 0 for arrays in other memories.
  int64_t Padded(Shape array) const;
  int64_t Unpadded(Shape array) const;
  // Returns the sum over leaves.
  int64_t PaddedSum(Shape shape) const;

 private:
  int64_t OnDevice(double bytes) const;

  const DeviceDescription& machine_;
  const double parts_;
};

BufferAssignment AssignBuffers(const Module& module, const KernelPlan& plan, const ComputationPlan& computation,
                               ComputationRole role, const ArraySizes& sizes, BufferSharing* sharing);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_MEMORY_BUFFER_ASSIGNMENT_H_
