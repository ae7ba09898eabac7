// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/utilization.h"

#include <algorithm>

#include "simulator/report/number_text.h"

namespace hlokit::tpu {

std::string_view ToString(UtilizationCounter counter) {
  switch (counter) {
    case UtilizationCounter::kMatrixUnit:
      return "matrix unit busy";
    case UtilizationCounter::kHbm:
      return "HBM bandwidth of peak";
    case UtilizationCounter::kLinks:
      return "links of nominal rate";
    case UtilizationCounter::kOccupancy:
      return "operations of peak";
  }
  return "";
}

void Utilization::Add(const TimelineEvent& e) {
  if (e.step == nullptr || !e.name.valid() || e.duration <= 0) return;
  const Opcode opcode = input_.module.instruction(e.name).opcode();
  if (CallsSequentialCode(opcode)) return;
  const auto add = [&](UtilizationCounter counter, double value) {
    if (value > 0) intervals_.push_back({e.start, e.start + e.duration, counter, std::min(value, 1.0)});
  };
  const DeviceDescription& machine = input_.options.machine;
  if (e.line == TimelineLine::kAsyncOps) {
    add(UtilizationCounter::kLinks, e.step->wire_bytes > 0 ? Share(e.step->ideal, e.duration) : 0);
    return;
  }
  if (e.line != TimelineLine::kOps) return;
  add(UtilizationCounter::kMatrixUnit, Share(e.step->times[static_cast<size_t>(Resource::kMxu)], e.duration));
  add(UtilizationCounter::kHbm, Share(e.step->hbm_bytes / machine.HbmRate(), e.duration));
  add(UtilizationCounter::kOccupancy, Share(e.step->flops / machine.PeakFlops(), e.duration));
}

std::vector<Utilization::Change> Utilization::Changes() const {
  std::vector<Change> deltas;
  for (const Interval& i : intervals_) {
    deltas.push_back({i.start, i.counter, i.value});
    deltas.push_back({i.end, i.counter, -i.value});
  }
  std::stable_sort(deltas.begin(), deltas.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
  std::vector<Change> changes;
  Values sums = {};
  Values shown = {};
  for (size_t k = 0; k < deltas.size();) {
    const double now = deltas[k].time;
    for (; k < deltas.size() && deltas[k].time <= now; ++k)
      sums[static_cast<size_t>(deltas[k].counter)] += deltas[k].value;
    for (size_t c = 0; c < kUtilizationCounters; ++c) {
      // A tenth of a percent is the resolution of the counters.
      const double value = std::clamp(static_cast<double>(static_cast<int64_t>(sums[c] * 1000 + 0.5)) / 1000, 0.0, 1.0);
      if (value == shown[c]) continue;
      shown[c] = value;
      changes.push_back({now, static_cast<UtilizationCounter>(c), value});
    }
  }
  return changes;
}

std::vector<Utilization::Values> Utilization::Means(double seconds, size_t count) const {
  std::vector<Values> means(count);
  if (seconds <= 0 || count == 0) return means;
  const double width = seconds / static_cast<double>(count);
  for (const Interval& i : intervals_) {
    const size_t c = static_cast<size_t>(i.counter);
    const size_t first = std::min(count - 1, static_cast<size_t>(std::max(i.start / width, 0.0)));
    for (size_t k = first; k < count && static_cast<double>(k) * width < i.end; ++k) {
      const double from = std::max(i.start, static_cast<double>(k) * width);
      const double to = std::min(i.end, static_cast<double>(k + 1) * width);
      if (to > from) means[k][c] = std::min(1.0, means[k][c] + i.value * (to - from) / width);
    }
  }
  return means;
}

}  // namespace hlokit::tpu
