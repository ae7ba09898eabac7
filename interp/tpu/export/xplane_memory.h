// SPDX-License-Identifier: Apache-2.0
// What a device's allocator would note while a program runs, as the events that TensorBoard's memory profile reads:
// MemoryAllocation and MemoryDeallocation on a line of the host, with what is in use after each.
//
// Arguments are there from the first execution on; what an execution makes comes and goes with its steps, and its
// results are given back when the next execution begins. `bytes_allocated` are arguments and results, `bytes_reserved`
// what only the execution needs; at their highest they add up to the peak of the memory plan. Devices are alike: the
// first stands for all.
#ifndef HLOKIT_INTERP_TPU_EXPORT_XPLANE_MEMORY_H_
#define HLOKIT_INTERP_TPU_EXPORT_XPLANE_MEMORY_H_

#include <cstdint>

#include "interp/tpu/export/plane_writer.h"
#include "interp/tpu/export/xplane.h"

namespace hlokit::tpu {

// Of whole executions, as many as make at most ProfileSpace::max_events events; at least one.
void WriteMemoryEvents(const ProfileSpace& space, int64_t line, PlaneWriter* host);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_EXPORT_XPLANE_MEMORY_H_
