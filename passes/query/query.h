// SPDX-License-Identifier: Apache-2.0
// A pattern with a condition: what commands search for, and what passes edit (their options `match` and `where`).
#ifndef HLOKIT_PASSES_QUERY_QUERY_H_
#define HLOKIT_PASSES_QUERY_QUERY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "passes/core/pass.h"
#include "passes/query/condition.h"
#include "passes/query/pattern.h"

namespace hlokit::query {

// Returns the errors of a query as a status: with the line, a caret and the hint, as RenderText. `name`: of the option
// that has the text.
absl::Status QueryError(const DiagnosticSink& sink, std::string name, std::string text);

// Thread-safe.
struct Query {
  Pattern pattern;
  std::optional<Condition> where;

  static constexpr std::string_view kMatch = "match", kWhere = "where";

  // Parses a pattern and a condition, "" for none. Returns nullopt after errors, which are in the sink; `*wrong` is
  // then kMatch or kWhere, the text that they are in.
  static std::optional<Query> Parse(const std::string& match, const std::string& where, const RegexCompiler& regex,
                                    DiagnosticSink* sink, std::string_view* wrong);
  // The same with the errors as a status, QueryError, which begins with "match:1:5: error:" or "where:", the names of
  // the texts.
  static absl::StatusOr<Query> Parse(const std::string& match, const std::string& where, const RegexCompiler& regex,
                                     std::string_view match_name = kMatch, std::string_view where_name = kWhere);
  // Parses the options. Errors begin as above.
  static absl::StatusOr<Query> Of(const PassOptions& options, const PassContext& context);
  // Returns the matches by computation, in the order of the text.
  std::vector<Match> Find(const Module& module) const;
};

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_QUERY_H_
