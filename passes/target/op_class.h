// SPDX-License-Identifier: Apache-2.0
// Classification of opcodes for the timing model. The rows are in opcode_work.def.
#ifndef HLOKIT_PASSES_TARGET_OP_CLASS_H_
#define HLOKIT_PASSES_TARGET_OP_CLASS_H_

#include <cstdint>

#include "ir/ops/opcode.h"

namespace hlokit::tpu {

enum class OpClass : uint8_t {
  kNoWork,           // parameter, constant: takes no time
  kAlias,            // the bytes of the operand under another name
  kTuple,            // tables of pointers
  kGetTupleElement,  // one element of the tuple operand
  kElementwise,      // on whole registers, fuses
  kMovement,         // rearranges elements, fuses into its consumers
  kUpdate,           // writes into its operand in place, last in a kernel
  kReduce,           // fuses with its producers and its epilogue
  kProduct,          // matrix unit
  kStandalone,       // a kernel of its own
  kScalar,           // on the scalar unit
  kCollective,
  kAsyncCopy,
  kHost,
  kDone,
  kCall,
  kLoop,
};

// Vector and transcendental operations per element.
struct OpWork {
  OpClass op_class;
  float vector;
  float transcendental;
};

OpWork OpWorkOf(Opcode opcode);
inline OpClass ClassOf(Opcode opcode) { return OpWorkOf(opcode).op_class; }

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_OP_CLASS_H_
