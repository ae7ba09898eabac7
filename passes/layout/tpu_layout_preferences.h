// SPDX-License-Identifier: Apache-2.0
// Dimension orders of all arrays in a TPU's memory.
//
// The two minor dimensions of an array are padded to tiles, so the order affects its size. Arrays with equal orders
// (through elementwise operations, slices, loops and calls, and through transposes with renamed dimensions) form a
// class. Each class gets the candidate order with the lowest cost: bytes moved including padding, copies at the entry's
// boundary, reshapes that would move elements, and the preferences of its users:
//   - convolutions prefer batch and features minor, as the matrix unit takes them;
//   - dots prefer batch dimensions not minor.
// Larger classes choose first, so that their reshapes can follow.
#ifndef HLOKIT_PASSES_LAYOUT_TPU_LAYOUT_PREFERENCES_H_
#define HLOKIT_PASSES_LAYOUT_TPU_LAYOUT_PREFERENCES_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/target/minor_to_major.h"

namespace hlokit {

// Returns the leaves of a shape in the numbering of leaf_count(): depth first, with nested empty tuples.
std::vector<Shape> LeavesInOrder(Shape shape);

class TpuLayoutPreferences {
 public:
  // Chooses orders for all arrays of the module; linear in its leaves.
  TpuLayoutPreferences(const Module& module, const tpu::VectorTile& tile);

  // Returns false if the module has too many arrays in tuples; then no orders were chosen.
  bool ok() const { return ok_; }
  // Returns the order of leaf `leaf` (LeavesInOrder) of the instruction's shape, an array.
  MinorToMajor MinorToMajorOf(Instruction instruction, int64_t leaf) const;
  // Returns true if the caller's order of a parameter or result of the entry is fixed: it is not the default, or
  // another one would not take a fifth less with padding. Callers lay out other arrays as the program prefers.
  static bool HasFixedLayout(const tpu::VectorTile& tile, Shape array);

 private:
  friend class LayoutSolver;
  bool ok_ = false;
  std::vector<uint32_t> first_;         // by InstructionId: first of its leaves in the next two
  std::vector<uint32_t> class_;         // by leaf
  std::vector<MinorToMajor> to_class_;  // by leaf: the class dimension of each own dimension; empty: the identity
  std::vector<MinorToMajor> order_;     // by class, in its dimensions
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_LAYOUT_TPU_LAYOUT_PREFERENCES_H_
