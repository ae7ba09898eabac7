// SPDX-License-Identifier: Apache-2.0
// Random valid modules: every row of the opcode table can be generated, so that parsers, the verifier, printers and
// evaluators meet all opcodes in unforeseen combinations.
#ifndef HLOKIT_TESTS_RANDOM_RANDOM_MODULE_H_
#define HLOKIT_TESTS_RANDOM_RANDOM_MODULE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ir/ops/opcode.h"

namespace hlokit::random_test {

struct RandomModuleOptions {
  uint64_t seed = 0;
  int instructions = 12;        // of the entry, approximately; their operands are extra
  int max_nesting = 2;          // of loops, conditionals and calls
  std::optional<Opcode> first;  // an opcode that the module must contain
};

// Returns HLO text that depends only on the options.
std::string RandomModule(const RandomModuleOptions& options);

}  // namespace hlokit::random_test

#endif  // HLOKIT_TESTS_RANDOM_RANDOM_MODULE_H_
