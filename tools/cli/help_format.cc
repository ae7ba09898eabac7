// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/help_format.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kColumn = 26;  // column of descriptions

// Wraps `text` to lines of at most `width` bytes, with all but the first indented by `indent`; words are not broken.
std::string Wrapped(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t used = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (used > 0 && used + 1 + word.size() > width) {
      StrAppend(&out, "\n", std::string(indent, ' '));
      used = 0;
    }
    StrAppend(&out, used > 0 ? " " : "", word);
    used += word.size() + (used > 0 ? 1 : 0);
  }
  return out;
}

// Returns `head` in the left column, `text` in the right one.
std::string Row(std::string head, std::string_view text) {
  if (text.empty()) return head + "\n";
  if (head.size() + 2 > kColumn) {
    StrAppend(&head, "\n", std::string(kColumn, ' '));
  } else {
    head.resize(kColumn, ' ');
  }
  return StrCat(head, Wrapped(text, kColumn, kWidth - kColumn), "\n");
}

std::string Join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) StrAppend(&out, out.empty() ? "" : between, part);
  return out;
}

// Returns "1 to 1024" for "INT:INT in [1 - 1024]", "from 1" for "[1 - ]", "up to 8" for "[ - 8]"; "" without a range.
std::string Range(const std::string& type) {
  const size_t begin = type.find(" in [");
  const size_t middle = type.find(" - ", begin);
  if (begin == std::string::npos || middle == std::string::npos || type.back() != ']') return "";
  const std::string from = type.substr(begin + 5, middle - begin - 5);
  const std::string to = type.substr(middle + 3, type.size() - middle - 4);
  if (from.empty()) return StrCat("up to ", to);
  return to.empty() ? StrCat("from ", from) : StrCat(from, " to ", to);
}

std::string Names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // the set is ordered by address
  return Join(names, ", ");
}

// Returns notes that follow the description.
std::string Notes(const CLI::Option& option) {
  std::vector<std::string> notes;
  if (option.get_required()) notes.push_back("required");
  if (!option.get_default_str().empty()) notes.push_back(StrCat("default: ", option.get_default_str()));
  if (const std::string range = Range(option.get_type_name()); !range.empty()) notes.push_back(range);
  if (!option.get_needs().empty()) notes.push_back(StrCat("requires ", Names(option.get_needs())));
  if (!option.get_excludes().empty()) notes.push_back(StrCat("not with ", Names(option.get_excludes())));
  return notes.empty() ? "" : StrCat(" (", Join(notes, "; "), ")");
}

}  // namespace

void GroupOptions(CLI::App* app, const std::string& group) {
  for (CLI::Option* option : app->get_options()) {
    const bool common = option == app->get_help_ptr() || option == app->get_version_ptr();
    if (option->get_group() == "Options" && !common) option->group(group);
  }
}

std::vector<std::string> ShownNames(const CLI::Option& option) {
  std::vector<std::string> shown;
  bool negated = false;
  for (const std::string& name : option.get_lnames()) {
    const bool negative = name.starts_with("no-");
    if (shown.empty() || (negative && !negated)) shown.push_back(name);
    negated |= negative;
  }
  return shown;
}

OptionValue ValueOf(const CLI::Option& option) {
  OptionValue value;
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  const size_t close = type.find('}');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    for (std::string member : CLI::detail::split(type.substr(open + 1, close - open - 1), ',')) {
      value.members.push_back(std::move(member));
    }
  }
  const bool flag = option.get_items_expected_max() == 0;
  value.optional = flag || option.get_items_expected_min() == 0;
  if (flag && value.members.empty()) return value;
  value.name = value.members.empty() ? type.substr(0, type.find(':')) : Join(value.members, "|");
  if (value.name == "UINT") value.name = "INT";
  if (value.name == "FLOAT") value.name = "NUMBER";
  return value;
}

// CLI11 would add the number of required subcommands, which the usage contains.
std::string HelpFormat::make_description(const CLI::App* app) const {
  return Wrapped(app->get_description(), 0, kWidth) + "\n\n";
}

std::string HelpFormat::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = StrCat("Usage: ", name.empty() ? app->get_name() : name, " [OPTION]...");
  if (!app->get_subcommands([](const CLI::App*) { return true; }).empty()) StrAppend(&usage, " COMMAND [ARGUMENT]...");
  for (const CLI::Option* option : app->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    StrAppend(&usage, " ", make_option_usage(option));
  }
  return usage + "\n";
}

std::string HelpFormat::make_group(std::string group, bool is_positional,
                                   std::vector<const CLI::Option*> options) const {
  if (!brief_ || is_positional) return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  std::string names;
  for (const CLI::Option* option : options) {
    for (const std::string& name : ShownNames(*option)) {
      if (!name.starts_with("no-")) StrAppend(&names, names.empty() ? "" : " ", "--", name);
    }
  }
  return StrCat("\n", group, group == "Options" ? " (--help describes them):" : ":", "\n  ",
                Wrapped(names, 2, kWidth - 2), "\n");
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string about = make_option_desc(option) + Notes(*option);
  if (is_positional) return Row(StrCat("  ", option->get_name(true, false)), about);
  const OptionValue value = ValueOf(*option);
  std::vector<std::string> names;
  for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  for (const std::string& name : ShownNames(*option)) names.push_back("--" + name);
  std::string head = StrCat(option->get_snames().empty() ? "      " : "  ", Join(names, ", "));
  if (!value.name.empty()) {
    StrAppend(&head,
              value.optional                 ? "[="
              : option->get_lnames().empty() ? " "
                                             : "=",
              value.name, value.optional ? "]" : "");
  }
  return Row(std::move(head), about);
}

std::string HelpFormat::make_subcommand(const CLI::App* sub) const {
  return Row(StrCat("  ", sub->get_name()), sub->get_description());
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  const std::string footer = app->get_footer();
  // A tool whose exit codes mean more lists them itself.
  const std::string_view common = footer.starts_with("Exit status:")
                                      ? ""
                                      : "Exit status:\n"
                                        "  0  success\n"
                                        "  1  the input was rejected, a check failed, or output cannot be written\n"
                                        "  2  usage error, or a file that cannot be read\n"
                                        "  3  internal error\n\n";
  return StrCat(common, footer, footer.empty() ? "" : "\n");
}

}  // namespace hlokit::cli
