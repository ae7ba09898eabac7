// SPDX-License-Identifier: Apache-2.0
// What kernels and arrays of a compiled module come from, for those whose names its author has never seen.
#ifndef HLOKIT_SIMULATOR_REPORT_ORIGIN_H_
#define HLOKIT_SIMULATOR_REPORT_ORIGIN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// Returns array `leaf` of a shape, in depth-first order; the shape itself if it has no such leaf.
Shape LeafShape(Shape shape, int64_t leaf);

class Origins {
 public:
  // `source`: the module before compilation; null: there was none.
  explicit Origins(const Module* source);

  // Returns the scope and the source line of what computes array `leaf` of the result of `i`. Without either, of a
  // fusion the opcode and name of an instruction in it: the product, or else the largest one, if possible one that the
  // source has; of others the opcode.
  std::string Of(Instruction i, int64_t leaf) const;

  // As above, without what the metadata says.
  std::string InstructionOf(Instruction i) const;

 private:
  absl::flat_hash_set<std::string_view> names_;  // of instructions of the source
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_ORIGIN_H_
