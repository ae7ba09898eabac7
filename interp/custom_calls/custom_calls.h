// SPDX-License-Identifier: Apache-2.0
// Implementations of custom calls.
//
// Built in: TopK, decompositions of matrices (matrix_calls.h), and markers that return their operand unchanged
// (Sharding, SPMDFullToShardShape, SPMDShardToFullShape, MoveToHost, MoveToDevice, annotate_device_placement,
// xla.sdy.*, ...).
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALLS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/types/shape.h"

namespace hlokit::interp {

// Elements as in a Literal: row-major, each in BytesOf(type) bytes.
struct CustomCallOperand {
  Shape shape;
  const std::byte* data;
};
struct CustomCallResult {
  Shape shape;
  std::byte* data;
};

// Operands and results are array leaves, tuples flattened. An error ends the run and is reported at the instruction.
using CustomCallFunction =
    std::function<absl::Status(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                               std::string_view backend_config)>;

class CustomCallRegistry {
 public:
  // Registers a function. Replaces earlier and built-in functions of that target.
  void Register(std::string target, CustomCallFunction function) {
    functions_[std::move(target)] = std::move(function);
  }
  // Returns the function of a target, or null. The pointer remains valid.
  const CustomCallFunction* Find(std::string_view target) const {
    const auto it = functions_.find(target);
    return it == functions_.end() ? nullptr : &it->second;
  }
  std::vector<std::string> Targets() const {
    std::vector<std::string> targets;
    for (const auto& [target, function] : functions_) targets.push_back(target);
    return targets;
  }

 private:
  std::map<std::string, CustomCallFunction, std::less<>> functions_;
};

// Returns true for built-in calls that return their operand.
bool IsMarkerTarget(std::string_view target);
// Returns true for built-in calls that do nothing: they stand for communication that control-flow-flattening removed.
bool IsNopTarget(std::string_view target);

// Returns the error of a call without a function, which lists the known targets. `registry` may be null.
std::string UnknownTargetMessage(std::string_view target, const CustomCallRegistry* registry);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALLS_H_
