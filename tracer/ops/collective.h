// SPDX-License-Identifier: Apache-2.0
// Collectives over the devices of a tracer, like those of torch_xla.core.xla_model. Each device records the same call
// in its own graph; the devices synchronize when each executes its step. Results have no gradients. With one device and
// no other replica the tensors are returned unchanged.
#ifndef HLOKIT_TRACER_OPS_COLLECTIVE_H_
#define HLOKIT_TRACER_OPS_COLLECTIVE_H_

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/reduce_type.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Groups of ordinals that communicate, each ordinal in one of them; none: all in one group, in order.
using Groups = std::vector<std::vector<int64_t>>;

// Returns the number of devices and replicas that run the program, and that of the device among them.
int64_t WorldSize(DeviceState* device);
int64_t GlobalOrdinal(DeviceState* device);

// Returns the tensors, all of one device, combined with those of the other members of the group and multiplied by
// `scale`.
Tensors AllReduce(ReduceType type, const Tensors& tensors, double scale = 1, const Groups& groups = {},
                  const std::source_location& location = std::source_location::current());
// Returns the tensors of the group, in its order, concatenated along `dim`.
Tensor AllGather(const LocatedTensor& located, int64_t dim = 0, const Groups& groups = {});
// Returns the device's part along `scatter_dim` of the combined tensors, multiplied by `scale`. The groups have one
// size, which divides the dimension.
Tensor ReduceScatter(ReduceType type, const LocatedTensor& located, double scale, int64_t scatter_dim,
                     const Groups& groups = {});
// Splits the tensor along `split_dimension` into a part for each member of the group, and returns those for the device
// concatenated along `concat_dimension`. `split_count`: the size of the groups.
Tensor AllToAll(const LocatedTensor& located, int64_t split_dimension, int64_t concat_dimension, int64_t split_count,
                const Groups& groups = {});
// Returns the tensor of the source whose target is the device, and zeros where there is none.
Tensor CollectivePermute(const LocatedTensor& located, absl::Span<const std::pair<int64_t, int64_t>> pairs);
// Replaces the tensors in place by those of the device with the ordinal `root`: a sum in which the others are zero, as
// in PyTorch/XLA.
void CollectiveBroadcast(const Tensors& tensors, int64_t root = 0,
                         const std::source_location& location = std::source_location::current());

// Waits until all devices have arrived with the tag, and returns their payloads by ordinal. Called by a thread for each
// device. Unlike PyTorch/XLA's it leaves no trace in graphs.
absl::StatusOr<std::vector<std::string>> Rendezvous(DeviceState* device, std::string_view tag,
                                                    std::string payload = "");

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OPS_COLLECTIVE_H_
