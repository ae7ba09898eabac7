// SPDX-License-Identifier: Apache-2.0
// Custom calls that annotate a value without changing it.
#ifndef HLOKIT_PASSES_ANALYSIS_ANNOTATION_CUSTOM_CALLS_H_
#define HLOKIT_PASSES_ANALYSIS_ANNOTATION_CUSTOM_CALLS_H_

#include "ir/graph/module_fwd.h"

namespace hlokit {

// Returns true if the result is the operand: shardings and layouts that a partitioner or layout assignment reads and
// removes, and what a TPU compiler states of the indices of gathers and scatters.
bool IsAnnotationCustomCall(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_ANNOTATION_CUSTOM_CALLS_H_
