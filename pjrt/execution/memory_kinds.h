// SPDX-License-Identifier: Apache-2.0
// The kinds of memory that a program's parameters are in and its results go to: attributes mhlo.memory_kind of the
// arguments and results of main, or memory space 5, the host's, in layouts of HLO.
#ifndef HLOKIT_PJRT_EXECUTION_MEMORY_KINDS_H_
#define HLOKIT_PJRT_EXECUTION_MEMORY_KINDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "pjrt/execution/program.h"

namespace hlokit::pjrt {

// The memory space of the host in layouts of HLO.
inline constexpr int64_t kHostMemorySpace = 5;

// Writes what a program says into the header, where passes and serialization keep it. Returns an error for an unknown
// kind.
absl::Status MarkMemoryKinds(Module* module);
// Sets the kinds of the leaves of the entry's parameters and result.
void ReadMemoryKinds(const Module& module, absl::Span<ProgramValue> parameters, absl::Span<ProgramValue> results);

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_MEMORY_KINDS_H_
