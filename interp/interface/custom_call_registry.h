// SPDX-License-Identifier: Apache-2.0
// Functions that custom calls run, by target.
//
//   registry.Register("add_one", function);
//   options.custom_calls = &registry;
#ifndef HLOKIT_INTERP_INTERFACE_CUSTOM_CALL_REGISTRY_H_
#define HLOKIT_INTERP_INTERFACE_CUSTOM_CALL_REGISTRY_H_

#include <cstddef>
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

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_INTERFACE_CUSTOM_CALL_REGISTRY_H_
