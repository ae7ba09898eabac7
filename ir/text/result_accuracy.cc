// SPDX-License-Identifier: Apache-2.0
#include "ir/text/result_accuracy.h"

#include <bit>

#include "ir/text/statistics_viz.h"

namespace hlokit {

ListId EncodeResultAccuracy(Context* context, const ResultAccuracy& accuracy) {
  if (accuracy.mode == ResultAccuracyMode::kDefault) return context->lists.Intern({});
  return context->lists.Intern({static_cast<int64_t>(accuracy.mode), std::bit_cast<int64_t>(ShortDouble(accuracy.atol)),
                                std::bit_cast<int64_t>(ShortDouble(accuracy.rtol)), accuracy.ulps});
}

ResultAccuracy DecodeResultAccuracy(const Context& context, ListId id) {
  const absl::Span<const int64_t> list = context.list(id);
  if (list.size() != 4) return {};
  return {static_cast<ResultAccuracyMode>(list[0]), std::bit_cast<double>(list[1]), std::bit_cast<double>(list[2]),
          list[3]};
}

void PrintResultAccuracy(TextWriter& out, const Context& context, ListId id) {
  const ResultAccuracy accuracy = DecodeResultAccuracy(context, id);
  if (accuracy.mode != ResultAccuracyMode::kTolerance) {
    out << "{mode=" << EnumTexts(EnumType::kResultAccuracyMode)[static_cast<size_t>(accuracy.mode)] << '}';
    return;
  }
  out << "{tolerance={atol=";
  PrintShortDouble(out, accuracy.atol);
  out << ",rtol=";
  PrintShortDouble(out, accuracy.rtol);
  out << ",ulps=" << accuracy.ulps << "}}";
}

}  // namespace hlokit
