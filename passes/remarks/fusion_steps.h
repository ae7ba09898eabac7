// SPDX-License-Identifier: Apache-2.0
// The decisions of fusion one by one, in the order in which the planner took them: as text, as a graph in DOT for each
// step, or as a page without outside resources.
#ifndef HLOKIT_PASSES_REMARKS_FUSION_STEPS_H_
#define HLOKIT_PASSES_REMARKS_FUSION_STEPS_H_

#include "absl/types/span.h"
#include "ir/core/text_writer.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// Write those of the remarks that have graphs (RemarkCollector::set_wants_graphs).
void WriteFusionStepsText(absl::Span<const Remark> remarks, TextWriter* out);
void WriteFusionStepsDot(absl::Span<const Remark> remarks, TextWriter* out);
void WriteFusionStepsPage(absl::Span<const Remark> remarks, TextWriter* out);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REMARKS_FUSION_STEPS_H_
