// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/rewrite_table.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include "io/files/read_file.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"

namespace hlokit::properties {
namespace {

constexpr std::pair<std::string_view, Relation> kRelations[] = {
    {"gone", Relation::kGone},      {"fewer", Relation::kFewer}, {"more", Relation::kMore},
    {"no-more", Relation::kNoMore}, {"same", Relation::kSame},   {"removed", Relation::kRemoved},
    {"added", Relation::kAdded},    {"was", Relation::kWas},     {"is", Relation::kIs},
};

std::vector<std::string_view> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at != std::string_view::npos;) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    at = end == std::string_view::npos ? end : end + separator.size();
  }
  return parts;
}

absl::StatusOr<Property> ParseProperty(std::string_view text) {
  const size_t blank = text.find(' ');
  const std::string_view name = text.substr(0, blank);
  const auto* relation =
      std::find_if(std::begin(kRelations), std::end(kRelations), [&](const auto& row) { return row.first == name; });
  if (relation == std::end(kRelations) || blank == std::string_view::npos) {
    return absl::InvalidArgumentError(StrCat("expected a relation and a measure, found `", text, "`"));
  }
  absl::StatusOr<Measure> measure = Measure::Parse(text.substr(blank + 1));
  if (!measure.ok()) return measure.status();
  return Property{relation->second, *std::move(measure)};
}

absl::Status ParseRow(const std::vector<std::string_view>& columns, RewriteRow* row) {
  if (columns.size() != 4) return absl::InvalidArgumentError(StrCat("expected 4 columns, found ", columns.size()));
  row->pass = columns[0];
  row->rewrite = columns[1];
  for (std::string_view text : Split(columns[2], "; ")) {
    absl::StatusOr<Property> property = ParseProperty(text);
    if (!property.ok()) return property.status();
    row->properties.push_back(*std::move(property));
  }
  constexpr std::string_view kNoValues = "no values: ", kNotShown = "not shown: ";
  if (columns[3].starts_with(kNoValues)) {
    row->no_values = columns[3].substr(kNoValues.size());
  } else if (columns[3].starts_with(kNotShown)) {
    row->not_shown = columns[3].substr(kNotShown.size());
  } else if (columns[3] != "-") {
    return absl::InvalidArgumentError(StrCat("expected `-` or an exception, found `", columns[3], "`"));
  }
  return absl::OkStatus();
}

// Calls `visit` with the first string literal of each statement that begins with a call of one of the functions that
// name rewrites.
template <typename Visit>
void ForEachCounter(std::string_view source, Visit visit) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::string_view function : {"Count(", "ules->Add(", "AddToElementwise("}) {
    for (size_t at = source.find(function); at != std::string_view::npos; at = source.find(function, at + 1)) {
      if (function[0] != 'u' && at > 0 && is_word(source[at - 1])) continue;
      const size_t quote = source.find_first_of("\";", at);
      if (quote == std::string_view::npos || source[quote] == ';') continue;
      const size_t end = source.find('"', quote + 1);
      if (end != std::string_view::npos) visit(source.substr(quote + 1, end - quote - 1));
    }
  }
}

}  // namespace

bool Property::Holds(int64_t before, int64_t after, int64_t counter) const {
  switch (relation) {
    case Relation::kGone:
      return after == 0;
    case Relation::kFewer:
      return after < before;
    case Relation::kMore:
      return after > before;
    case Relation::kNoMore:
      return after <= before;
    case Relation::kSame:
      return after == before;
    case Relation::kRemoved:
      return before - after == counter;
    case Relation::kAdded:
      return after - before == counter;
    case Relation::kWas:
      return before == counter;
    case Relation::kIs:
      return after == counter;
  }
  return false;
}

bool Property::Applies(int64_t before, int64_t after) const {
  return relation != Relation::kFewer || before != 0 || after != 0;
}

std::string Property::Text() const {
  const auto* row = std::find_if(std::begin(kRelations), std::end(kRelations),
                                 [&](const auto& known) { return known.second == relation; });
  return StrCat(row->first, " ", measure.text());
}

absl::StatusOr<std::vector<RewriteRow>> ParseRewriteTable(std::string_view text) {
  std::vector<RewriteRow> rows;
  int64_t number = 0;
  for (std::string_view line : Split(text, "\n")) {
    ++number;
    if (line.empty() || line.starts_with("#")) continue;
    RewriteRow& row = rows.emplace_back();
    row.place = StrCat("line ", number, " of the table");
    if (const absl::Status status = ParseRow(Split(line, "\t"), &row); !status.ok()) {
      return absl::InvalidArgumentError(StrCat("line ", number, ": ", std::string(status.message())));
    }
  }
  return rows;
}

absl::Status AddRewritesOfGolden(std::string_view file, std::string_view text, std::vector<RewriteRow>* rows) {
  constexpr std::string_view kBegin = "// REWRITE: ";
  int64_t number = 0;
  for (std::string_view line : Split(text, "\n")) {
    ++number;
    if (!line.starts_with(kBegin)) continue;
    std::vector<std::string_view> columns = Split(line.substr(kBegin.size()), " | ");
    if (columns.size() == 3) columns.push_back("-");
    RewriteRow& row = rows->emplace_back();
    row.place = StrCat(file, ":", number);
    if (const absl::Status status = ParseRow(columns, &row); !status.ok()) {
      return absl::InvalidArgumentError(StrCat(row.place, ": ", std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

const RewriteRow* FindRow(const std::vector<RewriteRow>& rows, std::string_view pass, std::string_view rewrite) {
  const RewriteRow* found = nullptr;
  for (const RewriteRow& row : rows) {
    if (row.rewrite != rewrite) continue;
    if (row.pass == pass) return &row;
    if (row.pass == "*") found = &row;
  }
  return found;
}

std::vector<std::string> CountedRewrites(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().extension() != ".cc") continue;
    const auto source = ReadFile(entry.path().string());
    if (!source.ok()) continue;
    ForEachCounter((*source)->text(), [&](std::string_view name) { names.emplace(name); });
  }
  return {names.begin(), names.end()};
}

}  // namespace hlokit::properties
