// SPDX-License-Identifier: Apache-2.0
#include "simulator/export/advice_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "ir/core/str_cat.h"
#include "simulator/report/ascii.h"
#include "simulator/report/number_text.h"
#include "simulator/report/recommendation.h"

namespace hlokit::tpu {

nlohmann::ordered_json AdviceJson(const ReportInput& input, const HostModel& host, std::string_view tool,
                                  const std::vector<std::string>& flags) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Recommendation& advice : Recommend(input, host)) {
    Json row = {{"title", advice.title},
                {"evidence", Ascii(advice.evidence)},
                {"action", advice.action},
                {"simulated", advice.changed},
                {"before_us", ToMicroseconds(advice.before)},
                {"after_us", ToMicroseconds(advice.after)}};
    if (std::find(flags.begin(), flags.end(), advice.flag) != flags.end()) {
      row["flag"] = StrCat(tool, " ", advice.flag);
    }
    if (advice.bytes_before > 0) {
      row["peak_bytes_before"] = advice.bytes_before;
      row["peak_bytes_after"] = advice.bytes_after;
      row["fits_after"] = advice.fits_after;
    }
    list.push_back(std::move(row));
  }
  Json faster = Json::array();
  for (const Sensitivity& change : SensitivityAnalysis(input, host)) {
    faster.push_back({{"resource", change.resource},
                      {"step_time_us", ToMicroseconds(change.seconds)},
                      {"bound_by", std::string(ToString(change.bound))}});
  }
  Json machines = Json::array();
  for (const TargetComparison& other : CompareTargets(input, host)) {
    machines.push_back({{"target", other.machine},
                        {"topology", other.topology},
                        {"step_time_us", ToMicroseconds(other.seconds)},
                        {"bound_by", std::string(ToString(other.bound))},
                        {"peak_bytes", other.peak_bytes},
                        {"limit_bytes", other.limit_bytes}});
  }
  return {
      {"recommendations", std::move(list)}, {"sensitivity", std::move(faster)}, {"other_targets", std::move(machines)}};
}

std::string ReportAndAdviceJson(const ReportInput& input, bool memory_details, const HostModel& host,
                                std::string_view tool, const std::vector<std::string>& flags) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(ReportJson(input, memory_details));
  json.update(AdviceJson(input, host, tool, flags));
  return json.dump(1) + "\n";
}

}  // namespace hlokit::tpu
