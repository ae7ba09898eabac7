// SPDX-License-Identifier: Apache-2.0
// Builds while loops over tuples.
#ifndef HLOKIT_PASSES_EXPANDERS_LOOP_BUILDER_H_
#define HLOKIT_PASSES_EXPANDERS_LOOP_BUILDER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/module.h"

namespace hlokit {

// Builds a loop with the initial state `state`, and returns the while. `condition` gets a builder and the state, and
// returns a pred; `body` a builder and the elements of the state, and returns the next ones. Their instructions have
// the metadata of `source`.
template <typename Condition, typename Body>
InstructionId MakeLoop(Builder& builder, Instruction source, absl::Span<const InstructionId> state, Condition condition,
                       Body body) {
  Module& module = builder.module();
  std::vector<Shape> shapes;
  for (InstructionId id : state) shapes.push_back(builder.shape_of(id));
  const Shape tuple = builder.shapes().Tuple(shapes);
  Builder c(&module, module.AddComputation(module.UniqueComputationName("cond")));
  const MetadataScope condition_scope(&c, source.metadata_id());
  c.SetRoot(condition(c, c.WithName("state").Make(Opcode::kParameter, tuple, {}, {}, 0)));
  Builder b(&module, module.AddComputation(module.UniqueComputationName("body")));
  const MetadataScope body_scope(&b, source.metadata_id());
  const InstructionId seen = b.WithName("state").Make(Opcode::kParameter, tuple, {}, {}, 0);
  std::vector<InstructionId> elements;
  for (size_t k = 0; k < shapes.size(); ++k) elements.push_back(b.MakeElement(seen, static_cast<int64_t>(k)));
  const std::vector<InstructionId> next = body(b, std::move(elements));
  b.SetRoot(b.MakeTuple(next));
  const AttrValue attrs[] = {Builder::Calls(Attr::kCondition, c.computation()),
                             Builder::Calls(Attr::kBody, b.computation())};
  return builder.Make(Opcode::kWhile, tuple, {builder.MakeTuple(state)}, attrs);
}

// Builds a loop of `count` iterations over `state`, after a counter: element k of the result is element k - 1 of it.
// `body` gets the builder, the counter and the elements, and returns the next ones.
template <typename Body>
InstructionId MakeCountedLoop(Builder& builder, Instruction source, int64_t count, std::vector<InstructionId> state,
                              Body body) {
  state.insert(state.begin(), builder.MakeScalarConstant(ElementType::kS32, 0));
  return MakeLoop(
      builder, source, state,
      [count](Builder& b, InstructionId seen) {
        const InstructionId counter = b.MakeElement(seen, 0);
        const InstructionId bound = b.MakeScalarConstant(ElementType::kS32, static_cast<double>(count));
        return b.MakeCompare(ComparisonDirection::kLt, counter, bound);
      },
      [&body](Builder& b, std::vector<InstructionId> elements) {
        const InstructionId counter = elements[0];
        elements.erase(elements.begin());
        std::vector<InstructionId> next = body(b, counter, std::move(elements));
        const InstructionId one = b.MakeScalarConstant(ElementType::kS32, 1);
        next.insert(next.begin(), b.MakeLike(Opcode::kAdd, {counter, one}));
        return next;
      });
}

}  // namespace hlokit

#endif  // HLOKIT_PASSES_EXPANDERS_LOOP_BUILDER_H_
