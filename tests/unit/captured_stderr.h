// SPDX-License-Identifier: Apache-2.0
// Captures the messages of a tool.
#ifndef HLOKIT_TESTS_UNIT_CAPTURED_STDERR_H_
#define HLOKIT_TESTS_UNIT_CAPTURED_STDERR_H_

#include <gtest/gtest.h>

#include <string>

namespace hlokit {

// Calls `run` and returns what it writes to standard error.
template <typename Run>
std::string StderrOf(Run run) {
  testing::internal::CaptureStderr();
  run();
  return testing::internal::GetCapturedStderr();
}

}  // namespace hlokit

#endif  // HLOKIT_TESTS_UNIT_CAPTURED_STDERR_H_
