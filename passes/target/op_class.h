// SPDX-License-Identifier: Apache-2.0
// What the timing model makes of each opcode. The rows are in opcode_work.def.
#ifndef HLOKIT_PASSES_TARGET_OP_CLASS_H_
#define HLOKIT_PASSES_TARGET_OP_CLASS_H_

#include <cstdint>

#include "ir/ops/opcode.h"

namespace hlokit::tpu {

enum class OpClass : uint8_t {
  kNoWork,           // parameter, constant: nothing is done
  kAlias,            // the operand's bytes under another name
  kTuple,            // tables of names
  kGetTupleElement,  // one element of the tuple operand
  kElementwise,      // on whole registers, fuses
  kMovement,         // rearranges elements, fuses into its consumers
  kUpdate,           // writes into its operand in place, ends a kernel
  kReduce,           // takes fused producers, its epilogue fuses
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

// Vector and transcendental operations of an element.
struct OpWork {
  OpClass op_class;
  float vector;
  float transcendental;
};

OpWork OpWorkOf(Opcode opcode);
inline OpClass ClassOf(Opcode opcode) { return OpWorkOf(opcode).op_class; }

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_OP_CLASS_H_
