// SPDX-License-Identifier: Apache-2.0
// The layouts in which a program takes its parameters and gives its results: attributes mhlo.layout_mode of the
// arguments and results of main ("default", "auto" or a layout), or those of entry_computation_layout in HLO.
//
// Values in this process are row-major whatever their layout (buffer.h): only callers see it.
#ifndef HLOKIT_PJRT_EXECUTION_ENTRY_LAYOUTS_H_
#define HLOKIT_PJRT_EXECUTION_ENTRY_LAYOUTS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "parser/proto/xla.pb.h"
#include "pjrt/execution/program.h"

namespace hlokit::pjrt {

// Writes what a program says into the header, where passes and serialization keep it. A parameter of any layout
// ("auto") is row-major; such a result has the layout in which the program makes it from its parameters: that of the
// operand of an elementwise operation, with the dimensions of a transpose renamed. Returns an error for a layout with
// tiles, or of another rank.
absl::Status MarkLayouts(Module* module);
// Sets the layouts of the leaves of the entry's parameters and result.
void ReadLayouts(const Module& module, absl::Span<ProgramValue> parameters, absl::Span<ProgramValue> results);
// Writes layouts and memory spaces into the leaves of a signature that has none.
void WriteLayouts(const Program& program, xla::ProgramShapeProto* signature);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_ENTRY_LAYOUTS_H_
