// SPDX-License-Identifier: Apache-2.0
// In which order the dimensions of each array lie in a TPU's memory.
//
// The two minor dimensions of an array are padded to tiles, so it matters which these are. Arrays that must
// lie alike (what elementwise operations, slices, loops and calls pass on, through transposes with the dimensions
// renamed) form a class. Every class gets one order: of the orders that its members ask for, the one that moves least
// bytes, with the padding, copies at the border of the program, reshapes that would move elements, and what reads it:
//   - convolutions want batch and features minor, as the matrix unit takes them;
//   - dots do not want a batch dimension minor.
// Larger classes choose first, so that reshapes of theirs can follow.
#ifndef HLOKIT_PASSES_LAYOUT_TPU_LAYOUT_PREFERENCES_H_
#define HLOKIT_PASSES_LAYOUT_TPU_LAYOUT_PREFERENCES_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/target/minor_to_major.h"

namespace hlokit {

// The leaves of a shape as leaf_count() numbers them: in a depth-first walk, an empty tuple within one as well.
std::vector<Shape> LeavesInOrder(Shape shape);

class TpuLayoutPreferences {
 public:
  // Chooses orders for all arrays of the module; linear in its leaves.
  TpuLayoutPreferences(const Module& module, const tpu::VectorTile& tile);

  // False if the module holds too many arrays in tuples: then nothing was chosen.
  bool ok() const { return ok_; }
  // Of leaf `leaf` of the instruction's shape (LeavesInOrder), an array.
  MinorToMajor MinorToMajorOf(Instruction instruction, int64_t leaf) const;
  // The caller's order of a parameter or result of the entry stands: it is not the default one, or with another its
  // tiles would not take a fifth less. The runtimes that call the compiler lay others out anew; here, as the program
  // likes.
  static bool HasFixedLayout(const tpu::VectorTile& tile, Shape array);

 private:
  friend class LayoutSolver;
  bool ok_ = false;
  std::vector<uint32_t> first_;         // by InstructionId: of its leaves in the next two
  std::vector<uint32_t> class_;         // by leaf
  std::vector<MinorToMajor> to_class_;  // by leaf: the class's dimension for each of its own; empty: the same
  std::vector<MinorToMajor> order_;     // by class, in its dimensions
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_LAYOUT_TPU_LAYOUT_PREFERENCES_H_
