// SPDX-License-Identifier: Apache-2.0
// What a fusion may do with an opcode. The rows are in fusion_classes.def.
#ifndef HLOKIT_PASSES_FUSION_FUSION_RULES_H_
#define HLOKIT_PASSES_FUSION_FUSION_RULES_H_

#include <cstdint>

#include "ir/ops/opcode.h"

namespace hlokit {

enum class FusionClass : uint8_t {
  kOpaque,       // stays outside
  kSource,       // reads nothing: iota, constant
  kCheap,        // elementwise, a few operations at most: may be computed again rather than stored
  kExpensive,    // elementwise: each element is computed once
  kReordering,   // each element of the operand goes to one place: reshape, transpose, reverse
  kBroadcast,    // each element of the operand goes to several places
  kSlicing,      // each result element is from one place of an operand, not all of which need be read: slice, pad
  kGather,       // the same, from places that other values name
  kUpdate,       // in place: writes a part of its first operand
  kReduce,       // a hero: the loop nest of a fusion is built around it
  kWindow,       // reduces overlapping windows: each element is computed once
  kContraction,  // a hero: dot, convolution
};

FusionClass FusionClassOf(Opcode opcode);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_RULES_H_
