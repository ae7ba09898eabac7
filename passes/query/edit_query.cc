// SPDX-License-Identifier: Apache-2.0
#include "passes/query/edit_query.h"

#include <string>
#include <utility>

#include "ir/core/source_buffer.h"

namespace hlokit::query {

absl::StatusOr<EditQuery> EditQuery::Of(const PassOptions& options, const PassContext& context) {
  return Parse(std::string(options.String("match")), std::string(options.String("where")), context.compile_regex);
}

absl::StatusOr<EditQuery> EditQuery::Parse(const std::string& match, const std::string& where,
                                           const RegexCompiler& regex) {
  DiagnosticSink sink;
  std::optional<Pattern> pattern = Pattern::Parse(match, &sink);
  if (!pattern) return sink.ToStatus(SourceBuffer("match", match));
  EditQuery query{*std::move(pattern), std::nullopt};
  if (where.empty()) return query;
  query.where = Condition::Parse(where, query.pattern, regex, &sink);
  if (!query.where) return sink.ToStatus(SourceBuffer("where", where));
  return query;
}

std::vector<Match> EditQuery::Find(const Module& module) const {
  std::vector<Match> matches = FindMatches(module, pattern);
  if (!where) return matches;
  FieldContext context(module);
  std::erase_if(matches, [&](const Match& match) { return !where->Holds(match, &context); });
  return matches;
}

}  // namespace hlokit::query
