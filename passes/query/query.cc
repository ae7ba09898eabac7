// SPDX-License-Identifier: Apache-2.0
#include "passes/query/query.h"

#include <string>
#include <utility>

#include "ir/core/source_buffer.h"

namespace hlokit::query {

absl::Status QueryError(const DiagnosticSink& sink, std::string name, std::string text) {
  std::string message = RenderText(sink, SourceBuffer(std::move(name), std::move(text)));
  while (message.ends_with('\n')) message.pop_back();
  return absl::InvalidArgumentError(message);
}

absl::StatusOr<Query> Query::Of(const PassOptions& options, const PassContext& context) {
  return Parse(std::string(options.String("match")), std::string(options.String("where")), context.compile_regex);
}

std::optional<Query> Query::Parse(const std::string& match, const std::string& where, const RegexCompiler& regex,
                                  DiagnosticSink* sink, std::string_view* wrong) {
  *wrong = kMatch;
  std::optional<Pattern> pattern = Pattern::Parse(match, sink);
  if (!pattern) return std::nullopt;
  Query query{*std::move(pattern), std::nullopt};
  if (where.empty()) return query;
  *wrong = kWhere;
  query.where = Condition::Parse(where, query.pattern, regex, sink);
  if (!query.where) return std::nullopt;
  return query;
}

absl::StatusOr<Query> Query::Parse(const std::string& match, const std::string& where, const RegexCompiler& regex,
                                   std::string_view match_name, std::string_view where_name) {
  DiagnosticSink sink;
  std::string_view wrong;
  std::optional<Query> query = Parse(match, where, regex, &sink, &wrong);
  if (query) return *std::move(query);
  return wrong == kMatch ? QueryError(sink, std::string(match_name), match)
                         : QueryError(sink, std::string(where_name), where);
}

std::vector<Match> Query::Find(const Module& module) const {
  std::vector<Match> matches = FindMatches(module, pattern);
  if (!where) return matches;
  FieldContext context(module);
  std::erase_if(matches, [&](const Match& match) { return !where->Holds(match, &context); });
  return matches;
}

}  // namespace hlokit::query
