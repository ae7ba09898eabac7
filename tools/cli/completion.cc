// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/core/str_cat.h"
#include "tools/cli/help_format.h"

namespace hlokit::cli {
namespace {

bool Takes(const CLI::Option& option) { return option.get_items_expected_min() > 0 && option.get_type_size() > 0; }

// Context of the last word.
struct Line {
  const CLI::App* command = nullptr;     // the subcommand, or the tool
  std::set<const CLI::Option*> given;    // options
  size_t arguments = 0;                  // positional arguments
  const CLI::Option* waiting = nullptr;  // the option whose value the last word is
  bool flags_end = false;                // "--"
};

const CLI::Option* FindOption(const CLI::App& command, const std::string& word) {
  return command.get_option_no_throw(word.substr(0, word.starts_with("--") ? word.find('=') : 2));
}

Line ReadLine(const CLI::App& app, const std::vector<std::string>& words) {
  Line line;
  line.command = &app;
  for (size_t k = 0; k + 1 < words.size(); ++k) {
    const std::string& word = words[k];
    if (line.waiting != nullptr) {
      line.waiting = nullptr;
    } else if (line.flags_end || word.size() < 2 || word[0] != '-') {
      const auto named = line.command->get_subcommands([&](const CLI::App* sub) { return sub->check_name(word); });
      if (line.arguments > 0 || named.empty()) {
        ++line.arguments;
      } else {
        line.command = named.front();
      }
    } else if (word == "--") {
      line.flags_end = true;
    } else if (const CLI::Option* option = FindOption(*line.command, word)) {
      line.given.insert(option);
      const bool has_value = word.starts_with("--") ? word.find('=') != std::string::npos : word.size() > 2;
      if (Takes(*option) && !has_value) line.waiting = option;
    }
  }
  return line;
}

void CompleteValue(const CLI::Option& option, std::string_view typed, const std::vector<ValueKind>& kinds,
                   Completion* out) {
  const OptionValue value = ValueOf(option);
  for (const std::string& member : value.members) out->candidates.push_back({member, ""});
  for (const ValueKind& kind : kinds) {
    if (kind.name == value.name) kind.complete(typed, out);
  }
}

// Offers aliases of flags if no other name has the prefix.
void CompleteFlag(const Line& line, std::string_view word, Completion* out) {
  std::set<const CLI::Option*> excluded;
  for (const CLI::Option* option : line.given) {
    if (option->get_items_expected_max() <= 1) excluded.insert(option);
    for (const CLI::Option* other : option->get_excludes()) excluded.insert(other);
  }
  const std::string_view typed = word.substr(std::min<size_t>(word.size(), 2));
  for (const bool aliases : {false, true}) {
    for (const CLI::Option* option : line.command->get_options()) {
      if (excluded.contains(option) || option->get_group().empty()) continue;
      for (const std::string& name : aliases ? option->get_lnames() : ShownNames(*option)) {
        if (!name.starts_with(typed)) continue;
        out->candidates.push_back({StrCat("--", name, Takes(*option) ? "=" : ""), option->get_description()});
      }
    }
    if (!out->candidates.empty()) return;
  }
}

void CompleteArgument(const Line& line, std::string_view typed, const std::vector<ValueKind>& kinds, Completion* out) {
  if (line.arguments == 0) {
    for (const CLI::App* sub : line.command->get_subcommands([](const CLI::App*) { return true; })) {
      out->candidates.push_back({sub->get_name(), sub->get_description()});
    }
  }
  size_t left = line.arguments;
  for (const CLI::Option* option :
       line.command->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    const size_t most = static_cast<size_t>(std::max(option->get_items_expected_max(), 1));
    if (left < most) return CompleteValue(*option, typed, kinds, out);
    left -= most;
  }
}

}  // namespace

void CompleteNames(const std::vector<std::string_view>& names, std::string_view suffix, Completion* completion) {
  for (const std::string_view name : names) completion->candidates.push_back({StrCat(name, suffix), ""});
}

void CompleteList(std::string_view typed, const std::vector<std::string_view>& names, Completion* completion) {
  std::set<std::string_view> given;
  size_t begin = 0;
  for (size_t comma = typed.find(','); comma != std::string_view::npos; comma = typed.find(',', begin)) {
    given.insert(typed.substr(begin, comma - begin));
    begin = comma + 1;
  }
  for (const std::string_view name : names) {
    if (!given.contains(name)) completion->candidates.push_back({StrCat(typed.substr(0, begin), name), ""});
  }
  completion->open = true;
}

Completion Complete(const CLI::App& app, const std::vector<std::string>& words, const std::vector<ValueKind>& kinds) {
  const Line line = ReadLine(app, words);
  const std::string_view word = words.empty() ? std::string_view() : std::string_view(words.back());
  Completion result;
  // Prefix of the value: "--passes=" of "--passes=dce,c".
  size_t begin = 0;
  if (line.waiting != nullptr) {
    CompleteValue(*line.waiting, word, kinds, &result);
  } else if (!line.flags_end && word.starts_with("--") && word.find('=') != std::string_view::npos) {
    const CLI::Option* option = FindOption(*line.command, std::string(word));
    begin = word.find('=') + 1;
    if (option != nullptr) CompleteValue(*option, word.substr(begin), kinds, &result);
  } else if (!line.flags_end && word.starts_with("-")) {
    CompleteFlag(line, word, &result);
  } else {
    CompleteArgument(line, word, kinds, &result);
  }
  result.path_begin += begin;
  std::vector<Candidate> candidates;
  for (Candidate& c : result.candidates) {
    c.text.insert(0, word.substr(0, begin));
    if (c.text.starts_with(word)) candidates.push_back(std::move(c));
  }
  result.candidates = std::move(candidates);
  return result;
}

std::string CompletionsToString(const CLI::App& app, const std::vector<std::string>& words,
                                const std::vector<ValueKind>& kinds) {
  const Completion completion = Complete(app, words, kinds);
  const std::string_view word = words.empty() ? std::string_view() : std::string_view(words.back());
  std::string text;
  for (const Candidate& c : completion.candidates) StrAppend(&text, c.text, "\t", c.description, "\n");
  if (completion.paths != Completion::Paths::kNone) {
    StrAppend(&text, completion.paths == Completion::Paths::kFiles ? ":files " : ":folders ",
              word.substr(0, completion.path_begin), "\n");
  }
  if (completion.open) text += ":open\n";
  return text;
}

}  // namespace hlokit::cli
