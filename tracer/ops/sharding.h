// SPDX-License-Identifier: Apache-2.0
// Sharding annotations, like torch_xla.distributed.spmd: they reach the HLO, where a partitioner finds them. A session
// whose only device is the virtual one of kSpmdPlatform (step/partitioning.h) runs programs on all devices that the
// annotations name; others ignore them.
#ifndef HLOKIT_TRACER_OPS_SHARDING_H_
#define HLOKIT_TRACER_OPS_SHARDING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/tiling.h"

namespace hlokit::lazy {

// An array of devices with named axes.
struct Mesh {
  std::vector<int64_t> shape;
  std::vector<std::string> axis_names = {};  // empty: axes have no names
  std::vector<int64_t> device_ids = {};      // row-major; empty: 0, 1, ...

  // Returns the number of an axis, or nullopt.
  std::optional<int64_t> AxisNamed(std::string_view name) const;
};

// For each dimension of a tensor the axes of the mesh that divide it, the first one slowest; none: it is not divided.
using PartitionSpec = std::vector<std::vector<int64_t>>;

// Returns how the spec distributes a tensor over the mesh, or an error in torch_xla's words.
absl::StatusOr<Tiling> TilingOf(const Mesh& mesh, const PartitionSpec& spec);

// Annotates a tensor in place: data as a parameter with a sharding, in each program that reads it; a result as a
// custom-call to Sharding too. Returns an error if it has another annotation.
absl::Status MarkSharding(const Tensor& tensor, const Mesh& mesh, const PartitionSpec& spec);
// Annotates a tensor in place, whatever its annotation was. Requires: the tiling is valid for the tensor's shape.
absl::Status SetSharding(const Tensor& tensor, const Tiling& tiling);
// Takes the annotation away, if there is one.
void ClearSharding(const Tensor& tensor);
// Returns the annotation of a tensor; of results of programs of a virtual device, their distribution.
std::optional<Tiling> ShardingOf(const Tensor& tensor);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OPS_SHARDING_H_
