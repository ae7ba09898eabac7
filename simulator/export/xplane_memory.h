// SPDX-License-Identifier: Apache-2.0
// Allocator events of a device while programs run, for TensorBoard's memory profile: MemoryAllocation and
// MemoryDeallocation on a host line, with the bytes in use after each.
//
// Arguments are allocated at the first execution. Temporaries are allocated and freed with their steps, results are
// freed when the next execution begins. `bytes_allocated` counts arguments and results, `bytes_reserved` temporaries;
// at their maximum they add up to the peak of the memory plan. Devices are homogeneous: the first represents all.
#ifndef HLOKIT_SIMULATOR_EXPORT_XPLANE_MEMORY_H_
#define HLOKIT_SIMULATOR_EXPORT_XPLANE_MEMORY_H_

#include <cstdint>

#include "simulator/export/plane_writer.h"
#include "simulator/export/xplane.h"

namespace hlokit::tpu {

// Writes the events of whole executions, up to ProfileSpace::max_events events; at least one execution.
void WriteMemoryEvents(const ProfileSpace& space, int64_t line, PlaneWriter* host);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_XPLANE_MEMORY_H_
