// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/layout_constraints.h"

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace hlokit::interp {

void SetLayoutConstraints(Instruction custom_call, std::vector<Shape>* leaves) {
  const absl::Span<const int64_t> constraints = custom_call.list_attr(Attr::kOperandLayoutConstraints);
  std::vector<Shape> wanted, stack;
  for (size_t i = constraints.size(); i-- > 0;) {
    stack.push_back(custom_call.module().context().shape(ShapeId(static_cast<uint32_t>(constraints[i]))));
  }
  while (!stack.empty() && wanted.size() <= leaves->size()) {
    const Shape shape = stack.back();
    stack.pop_back();
    if (!shape.IsTuple()) {
      wanted.push_back(shape);
      continue;
    }
    stack.insert(stack.end(), shape.elements().rbegin(), shape.elements().rend());
  }
  if (wanted.size() != leaves->size()) return;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (Compatible(wanted[i], (*leaves)[i])) (*leaves)[i] = wanted[i];
  }
}

}  // namespace hlokit::interp
