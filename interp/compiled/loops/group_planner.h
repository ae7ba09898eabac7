// SPDX-License-Identifier: Apache-2.0
// Chooses which instructions of a computation become one loop.
//
// A group has elementwise instructions over arrays of the same elements in the same order: reshapes between them do not
// matter, and broadcasts, slices and transposes of values from outside are read in place. Values that others use too
// are stored as further results of the loop, so nothing is computed twice. Groups grow from operands to users, as long
// as no path leads from a group through other instructions back to it.
//
// Members that move elements (IsInplaceInput) take these from outside of the group.
//
// A group may also be a loop over rows: with reductions of the minor dimensions, elementwise instructions on their
// results, and broadcasts of these back to the rows, as in a softmax or a layer normalization. InstructionGroup::shape
// is then that of the rows and columns, and row_rank the number of dimensions that count rows; it is -1 otherwise.
//
// A group may also have reductions of any dimensions (InstructionGroup::reduced), the same for all, whose results leave
// the loop, and batch normalizations, whose operands come from outside and whose elements are computed in the loop.
#ifndef HLOKIT_INTERP_COMPILED_LOOPS_GROUP_PLANNER_H_
#define HLOKIT_INTERP_COMPILED_LOOPS_GROUP_PLANNER_H_

#include <functional>
#include <vector>

#include "interp/exact/builder/kernel_provider.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

struct GroupOptions {
  // Loops over fewer elements are not compiled: their code costs more than it saves.
  int64_t min_elements = 256;
  int64_t min_saved = 2048;        // elements that are not written and read again, or
  int64_t min_single = 64 * 1024;  // elements of the loop
  int max_members = 64;
  int max_arrays = 24;       // inputs and results
  int64_t min_columns = 16;  // of a loop over rows
  int64_t min_run = 16;      // neighbors that a loop reads of what it reads in place (IsInplaceInput)
  int64_t max_columns = 32 * 1024;
  int64_t min_window_elements = 1024;  // of the operand of a thunk of windows

  // Loops of up to `max_members` instructions are compiled, however small.
  static GroupOptions OfAnySize(int max_members) {
    GroupOptions options;
    options.min_elements = options.min_single = options.min_run = options.min_window_elements = 1;
    options.min_saved = 0;
    options.max_members = max_members;
    return options;
  }
};

// `may_join`: live, and not observed.
std::vector<InstructionGroup> PlanGroups(Computation computation, const GroupOptions& options,
                                         const std::function<bool(Instruction)>& may_join);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_LOOPS_GROUP_PLANNER_H_
