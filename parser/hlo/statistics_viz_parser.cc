// SPDX-License-Identifier: Apache-2.0
#include "parser/hlo/statistics_viz_parser.h"

#include <string_view>

#include "ir/core/str_cat.h"
#include "ir/text/statistics_viz.h"

namespace hlokit {

bool ParseStatistics(TextCursor& in, Context* context, ListId* id) {
  if (!in.Expect('{', "before statistics")) return false;
  if (in.TryConsume('}')) {
    *id = context->lists.Intern({});
    return true;
  }
  StatisticsViz statistics;
  if (!in.TryConsumeWord("visualizing_index")) {
    return in.ErrorHere(DiagnosticKind::kBadAttribute,
                        StrCat("expected visualizing_index= before statistics, found ", in.DescribeNext()));
  }
  if (!in.Expect('=', "after visualizing_index") || !in.Int(&statistics.visualizing_index)) return false;
  while (in.TryConsume(',')) {
    std::string_view name;
    double value;
    if (!in.ExpectName(&name, "the name of a statistic") || !in.Expect('=', "after the name of a statistic") ||
        !in.Double(&value)) {
      return false;
    }
    statistics.values.emplace_back(context->strings.Intern(name), value);
  }
  *id = EncodeStatisticsViz(context, statistics);
  return in.Expect('}', "after statistics");
}

}  // namespace hlokit
