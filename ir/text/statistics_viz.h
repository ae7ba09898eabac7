// SPDX-License-Identifier: Apache-2.0
// Statistics that tools attach to instructions for display, `statistics={visualizing_index=1,stat-0=0.5,stat-1=33}`. In
// the IR an interned list (attribute type kStatistics), empty when there are none.
#ifndef HLOKIT_IR_TEXT_STATISTICS_VIZ_H_
#define HLOKIT_IR_TEXT_STATISTICS_VIZ_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/core/ids.h"
#include "ir/core/text_writer.h"
#include "ir/graph/context.h"

namespace hlokit {

struct StatisticsViz {
  int64_t visualizing_index = 0;  // index into `values`; as parsed
  std::vector<std::pair<StringId, double>> values;
};

ListId EncodeStatisticsViz(Context* context, const StatisticsViz& statistics);
StatisticsViz DecodeStatisticsViz(const Context& context, ListId id);

// Prints the braces too.
void PrintStatisticsViz(TextWriter& out, const Context& context, ListId id);

// Prints six significant digits, as XLA does for statistics: "33", "0.5", "1e+06".
void PrintShortDouble(TextWriter& out, double value);
// Returns the number that this text parses as. Encoded lists hold such numbers, so that the text is lossless.
double ShortDouble(double value);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_STATISTICS_VIZ_H_
