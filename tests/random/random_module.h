// SPDX-License-Identifier: Apache-2.0
// Random valid modules: every row of the opcode table has a way of being made, so that what parses, verifies, prints
// and runs modules meets all of them in combinations that nobody wrote down.
#ifndef HLOKIT_TESTS_RANDOM_RANDOM_MODULE_H_
#define HLOKIT_TESTS_RANDOM_RANDOM_MODULE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ir/ops/opcode.h"

namespace hlokit::random_test {

struct RandomModuleOptions {
  uint64_t seed = 0;
  int instructions = 12;        // of the entry, about; what they need comes on top
  int max_nesting = 2;          // of loops, conditionals and calls
  std::optional<Opcode> first;  // an opcode that the module must hold
};

// HLO text. The same for the same options, on every machine.
std::string RandomModule(const RandomModuleOptions& options);

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_RANDOM_MODULE_H_
