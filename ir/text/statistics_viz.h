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
  int64_t visualizing_index = 0;  // into `values`; as read
  std::vector<std::pair<StringId, double>> values;
};

ListId EncodeStatisticsViz(Context* context, const StatisticsViz& statistics);
StatisticsViz DecodeStatisticsViz(const Context& context, ListId id);

// Includes the braces.
void PrintStatisticsViz(TextWriter& out, const Context& context, ListId id);

// With six significant digits, as XLA prints numbers of this kind: "33", "0.5", "1e+06".
void PrintShortDouble(TextWriter& out, double value);
// The number that this text reads back as. Encoded lists hold such, so that text says all there is.
double ShortDouble(double value);

}  // namespace hlokit

#endif  // HLOKIT_IR_TEXT_STATISTICS_VIZ_H_
