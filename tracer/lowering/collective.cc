// SPDX-License-Identifier: Apache-2.0
// Collectives, chained by a token: the number 0, which each takes and returns. All-reduces, one for all operands of a
// type, reduce it too; others add it to their operand. Annotations of shardings.
#include <vector>

#include "ir/sharding/replica_groups.h"
#include "tracer/graph/reduce_type.h"
#include "tracer/graph/tiling.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

Opcode ReducerOf(ReduceType type) {
  switch (type) {
    case ReduceType::kSum:
      return Opcode::kAdd;
    case ReduceType::kMul:
      return Opcode::kMultiply;
    case ReduceType::kAnd:
      return Opcode::kAnd;
    case ReduceType::kOr:
      return Opcode::kOr;
    case ReduceType::kMin:
      return Opcode::kMinimum;
    case ReduceType::kMax:
      return Opcode::kMaximum;
  }
  return Opcode::kAdd;
}

// Returns the groups that an argument lists with -1 in between, or one of `count` ordinals if there are none and
// `count` is not 0.
AttrValue GroupsAttr(XlaEmitter& e, Dims flat, int64_t count) {
  std::vector<std::vector<int64_t>> groups;
  if (!flat.empty() || count != 0) groups.emplace_back();
  for (int64_t ordinal : flat) {
    if (ordinal < 0) {
      groups.emplace_back();
    } else {
      groups.back().push_back(ordinal);
    }
  }
  for (int64_t i = 0; flat.empty() && i < count; ++i) groups.back().push_back(i);
  return {Attr::kReplicaGroups, EncodeReplicaGroups(&e.module().context(), ReplicaGroups::List(groups)).value};
}

XlaOp WithToken(XlaOp x, XlaOp token) {
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
  const XlaOp x = WithToken(n.in(0), n.in(1));
  const int64_t dim = n.int_arg(2), count = n.int_arg(3);
  const Shape shape = e.ArrayShape(x.type(), Resized(x, dim, x.size(dim) * count));
  ReturnWithToken(
      n, e.Take(e.builder().Add(Opcode::kAllGather, {x.id()},
                                {GroupsAttr(e, n.ints(4), count), e.builder().List(Attr::kDimensions, {dim})}, shape)));
}

// input, token, reduce_type, scale, scatter_dim, shard_count, groups, pin_layout -> result, token
void ReduceScatter(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const XlaOp x = WithToken(n.in(0), n.in(1));
  const int64_t dim = n.int_arg(4), count = n.int_arg(5);
  const double scale = n.float_arg(3);
  const Opcode reducer = ReducerOf(static_cast<ReduceType>(n.int_arg(2)));
  const Shape shape = e.ArrayShape(x.type(), Resized(x, dim, x.size(dim) / count));
  XlaOp result = e.Take(e.builder().Add(Opcode::kReduceScatter, {x.id()},
                                        {GroupsAttr(e, n.ints(6), count), e.builder().List(Attr::kDimensions, {dim}),
                                         Builder::Calls(Attr::kToApply, e.Reducer(reducer, x.type()))},
                                        shape));
  if (result.ok() && scale != 1) result = result * scale;
  ReturnWithToken(n, result);
}

// input, token, split_dimension, concat_dimension, split_count, groups, pin_layout -> result, token
void AllToAll(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const XlaOp x = WithToken(n.in(0), n.in(1));
  const int64_t split = n.int_arg(2), concat = n.int_arg(3), count = n.int_arg(4);
  XlaOp y = e.Take(e.builder().Add(Opcode::kAllToAll, {x.id()},
                                   {GroupsAttr(e, n.ints(5), count), e.builder().List(Attr::kDimensions, {split})}));
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
  const XlaOp x = WithToken(n.in(0), n.in(1));
  const Dims ids = n.ints(2);
  DimVector pairs;  // each with its length
  for (size_t i = 0; i + 1 < ids.size(); i += 2) pairs.insert(pairs.end(), {2, ids[i], ids[i + 1]});
  ReturnWithToken(n, e.Take(e.builder().Add(Opcode::kCollectivePermute, {x.id()},
                                            {e.builder().List(Attr::kSourceTargetPairs, pairs)})));
}

// input, tiles, devices, replicate_last
void CustomSharding(LoweringContext& n) {
  XlaEmitter& e = n.emitter();
  const Tiling tiling = Tiling::FromArgs(n.args(), 1);
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
  const Opcode reducer = ReducerOf(static_cast<ReduceType>(n.int_arg(2)));
  const double scale = n.float_arg(3);
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
    std::vector<AttrValue> attrs = {Builder::Calls(Attr::kToApply, e.Reducer(reducer, type))};
    if (!n.ints(5).empty()) attrs.push_back(GroupsAttr(e, n.ints(5), 0));
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
