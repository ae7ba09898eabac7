// SPDX-License-Identifier: Apache-2.0
// The flow of values through a module, across calls: from operands to users, from the arguments of a call to the
// parameters of the computation, and from its root to the call. Functions of elements, such as that of a reduce, are
// left but not entered. Calls of one computation are not told apart.
#ifndef HLOKIT_PASSES_QUERY_FLOW_H_
#define HLOKIT_PASSES_QUERY_FLOW_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit::query {

enum class FlowDirection : uint8_t { kUsers, kOperands };

struct FlowStep {
  Instruction instruction;
  int64_t distance = 0;  // from the start
};

// The instructions up to some distance before and after one, in the order in which their values flow.
struct Neighborhood {
  std::vector<Instruction> before, after;
};

// One of the arrays in a value (Leaves).
struct ValueLeaf {
  Instruction instruction;
  int64_t leaf = 0;
};

class ValueFlow {
 public:
  explicit ValueFlow(const Module& module);

  // Returns the distinct instructions that read the value of this one, or whose values it reads; `across_calls`: also
  // in the computations that it calls, or that call its own.
  std::vector<Instruction> Next(Instruction instruction, FlowDirection direction, bool across_calls) const;

  // Returns true for instructions whose result consists of leaves of other values, as they are: parameters, tuples and
  // their elements, copies, and calls, fusions, loops and conditionals.
  static bool ForwardsLeaves(Instruction instruction);
  // Returns the leaves next to this one that it is forwarded from or to: from operands, arguments and roots, to users,
  // parameters and calls. A leaf may be returned more than once.
  std::vector<ValueLeaf> Forwarded(ValueLeaf at) const;
  // Returns an instruction that applies the computation as a function, and does not forward leaves to its parameters
  // and from its root; invalid if there is none.
  Instruction FunctionCaller(Computation computation) const;

  // Returns the instructions at a distance of at most `depth` from the starts, these first, in the order of a
  // breadth-first search: the nearest first. `depth` below 0: all.
  std::vector<FlowStep> Reach(absl::Span<const Instruction> starts, FlowDirection direction, int64_t depth,
                              bool across_calls) const;

  // Returns the instructions of its computation up to this distance before and after the instruction.
  Neighborhood NeighborsOf(Instruction instruction, int64_t distance) const;

  // Returns a shortest path of values from one instruction to another, both included; empty if there is none.
  std::vector<Instruction> Path(Instruction from, Instruction to) const;
  // Returns all instructions on such paths, in the order of the text.
  std::vector<Instruction> AllOnPaths(Instruction from, Instruction to) const;

 private:
  const Module& module_;
  std::vector<std::vector<InstructionId>> callers_;  // by ComputationId
};

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_FLOW_H_
