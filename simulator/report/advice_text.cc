// SPDX-License-Identifier: Apache-2.0
#include "simulator/report/advice_text.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/double_text.h"
#include "ir/core/str_cat.h"
#include "simulator/report/number_text.h"
#include "simulator/report/recommendation.h"

namespace hlokit::tpu {

namespace {

constexpr size_t kAdviceWidth = 10;

void PrintHeads(std::initializer_list<std::string_view> heads, std::string_view last, TextWriter* out) {
  for (std::string_view head : heads) PrintCell(head, kAdviceWidth, out);
  *out << last << "\n";
}

std::string Speedup(double before, double after) {
  return after > 0 ? StrCat(FormatFixed(before / after, 2), "x") : std::string("-");
}

}  // namespace

void PrintAdvice(const ReportInput& input, const HostModel& host, TextWriter* out) {
  const double step = SimulateHost(host, input.simulation.device_seconds).step_seconds;
  *out << "\nwhat would help, simulated\n";
  const std::vector<Recommendation> recommendations = Recommend(input, host);
  if (recommendations.empty()) *out << "  no change that was simulated gains 1 %\n";
  for (const Recommendation& advice : recommendations) {
    *out << "  " << advice.title << ": step " << FormatSeconds(advice.before) << " -> " << FormatSeconds(advice.after)
         << ", " << Speedup(advice.before, advice.after);
    if (advice.bytes_before > 0) {
      *out << ", peak " << FormatBytes(static_cast<double>(advice.bytes_before)) << " -> "
           << FormatBytes(static_cast<double>(advice.bytes_after)) << (advice.fits_after ? "" : ", does not fit");
    }
    *out << "\n    " << advice.evidence << " " << advice.action << " Simulated: " << advice.changed << ".\n";
  }
  *out << "\n";
  PrintHeads({"step", "speedup", "bound by"}, "with this resource twice as fast", out);
  for (const Sensitivity& change : SensitivityAnalysis(input, host)) {
    PrintCell(FormatSeconds(change.seconds), kAdviceWidth, out);
    PrintCell(Speedup(step, change.seconds), kAdviceWidth, out);
    PrintCell(ToString(change.bound), kAdviceWidth, out);
    *out << change.resource << "\n";
  }
  *out << "\n";
  PrintHeads({"step", "speedup", "bound by", "fits"}, "on this target, with as many devices", out);
  for (const TargetComparison& other : CompareTargets(input, host)) {
    PrintCell(FormatSeconds(other.seconds), kAdviceWidth, out);
    PrintCell(Speedup(step, other.seconds), kAdviceWidth, out);
    PrintCell(ToString(other.bound), kAdviceWidth, out);
    PrintCell(static_cast<double>(other.peak_bytes) <= other.limit_bytes ? "yes" : "no", kAdviceWidth, out);
    *out << other.machine << ":" << other.topology << "\n";
  }
}

}  // namespace hlokit::tpu
