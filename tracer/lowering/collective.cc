// SPDX-License-Identifier: Apache-2.0
// Collectives: one all-reduce for all operands of a type, chained by a token, a number that each reduces too.
#include "tracer/graph/reduce_type.h"
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

}  // namespace

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
    const XlaOp all =
        e.Take(e.builder().Add(Opcode::kAllReduce, ids, {Builder::Calls(Attr::kToApply, e.Reducer(reducer, type))}));
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
