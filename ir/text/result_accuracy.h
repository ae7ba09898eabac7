// SPDX-License-Identifier: Apache-2.0
// Required accuracy of an elementwise function, `result_accuracy={mode=highest}` or
// `result_accuracy={tolerance={atol=0,rtol=0.5,ulps=2}}`. In the IR an interned list (attribute type kResultAccuracy),
// empty for the default mode, which is not printed.
#ifndef HLOKIT_IR_TEXT_RESULT_ACCURACY_H_
#define HLOKIT_IR_TEXT_RESULT_ACCURACY_H_

#include <cstdint>

#include "ir/core/ids.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"
#include "ir/ops/attribute.h"

namespace hlokit {

struct ResultAccuracy {
  ResultAccuracyMode mode = ResultAccuracyMode::kDefault;
  double atol = 0;  // of the mode kTolerance
  double rtol = 0;
  int64_t ulps = 0;
  friend bool operator==(const ResultAccuracy&, const ResultAccuracy&) = default;
};

ListId EncodeResultAccuracy(Context* context, const ResultAccuracy& accuracy);
ResultAccuracy DecodeResultAccuracy(const Context& context, ListId id);

// Prints the braces too.
void PrintResultAccuracy(TextWriter& out, const Context& context, ListId id);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_RESULT_ACCURACY_H_
