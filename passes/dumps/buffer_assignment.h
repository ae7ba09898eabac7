// SPDX-License-Identifier: Apache-2.0
// The buffer assignment that a compiler dumps: blocks of memory, beside the estimate of MemoryAnalysis.
#ifndef HLOKIT_PASSES_DUMPS_BUFFER_ASSIGNMENT_H_
#define HLOKIT_PASSES_DUMPS_BUFFER_ASSIGNMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "passes/analysis/memory.h"

namespace xla {
class BufferAssignmentProto;
}

namespace hlokit::dump {

// A block of memory of an assignment.
struct AssignedBlock {
  int64_t index = 0;
  int64_t bytes = 0;
  int64_t color = 0;  // memory space
  std::string kind;   // "parameter 3", "constant", "result", "temporary", "thread-local"
  int64_t values = 0;
  int64_t value_bytes = 0;  // of all its values; more than `bytes` where they share memory
  int64_t peak_bytes = -1;  // alive at once, where the assignment tells
};

// An assignment in figures. All bytes are without thread-local blocks, which are on stacks.
struct AssignmentSummary {
  std::vector<AssignedBlock> blocks;  // largest first
  int64_t total_bytes = 0;
  int64_t parameter_bytes = 0;
  int64_t constant_bytes = 0;
  int64_t result_bytes = 0;  // that are not parameters
  int64_t temporary_bytes = 0;
  int64_t temporary_peak_bytes = 0;  // alive at once; -1: unknown
  // Values that only one of the two has, or with another size: name of the instruction with its index, bytes there and
  // here (-1: none). The largest difference first.
  struct Difference {
    std::string value;
    int64_t assigned_bytes = -1;
    int64_t estimated_bytes = -1;
  };
  std::vector<Difference> differences;
};

// Returns the figures of an assignment, without differences.
AssignmentSummary SummarizeAssignment(const xla::BufferAssignmentProto& proto);
// The same of the text that XLA dumps beside a module, `….-buffer-assignment.txt`, which does not tell what is alive at
// once. Lines in other forms are left out.
AssignmentSummary SummarizeAssignmentText(std::string_view text);

// Reads the buffer assignment of `text`, a part of `source` with `module`, and the differences from the estimate.
// Nullopt if it has none, or after errors, which are in the sink.
std::optional<AssignmentSummary> ReadAssignment(const SourceBuffer& source, std::string_view text, const Module& module,
                                                const MemoryAnalysis& memory, DiagnosticSink* sink);

}  // namespace hlokit::dump

#endif  // HLOKIT_PASSES_DUMPS_BUFFER_ASSIGNMENT_H_
