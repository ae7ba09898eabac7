// SPDX-License-Identifier: Apache-2.0
// Custom calls that say something about a value and do nothing to it.
#ifndef HLOKIT_PASSES_ANALYSIS_ANNOTATION_CUSTOM_CALLS_H_
#define HLOKIT_PASSES_ANALYSIS_ANNOTATION_CUSTOM_CALLS_H_

#include "ir/graph/module.h"

namespace hlokit {

// The result is the operand: shardings and layouts that a partitioner or a layout assignment reads and takes away.
bool IsAnnotationCustomCall(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_ANNOTATION_CUSTOM_CALLS_H_
