// SPDX-License-Identifier: Apache-2.0
// Writes the values of selected instructions during a run.
//
//   add.3 = f32[2] {1, 2}
//   add.3#2 = f32[2] {2, 4}                     the second time it ran
//   dot.7 = f32[512,512] min -3.5 max 4.25 mean 0.01, 2 NaN of 262144
//   tuple.9.1 = s32[] 5                         leaf 1 of a tuple
#ifndef HLOKIT_INTERP_OBSERVERS_VALUE_TRACE_H_
#define HLOKIT_INTERP_OBSERVERS_VALUE_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "interp/interface/execution_observer.h"
#include "ir/core/text_writer.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

struct ValueTraceOptions {
  std::string prefix;         // of each line
  int64_t max_elements = 16;  // larger arrays are summarized
  int64_t max_values = 1000;  // then one line reports that the rest is omitted
};

class ValueTrace : public ExecutionObserver {
 public:
  // `instructions`: by id, the instructions whose values are written. All arguments are borrowed.
  ValueTrace(const Module& module, const std::vector<bool>& instructions, const ValueTraceOptions& options,
             TextWriter* out)
      : module_(module), instructions_(instructions), options_(options), out_(*out), runs_(instructions.size(), 0) {}

  absl::Status OnValue(InstructionId instruction, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override;

 private:
  const Module& module_;
  const std::vector<bool>& instructions_;
  const ValueTraceOptions options_;
  TextWriter& out_;
  std::vector<int64_t> runs_;  // of each instruction
  int64_t shown_ = 0;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_OBSERVERS_VALUE_TRACE_H_
