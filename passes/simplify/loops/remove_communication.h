// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_SIMPLIFY_LOOPS_REMOVE_COMMUNICATION_H_
#define HLOKIT_PASSES_SIMPLIFY_LOOPS_REMOVE_COMMUNICATION_H_

#include <cstdint>

#include "ir/graph/module.h"

namespace hlokit {

struct CommunicationToRemove {
  bool infeed_outfeed = false;
  bool between_devices = false;  // collectives, send and recv, partition and replica ids
  bool host_transfers = false;   // send and recv with the host
};

// Replaces communication by custom-calls of the same shape that do nothing, and the ids of devices by zero, so that the
// program runs on one device. Returns the number of instructions replaced.
int64_t RemoveCommunication(Module& module, const CommunicationToRemove& what);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_LOOPS_REMOVE_COMMUNICATION_H_
