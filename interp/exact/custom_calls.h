// SPDX-License-Identifier: Apache-2.0
// Functions that stand for custom calls.
//
// Known without registration: TopK, and the markers of dumps that give back their operand as it is (Sharding,
// SPMDFullToShardShape, SPMDShardToFullShape, MoveToHost, MoveToDevice, annotate_device_placement, xla.sdy.*, ...).
#ifndef HLOKIT_INTERP_EXACT_CUSTOM_CALLS_H_
#define HLOKIT_INTERP_EXACT_CUSTOM_CALLS_H_

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

// Operands and results are array leaves, tuples flattened. An error ends the run and is shown at the instruction.
using CustomCallFunction =
    std::function<absl::Status(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                               std::string_view backend_config)>;

class CustomCallRegistry {
 public:
  // Replaces an earlier function of that target, and built-in ones.
  void Register(std::string target, CustomCallFunction function) {
    functions_[std::move(target)] = std::move(function);
  }
  // Null if there is none. The pointer stays valid.
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

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_CUSTOM_CALLS_H_
