// SPDX-License-Identifier: Apache-2.0
// A program with shardings for more devices than it was written for.
#ifndef HLOKIT_SIMULATOR_REPORT_MORE_PARTITIONS_H_
#define HLOKIT_SIMULATOR_REPORT_MORE_PARTITIONS_H_

#include <cstdint>

#include "ir/graph/module_fwd.h"

namespace hlokit::tpu {

// Multiplies the number of partitions, and the axis of devices that changes slowest (as a rule the one that divides the
// batch) in every sharding. Returns false for modules that are partitioned already, and if a sharding lists its devices
// without a pattern; the module must then be discarded.
bool MultiplyPartitions(Module* module, int64_t factor);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_MORE_PARTITIONS_H_
