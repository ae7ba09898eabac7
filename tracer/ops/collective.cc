// SPDX-License-Identifier: Apache-2.0
#include "tracer/ops/collective.h"

#include "ir/core/str_cat.h"
#include "tracer/autograd/node.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/step/device_state.h"
#include "tracer/step/host_rendezvous.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

// A token in f32 that each collective consumes and produces, so that they run in recording order.
Tensor Token(DeviceState& device) {
  DeviceLock lock(device.mutex());
  return device.CollectiveToken();
}

void SetToken(DeviceState& device, Tensor token) {
  DeviceLock lock(device.mutex());
  device.SetCollectiveToken(std::move(token));
}

// Groups as an argument of a node: one after the other, with -1 in between.
std::vector<int64_t> Flat(const Groups& groups) {
  std::vector<int64_t> flat;
  for (const std::vector<int64_t>& group : groups) {
    if (!flat.empty()) flat.push_back(-1);
    flat.insert(flat.end(), group.begin(), group.end());
  }
  return flat;
}

Tensor Failed(DeviceState& device, std::string_view name, std::string_view message) {
  device.tracer()->SetError(absl::InvalidArgumentError(StrCat(name, ": ", message)));
  return Tensor();
}

// Returns the common size of the groups, or -1 after an error.
int64_t GroupSize(DeviceState& device, std::string_view name, const Groups& groups) {
  const int64_t world = WorldSize(&device);
  if (groups.empty()) return world;
  std::vector<uint8_t> seen(static_cast<size_t>(world), 0);
  for (const std::vector<int64_t>& group : groups) {
    if (group.size() != groups[0].size()) {
      Failed(device, name, "groups have different sizes");
      return -1;
    }
    for (int64_t ordinal : group) {
      if (ordinal < 0 || ordinal >= world || std::exchange(seen[static_cast<size_t>(ordinal)], 1) != 0) {
        Failed(device, name, StrCat("ordinal ", ordinal, " is none of ", world, ", or in several groups"));
        return -1;
      }
    }
  }
  return static_cast<int64_t>(groups[0].size());
}

// Records a collective of one tensor; `args` follow the token.
template <typename... A>
Tensor Recorded(Op op, const Tensor& tensor, A... args) {
  DeviceState& device = *tensor.device();
  const NoGradGuard no_grad;
  const Outputs results = InvokeOpMultiOutput(op, tensor, Token(device), args...);
  if (results.size() != 2) return Tensor();
  SetToken(device, results[1]);
  return results[0];
}

// Returns true if the collective has nobody to communicate with.
bool IsAlone(const Tensor& tensor) { return !tensor.defined() || WorldSize(tensor.device()) == 1; }

// Returns the dimension from 0, or -1 after an error.
int64_t Dimension(const Tensor& tensor, std::string_view name, int64_t dim) {
  const int64_t rank = tensor.dim();
  if (dim >= -rank && dim < rank) return dim < 0 ? dim + rank : dim;
  Failed(
      *tensor.device(), name,
      StrCat("Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1, "], but got ", dim, ")"));
  return -1;
}

}  // namespace

int64_t WorldSize(DeviceState* device) {
  const Tracer& tracer = *device->tracer();
  return std::max<int64_t>(static_cast<int64_t>(tracer.device_count()), tracer.options().replicas);
}

int64_t GlobalOrdinal(DeviceState* device) { return device->device()->ordinal(); }

Tensors AllReduce(ReduceType type, const Tensors& tensors, double scale, const Groups& groups,
                  const std::source_location& location) {
  const ScopedSourceLocation site(location);
  if (tensors.empty() || IsAlone(tensors[0])) return tensors;
  DeviceState& device = *tensors[0].device();
  if (GroupSize(device, "xla::cross_replica_sum", groups) < 0) return Tensors(tensors.size());
  const NoGradGuard no_grad;
  Outputs all = InvokeOpMultiOutput(Op::cross_replica_sum, tensors, Token(device), static_cast<int64_t>(type), scale,
                                    true, Dims(Flat(groups)));
  if (all.size() != tensors.size() + 1) return Tensors(tensors.size());
  SetToken(device, all.back());
  return Tensors(all.begin(), all.end() - 1);
}

Tensor AllGather(const LocatedTensor& located, int64_t dim, const Groups& groups) {
  const ScopedSourceLocation site(located.location);
  const Tensor& tensor = located.tensor;
  if (IsAlone(tensor)) return tensor;
  const int64_t at = Dimension(tensor, "xla::all_gather", dim);
  const int64_t count = GroupSize(*tensor.device(), "xla::all_gather", groups);
  if (at < 0 || count < 0) return Tensor();
  return Recorded(Op::all_gather, tensor, at, count, Dims(Flat(groups)), true);
}

Tensor ReduceScatter(ReduceType type, const LocatedTensor& located, double scale, int64_t scatter_dim,
                     const Groups& groups) {
  const ScopedSourceLocation site(located.location);
  const Tensor& tensor = located.tensor;
  if (IsAlone(tensor)) return scale == 1 || !tensor.defined() ? tensor : tensor * Scalar(scale);
  const int64_t at = Dimension(tensor, "xla::reduce_scatter", scatter_dim);
  const int64_t count = GroupSize(*tensor.device(), "xla::reduce_scatter", groups);
  if (at < 0 || count < 0) return Tensor();
  if (tensor.size(at) % count != 0) {
    return Failed(*tensor.device(), "xla::reduce_scatter",
                  StrCat("dimension ", at, " of size ", tensor.size(at), " is not divisible by ", count, " shards"));
  }
  return Recorded(Op::reduce_scatter, tensor, static_cast<int64_t>(type), scale, at, count, Dims(Flat(groups)), true);
}

Tensor AllToAll(const LocatedTensor& located, int64_t split_dimension, int64_t concat_dimension, int64_t split_count,
                const Groups& groups) {
  const ScopedSourceLocation site(located.location);
  const Tensor& tensor = located.tensor;
  if (IsAlone(tensor)) return tensor;
  const int64_t split = Dimension(tensor, "xla::all_to_all", split_dimension);
  const int64_t concat = Dimension(tensor, "xla::all_to_all", concat_dimension);
  const int64_t count = GroupSize(*tensor.device(), "xla::all_to_all", groups);
  if (split < 0 || concat < 0 || count < 0) return Tensor();
  if (split_count != count || tensor.size(split) % count != 0) {
    return Failed(*tensor.device(), "xla::all_to_all",
                  StrCat("cannot split dimension ", split, " of size ", tensor.size(split), " into ", split_count,
                         " parts for groups of ", count));
  }
  return Recorded(Op::all_to_all, tensor, split, concat, count, Dims(Flat(groups)), true);
}

Tensor CollectivePermute(const LocatedTensor& located, absl::Span<const std::pair<int64_t, int64_t>> pairs) {
  const ScopedSourceLocation site(located.location);
  const Tensor& tensor = located.tensor;
  if (IsAlone(tensor)) return tensor;
  std::vector<int64_t> flat;
  const int64_t world = WorldSize(tensor.device());
  for (const auto& [source, target] : pairs) {
    if (source < 0 || source >= world || target < 0 || target >= world) {
      return Failed(*tensor.device(), "xla::collective_permute",
                    StrCat("pair (", source, ", ", target, ") is beyond ", world, " ordinals"));
    }
    flat.push_back(source);
    flat.push_back(target);
  }
  return Recorded(Op::collective_permute, tensor, Dims(flat));
}

void CollectiveBroadcast(const Tensors& tensors, int64_t root, const std::source_location& location) {
  const ScopedSourceLocation site(location);
  if (tensors.empty() || IsAlone(tensors[0])) return;
  DeviceState& device = *tensors[0].device();
  if (root < 0 || root >= WorldSize(&device)) {
    Failed(device, "xla::collective_broadcast", StrCat("there is no ordinal ", root));
    return;
  }
  const NoGradGuard no_grad;
  // The factor is data, so that all devices have the same program.
  const Shape shape = device.ArrayShape(ElementType::kF32, {});
  const Tensor factor = device.tracer()->FromLiteral(FilledLiteral(shape, GlobalOrdinal(&device) == root ? 1.0 : 0.0));
  Tensors scaled;
  for (const Tensor& t : tensors) scaled.push_back(t * To(factor, t.dtype()));
  const Tensors sums = AllReduce(ReduceType::kSum, scaled);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (sums[i].defined()) WriteInPlace(tensors[i], sums[i]);
  }
}

absl::StatusOr<std::vector<std::string>> Rendezvous(DeviceState* device, std::string_view tag, std::string payload) {
  return device->tracer()->host_rendezvous().Meet(static_cast<size_t>(GlobalOrdinal(device)), tag, std::move(payload));
}

}  // namespace hlokit::lazy
