// SPDX-License-Identifier: Apache-2.0
// A pattern with a condition: the options `match` and `where` of passes that edit what a query finds.
#ifndef HLOKIT_PASSES_QUERY_EDIT_QUERY_H_
#define HLOKIT_PASSES_QUERY_EDIT_QUERY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/core/pass.h"
#include "passes/query/condition.h"
#include "passes/query/pattern.h"

namespace hlokit::query {

struct EditQuery {
  Pattern pattern;
  std::optional<Condition> where;

  // Parses a pattern and a condition, "" for none. Errors begin with "match:1:5: error:" or "where:".
  static absl::StatusOr<EditQuery> Parse(const std::string& match, const std::string& where,
                                         const RegexCompiler& regex);
  // Parses the options. Errors begin as above.
  static absl::StatusOr<EditQuery> Of(const PassOptions& options, const PassContext& context);
  // Returns the matches before any edit.
  std::vector<Match> Find(const Module& module) const;
};

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_EDIT_QUERY_H_
