// SPDX-License-Identifier: Apache-2.0
// What must hold of a module on which a pass counted a rewrite: lines of the pass's golden test, and for rewrites that
// several passes count, rules of algsimp above all, rewrite_checks.tsv.
//
// In a golden test a line has the pass, the rewrite as in its statistics, the properties, and an exception if there is
// one:
//
//   // REWRITE: logistic-expander | logistic functions expanded | removed logistic
#ifndef HLOKIT_TESTS_PROPERTIES_REWRITE_TABLE_H_
#define HLOKIT_TESTS_PROPERTIES_REWRITE_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/properties/module_measure.h"

namespace hlokit::properties {

// A relation between a measure before and after the pass, and the counter of the pass.
enum class Relation : uint8_t {
  kGone,     // after = 0
  kFewer,    // after < before
  kMore,     // after > before
  kNoMore,   // after <= before
  kSame,     // after = before
  kRemoved,  // before - after = counter
  kAdded,    // after - before = counter
  kWas,      // before = counter
  kIs,       // after = counter
};

struct Property {
  Relation relation;
  Measure measure;

  bool Holds(int64_t before, int64_t after, int64_t counter) const;
  // Returns true if the property may be asked of a module with this measure. A pass may make by one rewrite what it
  // removes by another, and then there is none of it before or after: such a module shows nothing about kFewer.
  bool Applies(int64_t before, int64_t after) const;
  std::string Text() const;
};

struct RewriteRow {
  std::string pass;  // "*": every pass that counts it
  std::string rewrite;
  std::vector<Property> properties;
  // What the golden modules cannot show, with the reason; empty: nothing.
  std::string no_values;
  std::string not_shown;
  std::string place;  // in messages
};

// Parses the table. Errors have the line.
absl::StatusOr<std::vector<RewriteRow>> ParseRewriteTable(std::string_view text);
// Adds those of a golden test. Errors have its name and the line.
absl::Status AddRewritesOfGolden(std::string_view file, std::string_view text, std::vector<RewriteRow>* rows);

// Returns the row of a rewrite of a pass: that of the pass, or else that of every pass; null if there is none.
const RewriteRow* FindRow(const std::vector<RewriteRow>& rows, std::string_view pass, std::string_view rewrite);

// Returns the names of rewrites that the sources below `directory` count, sorted, without duplicates.
std::vector<std::string> CountedRewrites(const std::string& directory);

}  // namespace hlokit::properties

#endif  // HLOKIT_TESTS_PROPERTIES_REWRITE_TABLE_H_
