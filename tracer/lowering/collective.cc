// SPDX-License-Identifier: Apache-2.0
// Collectives, chained by a token: the number 0, which each takes and returns. All-reduces, one for all operands of a
// type, reduce it too; others add it to their operand. Annotations of shardings.
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/sharding/replica_groups.h"
#include "tracer/graph/reduce_type.h"
#include "tracer/graph/tiling.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

// Returns the opcode that combines values of the type, or nullopt after an error.
std::optional<Opcode> ReducerOf(LoweringContext& n, int64_t number, ElementType type) {
  if (number < 0 || number > static_cast<int64_t>(ReduceType::kMax)) {
    n.emitter().Fail("there is no such reduction");
    return std::nullopt;
  }
  const bool pred = type == ElementType::kPred;
  switch (static_cast<ReduceType>(number)) {
    case ReduceType::kSum:
      return pred ? Opcode::kOr : Opcode::kAdd;
    case ReduceType::kMul:
      return pred ? Opcode::kAnd : Opcode::kMultiply;
    case ReduceType::kAnd:
    case ReduceType::kOr:
      if (!pred && !IsInteger(type)) {
        n.emitter().Fail("and and or combine integers and booleans");
        return std::nullopt;
      }
      return static_cast<ReduceType>(number) == ReduceType::kAnd ? Opcode::kAnd : Opcode::kOr;
    case ReduceType::kMin:
      return pred ? Opcode::kAnd : Opcode::kMinimum;
    case ReduceType::kMax:
      return pred ? Opcode::kOr : Opcode::kMaximum;
  }
  return std::nullopt;
}

// Returns the groups that an argument lists with -1 in between, or one of `count` ordinals if there are none and
// `count` is not 0; nullopt after an error. `count`: the size of each group, 0 if they may differ.
std::optional<AttrValue> GroupsAttr(LoweringContext& n, Dims flat, int64_t count) {
  constexpr int64_t kMaxOrdinals = 1 << 20;
  XlaEmitter& e = n.emitter();
  std::vector<std::vector<int64_t>> groups;
  if (!flat.empty() || count != 0) groups.emplace_back();
  std::vector<int64_t> sorted;
  for (int64_t ordinal : flat) {
    if (ordinal == -1) {
      groups.emplace_back();
    } else {
      groups.back().push_back(ordinal);
      sorted.push_back(ordinal);
    }
  }
  std::sort(sorted.begin(), sorted.end());
  bool fits = count >= 0 && count <= kMaxOrdinals && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!sorted.empty()) fits = fits && sorted.front() >= 0 && sorted.back() < kMaxOrdinals;
  for (int64_t i = 0; fits && flat.empty() && i < count; ++i) groups.back().push_back(i);
  for (const std::vector<int64_t>& group : groups) {
    fits = fits && !group.empty() && (count == 0 || static_cast<int64_t>(group.size()) == count);
  }
  if (!fits) {
    e.Fail("groups must have distinct ordinals and the size of a shard count");
    return std::nullopt;
  }
  return AttrValue{Attr::kReplicaGroups, EncodeReplicaGroups(&e.module().context(), ReplicaGroups::List(groups)).value};
}

// Returns true if the dimension exists and is divided into `count` parts; otherwise fails.
bool DividesDimension(LoweringContext& n, XlaOp x, int64_t dim, int64_t count) {
  if (dim >= 0 && dim < x.rank() && count >= 1 && x.size(dim) % count == 0) return true;
  n.emitter().Fail("the dimension is out of range or not divisible by the shard count");
  return false;
}

// Returns argument 0 plus the token, or a failed value.
XlaOp WithToken(LoweringContext& n) {
  const XlaOp x = n.in(0), token = n.in(1);
  if (!x.ok() || !token.ok() || token.rank() != 0 || !token.is_float()) {
    return n.emitter().Fail("the token must be a number");
  }
  const XlaOp zero = lazy::Cast(token, x.type());
  return x.type() == ElementType::kPred ? x | zero : x + zero;
}

// Returns the next token: 0, computed from an element of the result.
XlaOp NextToken(XlaOp result, XlaOp token) {
  if (!result.ok() || result.elements() == 0) return token;
  XlaOp element = Reshape(
      Slice(result, DimVector(static_cast<size_t>(result.rank()), 0), DimVector(static_cast<size_t>(result.rank()), 1)),
      {});
  // Not the element itself, which may be NaN.
  if (element.is_float()) element = Unary(Opcode::kIsFinite, element);
  return token * lazy::Cast(element, token.type());
}

void ReturnWithToken(LoweringContext& n, XlaOp result) { n.Return(result, NextToken(result, n.in(1))); }

DimVector Resized(XlaOp x, int64_t dim, int64_t size) {
  DimVector dims = x.dims();
  dims[static_cast<size_t>(dim)] = size;
  return dims;
}

}  // namespace

// input, token, dim, shard_count, groups, pin_layout -> result, token
void AllGather(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const XlaOp x = WithToken(n);
  if (!x.ok()) return;
  const int64_t dim = n.int_arg(2), count = n.int_arg(3);
  if (!DividesDimension(n, x, dim, 1)) return;
  const std::optional<AttrValue> groups = GroupsAttr(n, n.ints(4), count);
  int64_t size = 0;
  if (!groups || __builtin_mul_overflow(x.size(dim), count, &size) || count < 1) {
    e.Fail("the result is too large");
    return;
  }
  const Shape shape = e.ArrayShape(x.type(), Resized(x, dim, size));
  ReturnWithToken(n, e.Take(e.builder().Add(Opcode::kAllGather, {x.id()},
                                            {*groups, e.builder().List(Attr::kDimensions, {dim})}, shape)));
}

// input, token, reduce_type, scale, scatter_dim, shard_count, groups, pin_layout -> result, token
void ReduceScatter(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const XlaOp x = WithToken(n);
  if (!x.ok()) return;
  const int64_t dim = n.int_arg(4), count = n.int_arg(5);
  const double scale = n.float_arg(3);
  const std::optional<Opcode> reducer = ReducerOf(n, n.int_arg(2), x.type());
  if (!reducer || !DividesDimension(n, x, dim, count)) return;
  const std::optional<AttrValue> groups = GroupsAttr(n, n.ints(6), count);
  if (!groups) return;
  const Shape shape = e.ArrayShape(x.type(), Resized(x, dim, x.size(dim) / count));
  XlaOp result = e.Take(e.builder().Add(Opcode::kReduceScatter, {x.id()},
                                        {*groups, e.builder().List(Attr::kDimensions, {dim}),
                                         Builder::Calls(Attr::kToApply, e.Reducer(*reducer, x.type()))},
                                        shape));
  if (result.ok() && scale != 1) result = result * scale;
  ReturnWithToken(n, result);
}

// input, token, split_dimension, concat_dimension, split_count, groups, pin_layout -> result, token
void AllToAll(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const XlaOp x = WithToken(n);
  if (!x.ok()) return;
  const int64_t split = n.int_arg(2), concat = n.int_arg(3), count = n.int_arg(4);
  if (!DividesDimension(n, x, split, count) || !DividesDimension(n, x, concat, 1)) return;
  const std::optional<AttrValue> groups = GroupsAttr(n, n.ints(5), count);
  if (!groups) return;
  XlaOp y =
      e.Take(e.builder().Add(Opcode::kAllToAll, {x.id()}, {*groups, e.builder().List(Attr::kDimensions, {split})}));
  if (y.ok() && split != concat) {
    // The parts are along `split`: as a dimension of their own they move before `concat`, and become part of it.
    DimVector parts = y.dims();
    parts[static_cast<size_t>(split)] /= count;
    parts.insert(parts.begin() + split, count);
    DimVector order;
    for (int64_t d = 0; d < static_cast<int64_t>(parts.size()); ++d) {
      if (d == split) continue;
      if (d == (concat < split ? concat : concat + 1)) order.push_back(split);
      order.push_back(d);
    }
    DimVector sizes = Resized(x, split, x.size(split) / count);
    sizes[static_cast<size_t>(concat)] *= count;
    y = Reshape(Transpose(Reshape(y, parts), order), sizes);
  }
  ReturnWithToken(n, y);
}

// input, token, source_target_pairs -> result, token
void CollectivePermute(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const XlaOp x = WithToken(n);
  if (!x.ok()) return;
  const Dims ids = n.ints(2);
  DimVector pairs, sources, targets;  // pairs: each with its length
  for (size_t i = 0; i + 1 < ids.size(); i += 2) {
    pairs.insert(pairs.end(), {2, ids[i], ids[i + 1]});
    sources.push_back(ids[i]);
    targets.push_back(ids[i + 1]);
  }
  for (DimVector* side : {&sources, &targets}) {
    std::sort(side->begin(), side->end());
    if (std::adjacent_find(side->begin(), side->end()) == side->end() && (side->empty() || side->front() >= 0))
      continue;
    return (void)e.Fail("a device is in several pairs, or negative");
  }
  ReturnWithToken(n, e.Take(e.builder().Add(Opcode::kCollectivePermute, {x.id()},
                                            {e.builder().List(Attr::kSourceTargetPairs, pairs)})));
}

// input, tiles, devices, replicate_last
void CustomSharding(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const Tiling tiling = Tiling::FromArgs(n.args(), 1);
  if (!n.in(0).ok() || !tiling.IsValidFor(n.in(0).shape())) return (void)e.Fail("the sharding does not fit the tensor");
  const XlaOp marked = e.Take(e.builder().Add(Opcode::kCustomCall, {n.in(0).id()},
                                              {e.builder().String(Attr::kCustomCallTarget, "Sharding"),
                                               AttrValue{Attr::kSharding, tiling.Encode(&e.module().context()).value}},
                                              n.in(0).shape()));
  n.Return(marked);
}

// operands, token, reduce_type, scale, pin_layout, groups -> as many results, the next token
void CrossReplicaSum(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const std::vector<XlaOp> operands = n.list(0);
  XlaOp token = n.in(1);
  const double scale = n.float_arg(3);
  if (!token.ok() || token.rank() != 0 || !token.is_float()) return (void)e.Fail("the token must be a number");
  std::optional<AttrValue> groups;
  if (!n.ints(5).empty()) {
    groups = GroupsAttr(n, n.ints(5), 0);
    if (!groups) return;
  }
  std::vector<XlaOp> results(operands.size());
  for (size_t first = 0; first < operands.size(); ++first) {
    if (results[first].ok()) continue;
    const ElementType type = operands[first].type();
    std::vector<size_t> places;
    std::vector<InstructionId> ids;
    for (size_t i = first; i < operands.size(); ++i) {
      if (!operands[i].ok() || operands[i].type() != type) continue;
      places.push_back(i);
      ids.push_back(operands[i].id());
    }
    ids.push_back(lazy::Cast(token, type).id());
    const std::optional<Opcode> reducer = ReducerOf(n, n.int_arg(2), type);
    if (!reducer) return;
    std::vector<AttrValue> attrs = {Builder::Calls(Attr::kToApply, e.Reducer(*reducer, type))};
    if (groups) attrs.push_back(*groups);
    const XlaOp all = e.Take(e.builder().Add(Opcode::kAllReduce, ids, attrs));
    if (!all.ok()) return;
    for (size_t k = 0; k < places.size(); ++k) {
      const XlaOp sum = Element(all, static_cast<int64_t>(k));
      results[places[k]] = scale == 1 ? sum : sum * scale;
    }
    token = lazy::Cast(Element(all, static_cast<int64_t>(places.size())), token.type());
  }
  for (const XlaOp& result : results) n.Return(result);
  n.Return(token);
}

}  // namespace hlokit::lazy::lower
