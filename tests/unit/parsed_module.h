// SPDX-License-Identifier: Apache-2.0
// Parses the module of a test.
#ifndef HLOKIT_TESTS_UNIT_PARSED_MODULE_H_
#define HLOKIT_TESTS_UNIT_PARSED_MODULE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "ir/graph/module.h"
#include "parser/formats/parser.h"

namespace hlokit {

// Returns null, and fails the test, if the text does not parse.
inline std::unique_ptr<Module> Parse(std::string_view text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? *std::move(module) : nullptr;
}

}  // namespace hlokit

#endif  // HLOKIT_TESTS_UNIT_PARSED_MODULE_H_
