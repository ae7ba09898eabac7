// SPDX-License-Identifier: Apache-2.0
// Which operands an instruction may overwrite with its result, as in XLA's HloDataflowAnalysis::
// CanShareOperandBufferWithUser: elementwise instructions, fusions that read the operand only elementwise, updates in
// place, sorts, all-reduces, loops (their state), and declared aliases. The caller checks that sizes match and that
// nothing reads the operand later.
#ifndef HLOKIT_SIMULATOR_MEMORY_BUFFER_SHARING_H_
#define HLOKIT_SIMULATOR_MEMORY_BUFFER_SHARING_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

// Leaf `leaf` of the result may overwrite leaf `operand_leaf` of an operand.
struct SharedLeaf {
  int64_t leaf = 0;
  int64_t operand = 0;
  int64_t operand_leaf = 0;
};

class BufferSharing {
 public:
  // Returns the pairs by leaf, then by operand. Valid until the next call.
  absl::Span<const SharedLeaf> Of(Instruction instruction);

 private:
  absl::flat_hash_map<uint32_t, std::vector<SharedLeaf>> found_;  // by InstructionId
};

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_MEMORY_BUFFER_SHARING_H_
