// SPDX-License-Identifier: Apache-2.0
// What would make a step faster, as text: the recommendations, sensitivities and other targets of the page.
#ifndef HLOKIT_INTERP_TPU_REPORT_ADVICE_TEXT_H_
#define HLOKIT_INTERP_TPU_REPORT_ADVICE_TEXT_H_

#include "interp/tpu/report/report.h"
#include "interp/tpu/timing/host.h"
#include "ir/core/text_writer.h"

namespace hlokit::tpu {

// Simulates each change and prints the step with it.
void PrintAdvice(const ReportInput& input, const HostModel& host, TextWriter* out);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_REPORT_ADVICE_TEXT_H_
