// SPDX-License-Identifier: Apache-2.0
// Custom-calls that the framework divides among devices: a callback gets the shardings that propagation has found, and
// returns those that it wants, with the program that a device runs on its parts.
#ifndef HLOKIT_PJRT_EXECUTION_CUSTOM_PARTITIONERS_H_
#define HLOKIT_PJRT_EXECUTION_CUSTOM_PARTITIONERS_H_

#include <memory>

#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "pjrt/c_api/partitioner_args.h"

namespace hlokit::pjrt {

// Of all clients; a later partitioner of the same name replaces an earlier one.
absl::Status RegisterCustomPartitioner(PJRT_Register_Custom_Partitioner_Args* args);
absl::Status RegisterBatchPartitionable(PJRT_Register_Batch_Partitionable_Args* args);

// Replaces the custom-calls of a module with shardings, before it is partitioned, by what their partitioners make of
// them: code for one device. The module may become another one.
absl::Status RunCustomPartitioners(std::unique_ptr<Module>* module);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_CUSTOM_PARTITIONERS_H_
