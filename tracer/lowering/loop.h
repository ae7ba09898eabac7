// SPDX-License-Identifier: Apache-2.0
// Loops in lowerings: a while instruction over a state of several arrays.
#ifndef HLOKIT_TRACER_LOWERING_LOOP_H_
#define HLOKIT_TRACER_LOWERING_LOOP_H_

#include <string_view>
#include <vector>

#include "tracer/lowering/xla_op.h"

namespace hlokit::lazy {

// Repeats `body`, from a state to the next one of the same shapes, while `condition` gives true. Both are called once,
// with values of computations of their own: they cannot use other values of the caller. Returns the last state.
template <typename Condition, typename Body>
std::vector<XlaOp> Loop(XlaEmitter& e, absl::Span<const XlaOp> init, Condition condition, Body body) {
  std::vector<InstructionId> parts;
  for (const XlaOp& x : init) {
    if (!x.ok()) return std::vector<XlaOp>(init.size(), x);
    parts.push_back(x.id());
  }
  const XlaOp start = e.Take(e.builder().Tuple(parts));
  const auto computation = [&](std::string_view name, const auto& root_of) {
    const ComputationId id = e.module().AddComputation(e.module().UniqueComputationName(name));
    XlaEmitter inner(&e.module(), id);
    const XlaOp state = inner.Take(inner.builder().Parameter(0, start.shape(), "state"));
    std::vector<XlaOp> elements;
    for (size_t i = 0; i < init.size(); ++i) elements.push_back(Element(state, static_cast<int64_t>(i)));
    const XlaOp root = root_of(inner, elements);
    if (inner.status().ok()) {
      inner.builder().SetRoot(root.id());
    } else {
      e.Fail(inner.status());
    }
    return id;
  };
  const ComputationId test = computation("LoopCondition", [&](XlaEmitter&, const std::vector<XlaOp>& state) {
    return condition(absl::MakeConstSpan(state));
  });
  const ComputationId step = computation("LoopBody", [&](XlaEmitter& inner, const std::vector<XlaOp>& state) {
    std::vector<InstructionId> next;
    for (const XlaOp& x : body(absl::MakeConstSpan(state))) next.push_back(x.id());
    return inner.status().ok() ? inner.Take(inner.builder().Tuple(next)) : XlaOp(&inner, InstructionId());
  });
  if (!e.status().ok()) return std::vector<XlaOp>(init.size(), XlaOp(&e, InstructionId()));
  const XlaOp end = e.Take(e.builder().While(test, step, start.id()));
  std::vector<XlaOp> result;
  for (size_t i = 0; i < init.size(); ++i) result.push_back(Element(end, static_cast<int64_t>(i)));
  return result;
}

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_LOWERING_LOOP_H_
