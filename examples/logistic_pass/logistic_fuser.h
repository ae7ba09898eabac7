// SPDX-License-Identifier: Apache-2.0
// The pass of docs/tutorials/write-a-pass.md.
#ifndef EXAMPLES_LOGISTIC_PASS_LOGISTIC_FUSER_H_
#define EXAMPLES_LOGISTIC_PASS_LOGISTIC_FUSER_H_

#include "passes/core/registry.h"

void RegisterLogisticFuser(hlokit::PassRegistry* registry);

#endif  // EXAMPLES_LOGISTIC_PASS_LOGISTIC_FUSER_H_
