// SPDX-License-Identifier: Apache-2.0
// Checks that a partitioned program computes what the whole program does: arguments are divided among simulated devices
// by the shardings of the parameters, the results are put together by that of the root.
#ifndef HLOKIT_CHECK_EQUIVALENCE_PARTITION_CHECK_H_
#define HLOKIT_CHECK_EQUIVALENCE_PARTITION_CHECK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/limits.h"
#include "interp/program/sharded_arrays.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

struct PartitionCheckOptions {
  uint64_t seed = 0;    // of the arguments (MakeFakeArguments)
  int num_threads = 1;  // 0: one per hardware thread
  Limits limits;        // of each run; of steps the partitioned program has more
};

// Returns why the results of a program are not determined by arguments and shardings: it draws random numbers, has
// collectives or custom calls, or takes data from the host. Returns "" if they are.
std::string WhyNotComparable(const Module& whole);

// Compares results of a partitioned program with those of the whole one. What elements only move to, and elementwise
// operations and integers, must be equal, except zeros of either sign. Results that depend on floating-point sums,
// which partitioning may cut into partial sums, may differ relative to the largest element of the array by 256 epsilons
// of the type (of types narrower than 32 bits 16, narrower than 16 bits 4): that of the array or of a sum in the
// program, whichever is coarser. Returns a description of the largest difference beyond that, or "".
std::string ComparePartitionedResults(const Module& whole, absl::Span<const Literal> expected,
                                      absl::Span<const Literal> found);

// A whole program with synthetic arguments and its results, with which partitioned programs are compared.
class PartitionCheck {
 public:
  // Evaluates the program on one device. Returns Unimplemented if programs cannot be compared (WhyNotComparable,
  // ShardedArrays), and FailedPrecondition if it does not run. The module must outlive the check unchanged.
  static absl::StatusOr<PartitionCheck> Prepare(const Module& whole, int64_t partitions,
                                                const PartitionCheckOptions& options);

  // Runs `partitioned`, which was made of the whole program, on as many devices as it has partitions. Returns
  // FailedPrecondition with the difference, or the reason why it does not run.
  absl::Status Compare(const Module& partitioned, PaddingFill fill) const;

  const ShardedArrays& parameters() const { return parameters_; }

 private:
  PartitionCheck() = default;

  const Module* whole_ = nullptr;
  PartitionCheckOptions options_;
  ShardedArrays parameters_, result_;
  std::vector<Literal> arguments_, expected_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_EQUIVALENCE_PARTITION_CHECK_H_
