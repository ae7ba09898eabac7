// SPDX-License-Identifier: Apache-2.0
// Follows a program through passes that may partition it, so that it can be run on the same arguments before and after.
#ifndef HLOKIT_CHECK_EQUIVALENCE_PARTITION_TRACKER_H_
#define HLOKIT_CHECK_EQUIVALENCE_PARTITION_TRACKER_H_

#include <cstdint>
#include <optional>

#include "interp/program/sharded_arrays.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

class PartitionTracker {
 public:
  // How the arrays of the whole program are divided among partitions.
  struct Division {
    ShardedArrays parameters, result;
  };

  // A program that is whole (FirstUnpartitioned) runs on one partition until a pass has partitioned it.
  explicit PartitionTracker(const Module& module);

  void RunBeforePass(const Module& module);
  void RunAfterPass(const Module& module);

  // Returns on how many partitions the module runs.
  int64_t PartitionsOf(const Module& module) const;
  // Null: arguments and results are those of the module.
  const Division* division() const { return division_ ? &*division_ : nullptr; }

 private:
  bool whole_ = false;
  std::optional<Division> before_, division_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_EQUIVALENCE_PARTITION_TRACKER_H_
