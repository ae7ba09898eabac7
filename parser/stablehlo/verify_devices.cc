// SPDX-License-Identifier: Apache-2.0
// Rules of operations among several devices, and of operations that move data.
#include <algorithm>

#include "parser/stablehlo/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

bool Rules::CheckGroups() {
  const NodeId groups = m.attribute(op, "replica_groups");
  const std::string_view name = n.str(op.name);
  if (groups.valid() && n.kind(groups) == NodeKind::kDense) {
    const NodeId type = n.child(groups, 0);
    if (sizes(type).size() != 2) return Fail("replica groups should be a rank 2 tensor");
    Ints ids = List("replica_groups");
    if (name == "stablehlo.all_to_all" && sizes(type)[1] != Int("split_count")) {
      return Fail(StrCat("group size of replica_groups must be ", Int("split_count")));
    }
    const auto count = static_cast<int64_t>(std::count_if(ids.begin(), ids.end(), [](int64_t id) { return id >= 0; }));
    std::vector<uint8_t> seen(static_cast<size_t>(count), 0);
    for (int64_t id : ids) {
      if (id < -1) return Fail(StrCat("Invalid replica id ", id));
      if (id == -1) continue;
      if (id < count && seen[static_cast<size_t>(id)]++ != 0)
        return Fail(StrCat("replica id #", id, " seen more than once"));
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == 0) return Fail(StrCat("replica id #", i, " not seen in replica groups"));
    }
    if (ids.empty() && (name == "stablehlo.collective_broadcast" || Has("use_global_device_ids"))) {
      return Fail("replica groups cannot be empty");
    }
  } else if (groups.valid() && n.kind(groups) == NodeKind::kFields) {
    // The mesh that the groups name is defined in the module.
    const NodeId mesh = n.Entry(groups, "mesh");
    if (mesh.valid() && n.kind(mesh) == NodeKind::kSymbol) {
      bool found = false;
      for (const mlir::Operation& other : m.operations) {
        const std::string_view other_name = n.str(other.name);
        if (!other_name.ends_with(".mesh")) continue;
        const NodeId symbol = m.attribute(other, "sym_name");
        found = found || (symbol.valid() && n.text(symbol) == n.text(mesh));
      }
      if (!found) return Fail(StrCat("replica_groups: mesh symbol '", n.text(mesh), "' not found"));
    }
  }
  if (Has("use_global_device_ids")) {
    const int64_t channel = n.IntegerValue(n.Entry(m.attribute(op, "channel_handle"), "handle")).value_or(0);
    if (channel < 0) {
      return Fail(StrCat("channel_id must be positive when useGlobalDeviceIds is set but got: ", channel,
                         "; channel_id cannot be negative when useGlobalDeviceIds is set"));
    }
    if (channel == 0 && name != "stablehlo.all_gather")
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
  }
  if (data == 0 && short_name != "all_reduce") return Fail(StrCat(short_name, " requires at least one data operand"));
  if (!CheckGroups()) return false;
  if (op.region_count == 0) return true;
  for (size_t i = 0; i < data; ++i) {
    const NodeId scalar = const_cast<mlir::NodeTable&>(n).Tensor({}, element(operand(i)));
    if (!CheckReducer(0, {operand(i)}, {scalar})) return false;
  }
  return true;
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
  Ints seen[2];
  const Ints list = List("source_target_pairs");
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0) return Fail("replica ids in source_target_pairs must be >= 0");
    Ints& side = seen[i % 2];
    if (std::find(side.begin(), side.end(), list[i]) != side.end()) {
      return Fail(i % 2 == 0 ? "duplicate sources not allowed" : "duplicate targets not allowed");
    }
    side.push_back(list[i]);
  }
  return true;
}

bool Rules::CheckChannelType() {
  const NodeId channel = m.attribute(op, "channel_handle");
  const int64_t type = n.IntegerValue(n.Entry(channel, "type")).value_or(0);
  const bool host = Int("is_host_transfer") != 0;
  const bool send = n.str(op.name) == "stablehlo.send";
  if (!host && type != 1) return Fail("channel_type should be DEVICE_TO_DEVICE when is_host_transfer is false");
  if (host && type != (send ? 2 : 3)) {
    return Fail(StrCat("channel_type should be ", send ? "DEVICE_TO_HOST" : "HOST_TO_DEVICE",
                       " when is_host_transfer is true"));
  }
  return true;
}

// ---- moving data ----

bool Rules::CheckBroadcastInDim() {
  const NodeId from = operand(0), to = result();
  const Ints dimensions = List("broadcast_dimensions");
  if (static_cast<int64_t>(dimensions.size()) != rank(from)) {
    return Fail(
        StrCat("broadcast_dimensions size (", dimensions.size(), ") does not match operand rank (", rank(from), ")"));
  }
  Ints copy = dimensions;
  std::sort(copy.begin(), copy.end());
  if (std::adjacent_find(copy.begin(), copy.end()) != copy.end())
    return Fail("broadcast_dimensions should not have duplicates");
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const int64_t d = dimensions[i];
    if (d < 0 || d >= rank(to)) {
      return Fail(StrCat("broadcast_dimensions contains invalid value ", d, " for result with rank ", rank(to)));
    }
    const int64_t size = sizes(from)[i], wide = sizes(to)[static_cast<size_t>(d)];
    if (size == 1 || SizesAgree(size, wide)) continue;
    return Fail(StrCat("size of operand dimension ", i, " (", size, ") is not ",
                       n.str(op.name) == "stablehlo.broadcast_in_dim" ? "equal to 1 or" : "compatible with",
                       " size of result dimension ", d, " (", wide, ")"));
  }
  return true;
}

bool Rules::CheckBitcastConvert() {
  const std::optional<ElementType> from = n.HloElementType(element(operand(0))),
                                   to = n.HloElementType(element(result()));
  if (!from || !to) return true;
  if (IsComplex(*from) != IsComplex(*to)) return Fail("cannot convert between real and complex types");
  const auto bits = [](ElementType type) { return type == ElementType::kPred ? 1 : BitsOf(type); };
  const bool narrower = bits(*to) < bits(*from);
  const NodeId small = narrower ? result() : operand(0), large = narrower ? operand(0) : result();
  const int64_t ratio = std::max(bits(*from), bits(*to)) / std::min(bits(*from), bits(*to));
  if (bits(*from) != bits(*to) && rank(small) != rank(large) + 1) {
    return Fail(StrCat("rank of smaller element type (", rank(small),
                       ") should be 1 more than rank of larger element type (", rank(large), "), but ", rank(small),
                       " != ", rank(large), " + 1."));
  }
  const absl::Span<const int64_t> shared = sizes(small).subspan(0, std::min(sizes(small).size(), sizes(large).size()));
  if (!ShapesAgree(shared, sizes(large))) {
    return Fail(
        StrCat("operand and result shapes must match except for the innermost dimension of the shape with the "
               "smaller element type. Got: '",
               Text(operand(0)), "' and '", Text(result()), "'."));
  }
  if (bits(*from) != bits(*to) && !SizesAgree(sizes(small).back(), ratio)) {
    return Fail(StrCat("requires compatible bit widths. Got: '", Text(operand(0)), "' and '", Text(result()), "', but ",
                       std::min(bits(*from), bits(*to)), " * ", sizes(small).back(),
                       " != ", std::max(bits(*from), bits(*to)), "."));
  }
  return true;
}

bool Rules::CheckReshape() {
  if (!IsStatic(operand(0)) || !IsStatic(result())) return true;
  const auto count = [&](NodeId type) {
    int64_t product = 1;
    for (int64_t size : sizes(type)) {
      if (__builtin_mul_overflow(product, size, &product)) return int64_t{-1};
    }
    return product;
  };
  if (count(operand(0)) == count(result())) return true;
  return Fail(StrCat("number of output elements (", count(result()), ") doesn't match expected number of elements (",
                     count(operand(0)), ")"));
}

bool Rules::CheckReverse() {
  const Ints dimensions = List("dimensions");
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const int64_t d = dimensions[i];
    if (std::find(dimensions.begin(), dimensions.begin() + static_cast<std::ptrdiff_t>(i), d) !=
        dimensions.begin() + static_cast<std::ptrdiff_t>(i)) {
      return Fail(StrCat("dimensions should be unique. Got: ", ListText(dimensions)));
    }
    if (d < 0) return Fail(StrCat("all dimensions should be non-negative. Got dimension: ", d, "."));
    if (d >= rank(operand(0))) {
      return Fail(StrCat("all dimensions should be between [0, ", rank(operand(0)), "). Got dimension: ", d, "."));
    }
  }
  return true;
}

}  // namespace hlokit::stablehlo
