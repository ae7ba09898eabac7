// SPDX-License-Identifier: Apache-2.0
// What would make a step faster, as JSON: the recommendations, sensitivities and other targets of advice_text.h.
#ifndef HLOKIT_SIMULATOR_EXPORT_ADVICE_JSON_H_
#define HLOKIT_SIMULATOR_EXPORT_ADVICE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/report/report.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {

// Returns an object with the keys `recommendations`, `sensitivity` and `other_targets`. `flags`: of the tool; no others
// are named.
nlohmann::ordered_json AdviceJson(const ReportInput& input, const HostModel& host, std::string_view tool,
                                  const std::vector<std::string>& flags);

// Returns ReportJson with these keys.
std::string ReportAndAdviceJson(const ReportInput& input, bool memory_details, const HostModel& host,
                                std::string_view tool, const std::vector<std::string>& flags);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_EXPORT_ADVICE_JSON_H_
