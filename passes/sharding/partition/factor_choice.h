// SPDX-License-Identifier: Apache-2.0
// Chooses the device axes along which an operation is divided: axes for each factor of its sharding rule. Candidates
// are what its operands and its result have, merged in every order; the cheapest is taken, by the bytes of the reshards
// and combinations that it needs, and a little for the work that each device is left with.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_FACTOR_CHOICE_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_FACTOR_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/sharding/partition/emitter.h"
#include "passes/sharding/partition/halo.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::spmd {

struct FactorChoice {
  Tiling frame;                // tiled: devices, their order and subgroups; dimensions do not count
  std::vector<AxisList> axes;  // by factor
  AxisList partial;            // those along which results must be combined
  double cost = 0;             // bytes, for comparison
};

// An operation whose factors are to be divided.
struct DividedOp {
  ShardingRule* rule;
  std::vector<Shape> operand_shapes, result_shapes;  // of leaves
  std::vector<TilingRef> operands, results;          // what they have, what they must have
  std::vector<bool> free_operands;                   // that any device can make: constants, iotas
  std::vector<bool> divisible;                       // by factor: may be divided
  std::vector<bool> exact;                           // by factor: only into equal parts
  std::vector<bool> combined;                        // by factor: results of its parts are partial
  std::vector<bool> gathered;                        // by factor: results of its parts are gathered on all devices
  // Operands of which neighbors need parts: the window along a dimension whose only factor is `factor`.
  struct Window {
    int64_t operand, dim;
    size_t factor;
    HaloWindow window;
  };
  std::vector<Window> windows;
  std::vector<Instruction> sources;     // the operands, or values that stand for them
  bool contraction = false;             // works as many times as the product of its factors
  std::optional<ReductionOp> combines;  // how partial results combine, if they may stay partial
};

// Returns the tiling that an array has under a choice.
Tiling TilingFor(const ShardingRule& rule, const FactorChoice& choice, const ArrayFactors& array);

// Returns the frame in which the parts along `axes` have changed places with the opposite ones: what a device has after
// it reversed its part.
Tiling WithReversedTiles(Tiling frame, const AxisList& axes);

FactorChoice ChooseFactorAxes(ModuleState* state, const DividedOp& op);

// How a partial result is combined on its way to a tiling: dimensions of `tiling` that get axes of `partial` by
// reduce-scatters, and what is left for an all-reduce.
struct Combination {
  struct Scatter {
    int64_t dim;
    AxisList axes;
  };
  std::vector<Scatter> scatters;
  std::vector<AxisList> dims;  // after them
  AxisList rest;               // for the all-reduce
  AxisList kept;               // that stay partial, as `to` wants
};
// `combines`: how partial results combine; those of another operation must not stay partial.
Combination PlanCombination(Shape whole, const Tiling& frame, std::vector<AxisList> dims, AxisList partial,
                            const Tiling& to, std::optional<ReductionOp> combines);

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_FACTOR_CHOICE_H_
