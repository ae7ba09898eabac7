// SPDX-License-Identifier: Apache-2.0
// Instructions whose values differ, as text and as JSON.
#ifndef HLOKIT_CHECK_ISOLATION_ISOLATION_REPORT_H_
#define HLOKIT_CHECK_ISOLATION_ISOLATION_REPORT_H_

#include "check/isolation/isolated_run.h"
#include "ir/core/source_buffer.h"
#include "ir/core/text_writer.h"

namespace hlokit::interp {

// Prints how much was compared and what was not, then the instructions that differ, the worst first and not all of very
// many, with their lines in `source`, the text of their module.
void PrintIsolation(const IsolatedRun& run, const SourceBuffer& source, TextWriter* out);

// Writes an object with all of them. `module`: theirs.
void WriteIsolationJson(const IsolatedRun& run, const Module& module, const SourceBuffer& source, TextWriter* out);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_ISOLATION_REPORT_H_
