// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training: parameters, buffers, state of the optimizer, steps of the schedule and seeds, in a
// safetensors file, so that a later run continues with the same bits.
//
//   model.NAME          parameters and buffers of device 0
//   device.D.NAME       buffers of device D > 0, which parameters are equal to those of device 0
//   optimizer.NUMBER.x  state of the optimizer (Optimizer::State)
//
// Its metadata has `format`, `optimizer`, `steps` (of the schedule) and `seed.D` of each device.
#ifndef HLOKIT_TRACER_NN_CHECKPOINT_H_
#define HLOKIT_TRACER_NN_CHECKPOINT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tracer/nn/lr_schedule.h"
#include "tracer/nn/optimizer.h"
#include "tracer/nn/parameter_registry.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::nn {

// The training of one device.
struct TrainingState {
  DeviceState* device = nullptr;
  const ParameterRegistry* registry = nullptr;
  Optimizer* optimizer = nullptr;
  LrScheduler* scheduler = nullptr;
};

// Writes the file atomically. `optimizer`: the name of its kind. Requires: the devices' steps are marked.
absl::Status SaveCheckpoint(const std::string& path, std::string_view optimizer,
                            absl::Span<const TrainingState> devices);
// Sets the state of every device from a file of as many devices and the same kind of optimizer.
absl::Status LoadCheckpoint(const std::string& path, std::string_view optimizer,
                            absl::Span<const TrainingState> devices);

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_CHECKPOINT_H_
