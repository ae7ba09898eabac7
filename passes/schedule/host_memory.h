// SPDX-License-Identifier: Apache-2.0
// Arrays in the memory of the host, and buffers of parameters that results reuse.
#ifndef HLOKIT_PASSES_SCHEDULE_HOST_MEMORY_H_
#define HLOKIT_PASSES_SCHEDULE_HOST_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/core/pass.h"

namespace hlokit {

// Replaces the calls by which JAX places an array (annotate_device_placement with the frontend attribute
// _xla_buffer_placement) by those that name the memory: MoveToHost, MoveToDevice, PinToDevice, PinToDeviceSram. Returns
// their number.
absl::StatusOr<int64_t> ConvertMemoryPlacements(Module& module);

struct HostOffloadCounts {
  int64_t arrays = 0;            // calls of MoveToHost replaced
  int64_t parameters = 0;        // parameters of the entry whose arrays the host passes
  int64_t redundant_stores = 0;  // calls of MoveToHost whose operand is on the host
  int64_t redundant_loads = 0;   // calls of MoveToDevice whose operand is on the device
};

// Keeps arrays between MoveToHost and MoveToDevice in the memory space of the host, with copies or dynamic slices
// between the memories, also those that the layout of the entry has there.
absl::StatusOr<HostOffloadCounts> OffloadToHost(Module& module, int64_t host_memory_space);

// Makes transfers between the device and the memory space of the host asynchronous: dynamic-slices that read from it,
// dynamic-update-slices that write to it, and copies. Returns their number.
absl::StatusOr<int64_t> MakeHostTransfersAsync(Module& module, int64_t host_memory_space);

// The option of passes that says which memory space that is.
OptionInfo HostMemorySpaceOption();

// Lets results reuse the buffers of parameters of the same size and memory space, largest first: those that the header
// declares as donors, or all. Returns the number of aliases added.
absl::StatusOr<int64_t> AddInputOutputAliases(Module& module, bool donors_only);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_HOST_MEMORY_H_
