// SPDX-License-Identifier: Apache-2.0
// What would make a step faster, as text: the recommendations, sensitivities and other targets of the page.
#ifndef HLOKIT_SIMULATOR_REPORT_ADVICE_TEXT_H_
#define HLOKIT_SIMULATOR_REPORT_ADVICE_TEXT_H_

#include "ir/core/text_writer.h"
#include "simulator/report/report.h"
#include "simulator/timing/host.h"

namespace hlokit::tpu {

// Simulates each change and prints the step with it.
void PrintAdvice(const ReportInput& input, const HostModel& host, TextWriter* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_SIMULATOR_REPORT_ADVICE_TEXT_H_
