// SPDX-License-Identifier: Apache-2.0
// Fusion class of each opcode. The rows are in fusion_classes.def.
#ifndef HLOKIT_PASSES_FUSION_FUSION_RULES_H_
#define HLOKIT_PASSES_FUSION_FUSION_RULES_H_

#include <cstdint>

#include "ir/ops/opcode.h"

namespace hlokit {

enum class FusionClass : uint8_t {
  kOpaque,       // not fusible
  kSource,       // without operands: iota, constant
  kCheap,        // elementwise, a few operations per element at most: may be duplicated rather than stored
  kExpensive,    // elementwise: never duplicated
  kReordering,   // permutes the elements of the operand: reshape, transpose, reverse
  kBroadcast,    // replicates the elements of the operand
  kSlicing,      // each result element is from one operand element, and not all of these need be read: slice, pad
  kGather,       // like kSlicing, with positions given by other operands: never duplicated
  kUpdate,       // in place: overwrites a part of its first operand
  kReduce,       // a hero: the loop nest of the fusion follows it
  kWindow,       // reduces overlapping windows: never duplicated
  kContraction,  // a hero: dot, convolution
};

FusionClass FusionClassOf(Opcode opcode);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_RULES_H_
