// SPDX-License-Identifier: Apache-2.0
// What became of an operation that a kernel was to be prepared for.
#ifndef HLOKIT_INTERP_COMPILED_PROGRAMS_PREPARE_RESULT_H_
#define HLOKIT_INTERP_COMPILED_PROGRAMS_PREPARE_RESULT_H_

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace hlokit::interp::compiled {

class [[nodiscard]] PrepareResult {
 public:
  // The builder has the result of the operation.
  static PrepareResult Prepared() { return PrepareResult(Kind::kPrepared, ""); }
  // The builder has an error: the program cannot be prepared by any engine.
  static PrepareResult Failed() { return PrepareResult(Kind::kFailed, ""); }
  // This engine has no kernel for the operation and leaves it to the exact engine. Nothing that is read was emitted.
  // `reason`: for reports; empty: there never is a kernel.
  static PrepareResult Unsupported(std::string reason = "") {
    return PrepareResult(Kind::kUnsupported, std::move(reason));
  }
  static PrepareResult Unsupported(const absl::Status& status) { return Unsupported(std::string(status.message())); }

  bool unsupported() const { return kind_ == Kind::kUnsupported; }
  const std::string& reason() const { return reason_; }

 private:
  enum class Kind { kPrepared, kFailed, kUnsupported };
  PrepareResult(Kind kind, std::string reason) : kind_(kind), reason_(std::move(reason)) {}

  Kind kind_;
  std::string reason_;
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PROGRAMS_PREPARE_RESULT_H_
