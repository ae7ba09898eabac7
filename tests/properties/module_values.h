// SPDX-License-Identifier: Apache-2.0
// Results of two modules on the same synthetic arguments, for modules of which the second was made from the first.
#ifndef HLOKIT_TESTS_PROPERTIES_MODULE_VALUES_H_
#define HLOKIT_TESTS_PROPERTIES_MODULE_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "ir/types/literal.h"
#include "passes/core/pass.h"

namespace hlokit::properties {

struct ValueComparison {
  enum class Outcome : uint8_t { kEqual, kDifferent, kNotRun };
  Outcome outcome = Outcome::kNotRun;
  std::string what;          // the difference, or why it did not run
  bool by_reference = true;  // the reference evaluated it, else the exact engine
};

// Runs a module on one device of the reference. Returns nullopt and the error if that fails.
std::optional<std::vector<Literal>> RunReference(const Module& module, const std::vector<Literal>& arguments,
                                                 std::string* error);

// Runs both modules and compares the results as hlo-opt --run-before-after does: within the tolerance of the pass, but
// for results that depend on opcodes that it redefines; if there are any, the outcome is at best kNotRun. The reference
// runs both; modules that would take it long run on the exact engine, and larger ones not at all. A module with
// collectives runs on as many devices as its groups name, each with arguments of its own. What runs depends on the
// module alone, not on the clock.
ValueComparison CompareValuesOf(const Module& before, const Module& after, const PassInfo& pass);

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_MODULE_VALUES_H_
