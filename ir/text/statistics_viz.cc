// SPDX-License-Identifier: Apache-2.0
#include "ir/text/statistics_viz.h"

#include <bit>
#include <charconv>
#include <string>

#include "ir/core/double_text.h"

namespace hlokit {
namespace {

std::string FormatShort(double value) { return FormatDouble(value, 6); }

}  // namespace

ListId EncodeStatisticsViz(Context* context, const StatisticsViz& statistics) {
  std::vector<int64_t> list = {statistics.visualizing_index};
  for (const auto& [name, value] : statistics.values) {
    list.insert(list.end(), {int64_t{name.value}, std::bit_cast<int64_t>(ShortDouble(value))});
  }
  return context->lists.Intern(list);
}

StatisticsViz DecodeStatisticsViz(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  StatisticsViz statistics;
  if (list.empty()) return statistics;
  statistics.visualizing_index = list[0];
  for (size_t i = 1; i + 1 < list.size(); i += 2) {
    statistics.values.emplace_back(StringId(static_cast<uint32_t>(list[i])), std::bit_cast<double>(list[i + 1]));
  }
  return statistics;
}

void PrintStatisticsViz(TextWriter& out, const Context& context, ListId id) {
  out << '{';
  if (!context.list(id).empty()) {
    const StatisticsViz statistics = DecodeStatisticsViz(context, id);
    out << "visualizing_index=" << statistics.visualizing_index;
    for (const auto& [name, value] : statistics.values) {
      out << ',' << context.str(name) << '=';
      PrintShortDouble(out, value);
    }
  }
  out << '}';
}

void PrintShortDouble(TextWriter& out, double value) { out << FormatShort(value); }

double ShortDouble(double value) {
  const std::string text = FormatShort(value);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace hlokit
