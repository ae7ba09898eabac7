// SPDX-License-Identifier: Apache-2.0
// Values of instructions, recorded in a run.
#ifndef HLOKIT_CHECK_ISOLATION_RECORDED_VALUES_H_
#define HLOKIT_CHECK_ISOLATION_RECORDED_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/execution_observer.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Values by instruction of one module.
class RecordedValues {
 public:
  virtual ~RecordedValues() = default;
  // Returns how many executions of the instruction have values, the first ones. Of constants the first alone is
  // recorded.
  virtual int64_t Executions(InstructionId instruction) const = 0;
  // Returns the leaves of a value. Requires: 1 <= execution <= Executions(instruction).
  virtual absl::StatusOr<std::vector<Literal>> Value(InstructionId instruction, int64_t execution) const = 0;
};

// Records values in memory, as long as there is room for them.
class ValueRecorder : public ExecutionObserver, public RecordedValues {
 public:
  // Of the first `max_executions` executions of each instruction, and at most `max_bytes`.
  ValueRecorder(const Module& module, int64_t max_executions, int64_t max_bytes)
      : module_(module), max_executions_(max_executions), left_(max_bytes) {}

  absl::Status OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override;
  int64_t Executions(InstructionId instruction) const override;
  absl::StatusOr<std::vector<Literal>> Value(InstructionId instruction, int64_t execution) const override;
  // Returns how many instructions lack values for which there was no room.
  int64_t dropped() const { return static_cast<int64_t>(full_.size()); }

 private:
  const Module& module_;
  const int64_t max_executions_;
  int64_t left_;
  absl::flat_hash_map<uint32_t, std::vector<std::vector<Literal>>> values_;  // by instruction id, by execution
  absl::flat_hash_set<uint32_t> full_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_RECORDED_VALUES_H_
