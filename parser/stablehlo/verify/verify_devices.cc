// SPDX-License-Identifier: Apache-2.0
// Rules of operations among several devices.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

bool Rules::CheckGroups() {
  const NodeId groups = m.attribute(op, "replica_groups");
  const OpKind kind = op.kind();
  const bool equal_sizes = kind == OpKind::kStablehloAllGather || kind == OpKind::kStablehloAllToAll ||
                           kind == OpKind::kStablehloReduceScatter;
  if (groups.valid() && n.kind(groups) == NodeKind::kDense) {
    const NodeId type = n.child(groups, 0);
    if (sizes(type).size() != 2) return Fail("replica groups should be a rank 2 tensor");
    Ints ids = List("replica_groups");
    if (kind == OpKind::kStablehloAllToAll && sizes(type)[1] != Int("split_count")) {
      return Fail(StrCat("group size of replica_groups must be ", Int("split_count")));
    }
    const auto count = static_cast<int64_t>(std::count_if(ids.begin(), ids.end(), [](int64_t id) { return id >= 0; }));
    std::vector<uint8_t> seen(static_cast<size_t>(count), 0);
    for (int64_t id : ids) {
      if (id < -1) return Fail(StrCat("Invalid replica id ", id));
      if (id == -1 && equal_sizes) return Fail(StrCat("Invalid replica id ", id));
      if (id == -1) continue;  // of a shorter group
      if (id < count && seen[static_cast<size_t>(id)]++ != 0)
        return Fail(StrCat("replica id #", id, " seen more than once"));
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == 0) return Fail(StrCat("replica id #", i, " not seen in replica groups"));
    }
    if (ids.empty() && (kind == OpKind::kStablehloCollectiveBroadcast || Has("use_global_device_ids"))) {
      return Fail("replica groups cannot be empty");
    }
  } else if (groups.valid() && n.kind(groups) == NodeKind::kFields) {
    // The mesh that the groups name is defined in the module.
    const NodeId mesh = n.Entry(groups, "mesh");
    if (mesh.valid() && n.kind(mesh) == NodeKind::kSymbol) {
      if (!symbols_.contains(n.text(mesh)))
        return Fail(StrCat("replica_groups: mesh symbol '", n.text(mesh), "' not found"));
    }
  }
  if (Has("use_global_device_ids")) {
    const int64_t channel = n.IntegerValue(n.Entry(m.attribute(op, "channel_handle"), "handle")).value_or(0);
    if (channel < 0) {
      return Fail(StrCat("channel_id must be positive when useGlobalDeviceIds is set but got: ", channel,
                         "; channel_id cannot be negative when useGlobalDeviceIds is set"));
    }
    if (channel == 0 && kind != OpKind::kStablehloAllGather)
      return Fail(StrCat("channel_id must be positive when useGlobalDeviceIds is set but got: ", channel));
  }
  return true;
}

bool Rules::CheckCollective() {
  const std::string_view name = n.str(op.name);
  const std::string_view short_name = name.substr(name.find('.') + 1);
  size_t data = op.operand_count;
  if (Has("has_dynamic_root")) {
    if (data < 2) {
      return Fail(StrCat(short_name, " with has_dynamic_root=true requires at least two operands (data + root)"));
    }
    --data;
    const NodeId root = operand(data);
    if (!Satisfies(n, mlir::TypeConstraint::kInteger, root) || n.ints(element(root))[0] != 32 || rank(root) != 1) {
      return Fail(StrCat("last operand of ", short_name,
                         " with has_dynamic_root=true must be a rank-1 i32 tensor, but got '", Text(root), "'"));
    }
    if (!SizesAgree(sizes(root)[0], static_cast<int64_t>(data))) {
      return Fail(StrCat("last operand of ", short_name,
                         " with has_dynamic_root=true must have the same number of elements as data operands (", data,
                         "), but got ", sizes(root)[0]));
    }
  }
  if (data == 0 && short_name != "all_reduce") return Fail(StrCat(short_name, " requires at least one data operand"));
  if (!CheckGroups()) return false;
  if (op.region_count == 0) return true;
  for (size_t i = 0; i < data; ++i) {
    const NodeId scalar = const_cast<mlir::NodeTable&>(n).Tensor({}, element(operand(i)));
    if (!CheckReducer(0, {operand(i)}, {scalar}, {})) return false;
  }
  return true;
}

bool Rules::CheckAllToAll() {
  const int64_t split = Int("split_dimension"), concat = Int("concat_dimension"), count = Int("split_count", 1);
  if (op.operand_count != op.result_count) return Fail("requires the same number of operands and results");
  in_inference_ = true;
  if (!CheckGroups()) return false;
  std::vector<NodeId> types;
  for (size_t i = 0; i < op.operand_count; ++i) {
    const NodeId type = operand(i);
    for (const auto& [dimension, name] : {std::pair(split, "split_dimension"), std::pair(concat, "concat_dimension")}) {
      if (dimension < rank(type)) continue;
      return Fail(StrCat("AllToAll ", name, " ", dimension, " is out-of-bounds for input rank ", rank(type)));
    }
    Ints shape(sizes(type).begin(), sizes(type).end());
    int64_t& from = shape[static_cast<size_t>(split)];
    if (from != mlir::kDynamicSize && from % count != 0) {
      return Fail(StrCat("split dimension has size ", from, ", expected to be a multiple of split_count ", count));
    }
    if (from != mlir::kDynamicSize) from /= count;
    int64_t& to = shape[static_cast<size_t>(concat)];
    if (to != mlir::kDynamicSize && __builtin_mul_overflow(to, count, &to)) return Fail("the result is too large");
    types.push_back(TensorOf(shape, element(type)));
  }
  in_inference_ = false;
  return CheckResults(types);
}

bool Rules::CheckAllGather() {
  if (!CheckGroups()) return false;
  const int64_t dimension = Int("all_gather_dim");
  for (size_t i = 0; i < op.operand_count && i < op.result_count; ++i) {
    const NodeId from = operand(i), to = result(i);
    if (rank(from) != rank(to)) return Fail("operand and result must have the same rank");
    if (dimension >= rank(from)) return Fail("all_gather_dim must be a valid index of operand");
    for (int64_t d = 0; d < rank(from); ++d) {
      const int64_t a = sizes(from)[static_cast<size_t>(d)], b = sizes(to)[static_cast<size_t>(d)];
      if (d != dimension && !SizesAgree(a, b)) {
        return Fail("operand and result should have the same shape except for the dimension size at 'all_gather_dim'");
      }
      if (d == dimension && a == 0) return Fail("dimension size of operand at 'all_gather_dim' cannot be zero");
      if (d == dimension && a != mlir::kDynamicSize && b != mlir::kDynamicSize && b % a != 0) {
        return Fail(StrCat("result gather dimension has size ", b,
                           ", expected to be a multiple of operand gather dimension size ", a));
      }
    }
  }
  return true;
}

bool Rules::CheckReduceScatter() {
  if (!CheckCollective()) return false;
  const NodeId from = operand(0), to = result();
  const int64_t dimension = Int("scatter_dimension");
  if (rank(from) != rank(to)) return Fail("operand and result should have same rank");
  if (dimension >= rank(from)) return Fail("scatter dim should be less than operand/result rank");
  for (int64_t d = 0; d < rank(from); ++d) {
    const int64_t a = sizes(from)[static_cast<size_t>(d)], b = sizes(to)[static_cast<size_t>(d)];
    if (d != dimension) {
      if (!SizesAgree(a, b)) {
        return Fail(StrCat("non scatter dimensions should be same for operand (", a, ") and result (", b, ")"));
      }
      continue;
    }
    if (a == 0) return Fail("operand dimension size at scatter_dimension cannot be zero");
    if (b == 0) return Fail("result dimension size at scatter_dimension cannot be zero");
    if (a != mlir::kDynamicSize && b != mlir::kDynamicSize && a % b != 0) {
      return Fail(StrCat("operand scatter dimension has size ", a,
                         ", expected to be a multiple of result scatter dimension size ", b));
    }
  }
  return true;
}

bool Rules::CheckPermute() {
  const NodeId pairs = m.attribute(op, "source_target_pairs");
  if (n.kind(pairs) != NodeKind::kDense) return true;
  const NodeId type = n.child(pairs, 0);
  if (sizes(type).size() != 2) {
    return Fail(StrCat("expect source_target_pairs attribute to be of rank 2, but got rank ", sizes(type).size()));
  }
  if (sizes(type)[1] != 2) {
    return Fail(StrCat("expect source_target_pairs attribute of shape (N, 2), but got (", ListText(sizes(type)), ")"));
  }
  absl::flat_hash_set<int64_t> seen[2];
  const Ints list = List("source_target_pairs");
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0) return Fail("replica ids in source_target_pairs must be >= 0");
    if (!seen[i % 2].insert(list[i]).second) {
      return Fail(i % 2 == 0 ? "duplicate sources not allowed" : "duplicate targets not allowed");
    }
  }
  return true;
}

bool Rules::CheckChannelType() {
  const NodeId channel = m.attribute(op, "channel_handle");
  const int64_t type = n.IntegerValue(n.Entry(channel, "type")).value_or(0);
  const bool host = Int("is_host_transfer") != 0;
  const bool send = op.kind() == OpKind::kStablehloSend;
  in_inference_ = send;
  if (!host && type != 1) return Fail("channel_type should be DEVICE_TO_DEVICE when is_host_transfer is false");
  if (host && type != (send ? 2 : 3)) {
    return Fail(StrCat("channel_type should be ", send ? "DEVICE_TO_HOST" : "HOST_TO_DEVICE",
                       " when is_host_transfer is true"));
  }
  return true;
}

}  // namespace hlokit::stablehlo
