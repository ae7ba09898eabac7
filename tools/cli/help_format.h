// SPDX-License-Identifier: Apache-2.0
// Format of --help: options in columns, wrapped at 80, with named values. help2man generates the manual pages from it,
// and completion uses the same names (completion.h).
#ifndef HLOKIT_TOOLS_CLI_HELP_FORMAT_H_
#define HLOKIT_TOOLS_CLI_HELP_FORMAT_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hlokit::cli {

// The value of an option.
struct OptionValue {
  std::string name;                  // "FILE", "INT"; empty: none
  std::vector<std::string> members;  // its possible values, if few
  bool optional = false;             // --stats or --stats=json
};

// Returns the long names of a flag in help and completion: the first one and its negation, without aliases.
std::vector<std::string> ShownNames(const CLI::Option& option);
OptionValue ValueOf(const CLI::Option& option);

// Puts the options of `app` that are in no group yet, other than help and version, into this one.
void GroupOptions(CLI::App* app, const std::string& group);

class HelpFormat : public CLI::Formatter {
 public:
  // For -h: lists only the names of options.
  void set_brief() { brief_ = true; }

  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_footer(const CLI::App* app) const override;

 private:
  bool brief_ = false;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_HELP_FORMAT_H_
