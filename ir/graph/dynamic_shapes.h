// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_IR_GRAPH_DYNAMIC_SHAPES_H_
#define HLOKIT_IR_GRAPH_DYNAMIC_SHAPES_H_

#include "ir/graph/module.h"

namespace hlokit {

// Returns true if a value of the module has a dimension whose size only a run knows: f32[<=8].
inline bool HasDynamicShapes(const Module& module) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (i.shape().has_dynamic_dims()) return true;
    }
  }
  return false;
}

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_DYNAMIC_SHAPES_H_
