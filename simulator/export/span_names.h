// SPDX-License-Identifier: Apache-2.0
// Names of host spans in profiles of this program, of PyTorch/XLA and of JAX: what a thread does in them.
#ifndef HLOKIT_SIMULATOR_EXPORT_SPAN_NAMES_H_
#define HLOKIT_SIMULATOR_EXPORT_SPAN_NAMES_H_

#include <string_view>

#include "simulator/timing/host.h"

namespace hlokit::tpu {

// Name of the span that ends a step.
inline constexpr std::string_view kStepMarker = "StepMarker";
// Name of the span in which a program is compiled.
inline constexpr std::string_view kCompileSpan = "PjRtComputationClient::Compile";
inline constexpr std::string_view kTransferSpan = "PjRtComputationClient::TransferToDevice";
// Spans that the TPU runtime has in addition: the copy of a transfer, and on a thread for each device the call of a
// program, until it has run.
inline constexpr std::string_view kTransferToServer = "TransferToServer";
inline constexpr std::string_view kRunExecutable = "RunExecutable";
inline constexpr std::string_view kTpuExecute = "TPUExecute";

// Returns the phase of a host span: kTrace for scopes of the program, kOther for Python functions.
HostPhase PhaseOfSpan(std::string_view name);
// Returns true for waits for results of the device.
bool IsDeviceWait(std::string_view name);
// Returns true for any wait: for the device, for a slot in its queue, for a batch, for other threads.
bool IsWait(std::string_view name);

// Returns the span name of a host phase, or of its wait, in written profiles.
std::string_view SpanNameOf(HostPhase phase, bool wait);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_SPAN_NAMES_H_
