// SPDX-License-Identifier: Apache-2.0
// Graphs that come again with other sizes of small integers, as those of a program that generates tokens: its ids,
// masks and positions grow with each, and the rest of the graph stays as it is. Such a graph is divided: what is
// computed of integers alone, before and after the rest, is interpreted, and only the rest is compiled.
#ifndef HLOKIT_TRACER_STEP_DIVIDED_GRAPH_H_
#define HLOKIT_TRACER_STEP_DIVIDED_GRAPH_H_

#include "absl/status/status.h"
#include "tracer/step/device_state.h"
#include "tracer/step/execution_log.h"

namespace hlokit::lazy {

// Runs all that is pending on the device, as SyncLiveTensors does. A graph that is not known, and has nothing but small
// integers, is interpreted; one whose other part is known with other integers is divided. What is interpreted is
// counted as InterpretedGraph.
absl::Status SyncRecorded(DeviceState& device, SyncReason cause);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_DIVIDED_GRAPH_H_
