// SPDX-License-Identifier: Apache-2.0
// Programs with shardings that are partitioned before they run.
#ifndef HLOKIT_INTERP_PROGRAM_PARTITIONED_PROGRAM_H_
#define HLOKIT_INTERP_PROGRAM_PARTITIONED_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interp/interface/evaluator_options.h"
#include "interp/program/sharded_arrays.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// The program of one device, and how the arrays of the whole program are divided.
struct PartitionedProgram {
  std::unique_ptr<Module> module;
  ArrayDivision arrays;
};

// Propagates the shardings of `whole`, fills elided constants as the options say, and partitions it for
// options.num_partitions devices. `warnings`: gets those of the passes, if not null.
absl::StatusOr<PartitionedProgram> PartitionProgram(const Module& whole, const EvaluatorOptions& options,
                                                    DiagnosticSink* warnings = nullptr);

// The same in place, for `partitions` devices, with elided constants as they are. `arrays`: set to the division of the
// program's arrays; if it is null, they may be of shardings whose parts do not determine the whole.
absl::Status PartitionInPlace(int64_t partitions, DiagnosticSink* warnings, Module* module, ArrayDivision* arrays);

// Reports that a program cannot be partitioned, at the first instruction with a tiled sharding.
void ReportPartitionError(const Module& whole, const absl::Status& status, std::string hint, DiagnosticSink* sink);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_PARTITIONED_PROGRAM_H_
