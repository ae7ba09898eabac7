// SPDX-License-Identifier: Apache-2.0
// Random changes of a text.
#ifndef HLOKIT_TESTS_HOSTILE_MUTATION_H_
#define HLOKIT_TESTS_HOSTILE_MUTATION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace hlokit::hostile {

struct MutationFlags {
  int64_t mutations = 1000;
  size_t every = 1;      // truncations
  double seconds = 1e9;  // limit on the time
  uint64_t seed = 1;
  std::vector<std::string> files;
};
// Parses --mutations=N, --every=N, --seconds=S, --seed=N and names of files. Returns nullopt after a usage error.
std::optional<MutationFlags> ParseMutationFlags(int argc, char** argv);

// Changes, inserts, erases and repeats bytes. The result seldom parses.
std::string MutateBytes(const std::string& text, std::mt19937_64& random);

// Replaces words by others of the text of their kind (numbers, names, opcodes, types), and numbers by extremes. The
// result often parses, and seldom verifies.
std::string MutateWords(const std::string& text, std::mt19937_64& random);

}  // namespace hlokit::hostile

#endif  // HLOKIT_TESTS_HOSTILE_MUTATION_H_
