// SPDX-License-Identifier: Apache-2.0
// Shardings of results that the caller leaves open: callers know arrays that are divided over the axes of a mesh, into
// equal parts.
#ifndef HLOKIT_PJRT_EXECUTION_OPEN_RESULTS_H_
#define HLOKIT_PJRT_EXECUTION_OPEN_RESULTS_H_

#include "ir/graph/module.h"
#include "pjrt/execution/program.h"

namespace hlokit::pjrt {

// Before propagation: a result whose sharding is open gets one that divides it into equal parts, as Shardy gives it:
// that of the value, where it is uneven, does not count.
void FreeUnevenResult(const CompileOptions& options, Module* module);

// After propagation: an open result that is reversed has the devices of its operand in reverse, an order that no mesh
// has. It gets the sharding of the array before the reversal, and its parts move.
void KeepOrderOfMesh(const CompileOptions& options, Module* module);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_OPEN_RESULTS_H_
