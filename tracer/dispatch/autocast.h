// SPDX-License-Identifier: Apache-2.0
// Mixed precision like torch.autocast: within a guard, ops on this thread compute in a narrow type or in f32, by
// autocast_ops.def. Backward ops compute in the types of their forward ops, so backward belongs outside of the guard.
#ifndef HLOKIT_TRACER_DISPATCH_AUTOCAST_H_
#define HLOKIT_TRACER_DISPATCH_AUTOCAST_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/types/element_type.h"
#include "tracer/graph/op.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Leaves that require a gradient are converted once for each outermost guard.
class AutocastGuard {
 public:
  // `type`: bf16 or f16; nullopt turns autocast off.
  explicit AutocastGuard(std::optional<ElementType> type);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  std::optional<ElementType> previous_;
};

// Returns true if ops on this thread are cast.
bool AutocastEnabled();
// Converts the arguments of an op by its policy. Returns false if it has none.
bool CastArguments(Op op, Args* args);
// Returns the names in the table of policies that are no op.
std::vector<std::string_view> UnknownAutocastNames();

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_DISPATCH_AUTOCAST_H_
