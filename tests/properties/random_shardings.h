// SPDX-License-Identifier: Apache-2.0
// Random shardings of the instructions of a module, for tests of propagation and partitioning.
#ifndef HLOKIT_TESTS_PROPERTIES_RANDOM_SHARDINGS_H_
#define HLOKIT_TESTS_PROPERTIES_RANDOM_SHARDINGS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"

namespace hlokit::properties {

// Which instructions get one.
enum class ShardedInstructions : uint8_t {
  kParameters,  // parameters, and sometimes the root
  kSome,        // also other instructions of the entry
  kAll,         // every array instruction of the entry: what is to be partitioned without propagation
};

// Draws shardings over a mesh of one to three axes, which most arrays of a module share: tiled by axes in any order, by
// several axes, partly replicated, replicated, on one device; with sizes that do not divide, and sometimes with more
// tiles than elements or listed devices.
class RandomShardings {
 public:
  RandomShardings(uint64_t seed, int64_t devices);

  // Adds shardings and sets num_partitions. Instructions that have a sharding keep it.
  void AddTo(ShardedInstructions which, Module* module);

 private:
  using Mesh = std::vector<int64_t>;  // sizes of the axes, major first

  Mesh RandomMesh();
  Tiling RandomTiling(absl::Span<const int64_t> sizes);
  void AddTo(Instruction instruction, Module* module);
  // Returns true with this probability.
  bool Chance(double probability) { return std::bernoulli_distribution(probability)(random_); }

  std::mt19937_64 random_;
  int64_t devices_;
  Mesh mesh_;
  std::vector<int64_t> order_;  // of the devices; empty: 0, 1, …
};

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_RANDOM_SHARDINGS_H_
