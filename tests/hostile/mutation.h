// SPDX-License-Identifier: Apache-2.0
// Random changes of a text.
#ifndef HLOKIT_TESTS_HOSTILE_MUTATION_H_
#define HLOKIT_TESTS_HOSTILE_MUTATION_H_

#include <random>
#include <string>

namespace hlokit::hostile {

// Changes, inserts, erases and repeats bytes. The result seldom parses.
std::string MutateBytes(const std::string& text, std::mt19937_64& random);

// Replaces words by others of the text of their kind (numbers, names, opcodes, types), and numbers by extremes. The
// result often parses, and seldom verifies.
std::string MutateWords(const std::string& text, std::mt19937_64& random);

}  // namespace hlokit::hostile

#endif  // HLOKIT_TESTS_HOSTILE_MUTATION_H_
