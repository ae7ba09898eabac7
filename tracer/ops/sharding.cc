// SPDX-License-Identifier: Apache-2.0
#include "tracer/ops/sharding.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/tensor_impl.h"
#include "tracer/step/device_state.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

constexpr int64_t kMaxMeshDevices = 1 << 20;

absl::Status CheckMesh(const Mesh& mesh) {
  int64_t count = 1;
  for (int64_t size : mesh.shape) {
    if (size < 1) return absl::InvalidArgumentError("sizes of a mesh must be positive");
    count = SaturatingMultiply(count, size);
  }
  if (mesh.shape.empty() || count > kMaxMeshDevices) {
    return absl::InvalidArgumentError(StrCat("a mesh has from 1 to ", kMaxMeshDevices, " devices"));
  }
  if (!mesh.device_ids.empty() && static_cast<int64_t>(mesh.device_ids.size()) != count) {
    return absl::InvalidArgumentError("Number of device IDs must match the size of the mesh shape");
  }
  if (!mesh.axis_names.empty() && mesh.axis_names.size() != mesh.shape.size()) {
    return absl::InvalidArgumentError("Number of axis names must match number of dimensions");
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<int64_t> Mesh::AxisNamed(std::string_view name) const {
  const auto at = std::find(axis_names.begin(), axis_names.end(), name);
  if (at == axis_names.end()) return std::nullopt;
  return at - axis_names.begin();
}

absl::StatusOr<Tiling> TilingOf(const Mesh& mesh, const PartitionSpec& spec) {
  if (absl::Status s = CheckMesh(mesh); !s.ok()) return s;
  const size_t rank = mesh.shape.size();
  std::vector<uint8_t> used(rank, 0);
  std::vector<size_t> order;  // the axes of the dimensions, then the others
  Tiling tiling;
  for (const std::vector<int64_t>& axes : spec) {
    int64_t tiles = 1;
    for (int64_t axis : axes) {
      if (axis < 0 || static_cast<size_t>(axis) >= rank) {
        return absl::InvalidArgumentError(StrCat("Axis ", axis, " not found in mesh of ", rank, " axes"));
      }
      if (std::exchange(used[static_cast<size_t>(axis)], 1) != 0) {
        return absl::InvalidArgumentError("Each device mesh dimension should appear at most once in partition_spec");
      }
      order.push_back(static_cast<size_t>(axis));
      tiles *= mesh.shape[static_cast<size_t>(axis)];
    }
    tiling.tiles.push_back(tiles);
  }
  int64_t copies = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (used[axis] != 0) continue;
    order.push_back(axis);
    copies *= mesh.shape[axis];
  }
  if (std::all_of(tiling.tiles.begin(), tiling.tiles.end(), [](int64_t n) { return n == 1; })) return Tiling();
  if (copies > 1) {
    tiling.tiles.push_back(copies);
    tiling.replicate_last = true;
  }
  // The mesh transposed by `order`.
  std::vector<int64_t> strides(rank, 1);
  for (size_t axis = rank - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * mesh.shape[axis];
  tiling.devices.push_back(0);
  for (size_t axis : order) {
    std::vector<int64_t> finer;
    for (int64_t at : tiling.devices) {
      for (int64_t i = 0; i < mesh.shape[axis]; ++i) finer.push_back(at + i * strides[axis]);
    }
    tiling.devices = std::move(finer);
  }
  if (!mesh.device_ids.empty()) {
    for (int64_t& device : tiling.devices) device = mesh.device_ids[static_cast<size_t>(device)];
  }
  return tiling;
}

absl::Status MarkSharding(const Tensor& tensor, const Mesh& mesh, const PartitionSpec& spec) {
  if (!tensor.defined()) return absl::InvalidArgumentError("the tensor is undefined");
  if (static_cast<size_t>(tensor.dim()) != spec.size()) {
    return absl::InvalidArgumentError(StrCat("Partition spec length (", static_cast<int64_t>(spec.size()),
                                             ") should be equal to the input rank (", tensor.dim(), ")."));
  }
  absl::StatusOr<Tiling> tiling = TilingOf(mesh, spec);
  if (!tiling.ok()) return tiling.status();
  if (!tiling->IsValidFor(tensor.shape())) {
    return absl::InvalidArgumentError("the device IDs of the mesh are negative or not distinct");
  }
  RefreshView(tensor);
  if (const std::optional<Tiling> before = ShardingOf(tensor); before && *before != *tiling) {
    return absl::FailedPreconditionError("Existing annotation must be cleared first.");
  }
  return SetSharding(tensor, *tiling);
}

absl::Status SetSharding(const Tensor& tensor, const Tiling& tiling) {
  RefreshView(tensor);
  TensorData& data = *tensor.impl()->data;
  DeviceState& device = *data.device;
  DeviceLock lock(device.mutex());
  ArgEncoder encoder;
  tiling.AppendTo(&encoder);
  data.sharding = device.context().lists.Intern(encoder.words());
  const bool pending = data.ir.valid() && data.ir_epoch == device.graph().epoch() &&
                       device.graph().node(data.ir.node).op != Op::device_data;
  if (!pending) {
    data.ir = NodeOutput();  // a node of the data as it was may be in the graph
    return absl::OkStatus();
  }
  ArgEncoder call;
  call.Operand();
  tiling.AppendTo(&call);
  const NodeId node = device.AddNode(Op::custom_sharding, device.context().lists.Intern(call.words()), {data.ir});
  if (node == kNoNode) return device.tracer()->status();
  data.ir = {node, 0};
  return absl::OkStatus();
}

void ClearSharding(const Tensor& tensor) {
  if (!tensor.defined()) return;
  RefreshView(tensor);
  TensorData& data = *tensor.impl()->data;
  DeviceState& device = *data.device;
  DeviceLock lock(device.mutex());
  data.sharding = ListId();
  if (!data.ir.valid() || data.ir_epoch != device.graph().epoch()) return;
  if (device.graph().node(data.ir.node).op == Op::custom_sharding) {
    data.ir = device.graph().operands(data.ir.node)[0];
  } else if (data.buffer != nullptr) {
    data.ir = NodeOutput();  // the node has the sharding
  }
}

std::optional<Tiling> ShardingOf(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.impl()->data->sharding.valid()) return std::nullopt;
  return Tiling::FromArgs(DecodeArgs(tensor.device()->context().list(tensor.impl()->data->sharding)), 0);
}

}  // namespace hlokit::lazy
