// SPDX-License-Identifier: Apache-2.0
// Devices for scripts: the collectives of torch_xla.core.xla_model (xm::), and annotations of shardings (xs::).
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/ops/collective.h"
#include "tracer/ops/sharding.h"
#include "tracer/script/native_functions.h"
#include "tracer/script/script_objects.h"

namespace hlokit::lazy::script {
namespace {

absl::StatusOr<ReduceType> ReduceTypeOf(const std::string& name) {
  constexpr std::string_view kNames[] = {"sum", "mul", "and", "or", "min", "max"};
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return absl::InvalidArgumentError(StrCat("unknown reduction `", name, "`: it is sum, mul, and, or, min or max"));
  }
  return static_cast<ReduceType>(found - std::begin(kNames));
}

// Reads lists of integers, [[0, 1], [2, 3]]; none: no lists.
absl::StatusOr<Groups> ReadGroups(const Value& value, std::string_view name) {
  Groups groups;
  if (value.none()) return groups;
  const auto error = [&] {
    return absl::InvalidArgumentError(StrCat("expected lists of integers as `", name, "`, [[0, 1], [2, 3]]"));
  };
  if (value.list() == nullptr) return error();
  for (const Value& group : value.list()->values) {
    if (group.list() == nullptr) return error();
    groups.emplace_back();
    for (const Value& member : group.list()->values) {
      const Scalar* ordinal = member.get<Scalar>();
      if (ordinal == nullptr || ordinal->is_float()) return error();
      groups.back().push_back(ordinal->ToInt());
    }
  }
  return groups;
}

absl::StatusOr<Value> GetOrdinal(RunContext& c, const Arguments&) { return Value(GlobalOrdinal(c.device)); }
absl::StatusOr<Value> GetWorldSize(RunContext& c, const Arguments&) { return Value(WorldSize(c.device)); }
absl::StatusOr<Value> GetIsMaster(RunContext& c, const Arguments&) { return Value(IsMasterOrdinal(c.device)); }

absl::StatusOr<Value> CallAllReduce(RunContext&, const Arguments& a) {
  const absl::StatusOr<ReduceType> type = ReduceTypeOf(a.text(0));
  if (!type.ok()) return type.status();
  const absl::StatusOr<Groups> groups = ReadGroups(a[3], "groups");
  if (!groups.ok()) return groups.status();
  Tensors reduced = AllReduce(*type, a.tensors(1), a.real(2), *groups);
  if (a[1].list() == nullptr) return reduced.empty() ? Value() : Value(std::move(reduced[0]));
  // As in PyTorch/XLA, tensors of a list are reduced in place.
  const Tensors tensors = a.tensors(1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (reduced[i].defined() && !SameTensor(tensors[i], reduced[i])) WriteInPlace(tensors[i], reduced[i]);
  }
  return Value(Value::None());
}

absl::StatusOr<Value> CallAllGather(RunContext&, const Arguments& a) {
  const absl::StatusOr<Groups> groups = ReadGroups(a[2], "groups");
  if (!groups.ok()) return groups.status();
  return Value(AllGather(a.tensor(0), a.integer(1), *groups));
}

absl::StatusOr<Value> CallReduceScatter(RunContext& c, const Arguments& a) {
  const absl::StatusOr<ReduceType> type = ReduceTypeOf(a.text(0));
  if (!type.ok()) return type.status();
  const absl::StatusOr<Groups> groups = ReadGroups(a[5], "groups");
  if (!groups.ok()) return groups.status();
  const int64_t shards = groups->empty() ? WorldSize(c.device) : static_cast<int64_t>((*groups)[0].size());
  if (a.integer(4) != shards) {
    return absl::InvalidArgumentError(StrCat("shard_count is ", a.integer(4), ", but ", shards, " devices take part"));
  }
  return Value(ReduceScatter(*type, a.tensor(1), a.real(2), a.integer(3), *groups));
}

absl::StatusOr<Value> CallAllToAll(RunContext&, const Arguments& a) {
  const absl::StatusOr<Groups> groups = ReadGroups(a[4], "groups");
  if (!groups.ok()) return groups.status();
  return Value(AllToAll(a.tensor(0), a.integer(1), a.integer(2), a.integer(3), *groups));
}

absl::StatusOr<Value> CallCollectivePermute(RunContext&, const Arguments& a) {
  const absl::StatusOr<Groups> lists = ReadGroups(a[1], "pairs");
  if (!lists.ok()) return lists.status();
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const std::vector<int64_t>& pair : *lists) {
    if (pair.size() != 2) return absl::InvalidArgumentError("a pair is [source, target]");
    pairs.emplace_back(pair[0], pair[1]);
  }
  return Value(CollectivePermute(a.tensor(0), pairs));
}

absl::StatusOr<Value> CallBroadcast(RunContext&, const Arguments& a) {
  CollectiveBroadcast(a.tensors(0), a.integer(1));
  return Value(Value::None());
}

absl::StatusOr<Value> CallRendezvous(RunContext& c, const Arguments& a) {
  const OthersRun others(c);
  absl::StatusOr<std::vector<std::string>> payloads = Rendezvous(c.device, a.text(0), a.text(1));
  if (!payloads.ok()) return payloads.status();
  return Value::ListOf(std::vector<Value>(payloads->begin(), payloads->end()));
}

absl::StatusOr<Value> CallMeshReduce(RunContext& c, const Arguments& a) {
  const std::string& how = a.text(2);
  if (how != "sum" && how != "mean" && how != "min" && how != "max") {
    return absl::InvalidArgumentError(StrCat("unknown reduction `", how, "`: it is sum, mean, min or max"));
  }
  const OthersRun others(c);
  absl::StatusOr<double> reduced = MeshReduce(c.device, a.text(0), a.real(1), [&](absl::Span<const double> values) {
    double result = values[0];
    for (double v : values.subspan(1)) {
      result = how == "min" ? std::min(result, v) : how == "max" ? std::max(result, v) : result + v;
    }
    return how == "mean" ? result / static_cast<double>(values.size()) : result;
  });
  if (!reduced.ok()) return reduced.status();
  return Value(*reduced);
}

absl::StatusOr<Value> MakeMesh(RunContext&, const Arguments& a) {
  Mesh mesh;
  mesh.shape = a.integers(0);
  if (!a.none(1)) {
    if (a[1].list() == nullptr) return absl::InvalidArgumentError("axis_names is a list of strings");
    for (const Value& name : a[1].list()->values) {
      if (TextOf(name) == nullptr) return absl::InvalidArgumentError("axis_names is a list of strings");
      mesh.axis_names.push_back(*TextOf(name));
    }
  }
  if (!a.none(2)) mesh.device_ids = a.integers(2);
  // Checks the mesh too.
  if (absl::Status s = TilingOf(mesh, {}).status(); !s.ok()) return s;
  return Value(std::static_pointer_cast<Object>(std::make_shared<MeshObject>(std::move(mesh))));
}

// Reads the axes of a dimension: none, a name, a number, or a list of these.
absl::Status ReadAxes(const Value& value, const Mesh& mesh, std::vector<int64_t>* axes) {
  if (value.none()) return absl::OkStatus();
  const std::vector<Value> one = {value};
  for (const Value& axis : value.list() == nullptr ? one : value.list()->values) {
    if (const Scalar* number = axis.get<Scalar>(); number != nullptr && !number->is_float()) {
      axes->push_back(number->ToInt());
    } else if (const std::string* name = TextOf(axis)) {
      const std::optional<int64_t> found = mesh.AxisNamed(*name);
      if (!found) return absl::InvalidArgumentError(StrCat("the mesh has no axis `", *name, "`"));
      axes->push_back(*found);
    } else {
      return absl::InvalidArgumentError("a partition spec has none, axes, or lists of axes");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> CallMarkSharding(RunContext&, const Arguments& a) {
  const Mesh& mesh = a[1].object<MeshObject>()->mesh;
  PartitionSpec spec;
  if (a[2].list() == nullptr) return absl::InvalidArgumentError("a partition spec is a list");
  for (const Value& dimension : a[2].list()->values) {
    spec.emplace_back();
    if (absl::Status s = ReadAxes(dimension, mesh, &spec.back()); !s.ok()) return s;
  }
  if (absl::Status s = MarkSharding(a.tensor(0), mesh, spec); !s.ok()) return s;
  return a[0];
}

absl::StatusOr<Value> CallClearSharding(RunContext&, const Arguments& a) {
  ClearSharding(a.tensor(0));
  return Value(Value::None());
}

constexpr NativeRow kCollectives[] = {
    {"xm::get_ordinal()", GetOrdinal},
    {"xm::get_world_size()", GetWorldSize},
    {"xm::is_master_ordinal()", GetIsMaster},
    {"xm::all_reduce(str reduce_type, Tensor[] inputs, float scale=1, any groups=none)", CallAllReduce},
    {"xm::all_gather(Tensor value, int dim=0, any groups=none)", CallAllGather},
    {"xm::reduce_scatter(str reduce_type, Tensor input, float scale, int scatter_dim, int shard_count, any "
     "groups=none)",
     CallReduceScatter},
    {"xm::all_to_all(Tensor value, int split_dimension, int concat_dimension, int split_count, any groups=none)",
     CallAllToAll},
    {"xm::collective_permute(Tensor value, any pairs)", CallCollectivePermute},
    {"xm::collective_broadcast(Tensor[] tensors, int root_ordinal=0)", CallBroadcast},
    {"xm::rendezvous(str tag, str payload=\"\")", CallRendezvous, true},
    {"xm::mesh_reduce(str tag, float data, str reduction)", CallMeshReduce, true},
    {"xs::Mesh(int[] mesh_shape, any axis_names=none, int[]? device_ids=none)", MakeMesh},
    {"xs::mark_sharding(Tensor t, Mesh mesh, any partition_spec)", CallMarkSharding},
    {"xs::clear_sharding(Tensor t)", CallClearSharding},
};

}  // namespace

void AddCollectives(std::vector<NativeFunction>* functions) {
  for (const NativeRow& row : kCollectives) AddRow(row, functions);
}

}  // namespace hlokit::lazy::script
