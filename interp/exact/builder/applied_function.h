// SPDX-License-Identifier: Apache-2.0
// The computation that an instruction applies to elements, in the types in which it computes (applied_types.h).
#ifndef HLOKIT_INTERP_EXACT_BUILDER_APPLIED_FUNCTION_H_
#define HLOKIT_INTERP_EXACT_BUILDER_APPLIED_FUNCTION_H_

#include <cstddef>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"

namespace hlokit::interp {

// Returns the computation as a function of accumulators and elements of the types of the first `count` operands that
// returns accumulators; null if it is not one.
inline const ScalarFunction* AccumulatingFunction(CompiledComputationBuilder& b, Attr attr, size_t count) {
  std::vector<ElementType> types;
  for (size_t k = 0; k < count && static_cast<int64_t>(k) < b.instruction().operand_count(); ++k) {
    types.push_back(b.operand(static_cast<int64_t>(k)).type());
  }
  std::vector<ElementType> parameters = types;
  parameters.insert(parameters.end(), types.begin(), types.end());
  const ScalarFunction* const function =
      b.program().FunctionOf(b.instruction().computation_attr(attr), parameters, types);
  return function != nullptr && function->HasTypes(parameters, types) ? function : nullptr;
}

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_APPLIED_FUNCTION_H_
