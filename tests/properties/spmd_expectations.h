// SPDX-License-Identifier: Apache-2.0
// What recorded tests expect of a partitioned program: collectives, their shapes and bytes, sizes of parts.
#ifndef HLOKIT_TESTS_PROPERTIES_SPMD_EXPECTATIONS_H_
#define HLOKIT_TESTS_PROPERTIES_SPMD_EXPECTATIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace hlokit::properties {

// A run of the partitioner and the lines about its result, as in NAME.facts of the suite, whose README has the format.
struct SpmdRun {
  std::string options;             // "propagate=true threshold_for_windowed_einsum_mib=0"
  std::vector<std::string> facts;  // "expect: all-gather 1 f32[8]"
  std::string error;               // part of the message of a run that must fail; empty: it must not
};

struct SpmdCase {
  std::string name;
  std::string text;  // the module
  int64_t partitions = 1;
  bool values = false;  // whether arguments determine the results
  int64_t flops = 0, bytes = 0;
  std::vector<SpmdRun> runs;
};

// Reads NAME.hlo and NAME.facts, given their path without the extension.
SpmdCase ReadSpmdCase(const std::string& base);

// A kind of collective in a program, or `while` and `conditional`.
struct CollectiveUse {
  int64_t count = 0;
  std::vector<std::string> shapes;  // of the results, without layouts
  int64_t bytes = 0;                // of the results of one device, those in loops times their iterations
  std::vector<std::string> groups;
};
using CollectiveUses = std::map<std::string, CollectiveUse>;

// Returns the collectives of the computations that the entry reaches; `entry_only`: of the entry. A reduce-scatter
// counts with the bytes of its operand.
CollectiveUses FindCollectives(const Module& module, bool entry_only);

struct SpmdOutcome {
  bool met = false;     // every fact holds
  bool beaten = false;  // not met, but the collectives have no more bytes than the expected ones
  int64_t bytes = 0, expected_bytes = 0;
  std::vector<std::string> missed;  // the facts that do not hold
};

// `whole`: the program before partitioning.
SpmdOutcome CheckFacts(const SpmdRun& run, const Module& whole, const Module& partitioned);

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_SPMD_EXPECTATIONS_H_
