// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/help_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tools/cli/number_flag.h"

namespace hlokit::cli {
namespace {

using Strings = std::vector<std::string>;

// Returns the help of `app`.
std::string HelpOf(CLI::App* app) {
  app->formatter(std::make_shared<HelpFormat>());
  return app->help();
}

bool HasLine(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(HelpFormatTest, ShownNamesAreTheFirstAndItsNegation) {
  CLI::App app;
  bool flag = false;
  EXPECT_EQ(ShownNames(*app.add_flag("--verify,--check,!--no-verify,!--no-check", flag)),
            (Strings{"verify", "no-verify"}));
  EXPECT_EQ(ShownNames(*app.add_flag("--device,--target", flag)), Strings{"device"});
}

TEST(HelpFormatTest, ValuesAreNamedByType) {
  CLI::App app;
  std::string text;
  int number = 0;
  unsigned count = 0;
  double factor = 0;
  bool flag = false;
  EXPECT_EQ(ValueOf(*app.add_option("--file", text)->type_name("FILE")).name, "FILE");
  EXPECT_EQ(ValueOf(*app.add_option("--number", number)->check(CLI::Range(1, 8))).name, "INT");
  EXPECT_EQ(ValueOf(*app.add_option("--count", count)).name, "INT");
  EXPECT_EQ(ValueOf(*app.add_option("--factor", factor)).name, "NUMBER");
  EXPECT_EQ(ValueOf(*app.add_flag("--flag", flag)).name, "");
}

TEST(HelpFormatTest, FewValuesAreListed) {
  CLI::App app;
  std::string text;
  const OptionValue value = ValueOf(*app.add_option("--as", text)->check(CLI::IsMember({"text", "json"})));
  EXPECT_EQ(value.members, (Strings{"text", "json"}));
  EXPECT_EQ(value.name, "text|json");
  EXPECT_FALSE(value.optional);
}

TEST(HelpFormatTest, FlagsWithAValueMayOmitIt) {
  CLI::App app;
  std::string text;
  const OptionValue value = ValueOf(*app.add_flag("--stats{text}", text)->check(CLI::IsMember({"text", "json"})));
  EXPECT_EQ(value.members, (Strings{"text", "json"}));
  EXPECT_TRUE(value.optional);
}

TEST(HelpFormatTest, OptionsStandInColumns) {
  CLI::App app("about", "tool");
  int number = 3;
  std::string text;
  app.add_option("-n,--number", number, "a number")->capture_default_str()->check(CLI::Range(1, 8));
  app.add_option("--a-flag-with-a-long-name", text, "described below")->type_name("FILE");
  const std::string help = HelpOf(&app);
  EXPECT_TRUE(HasLine(help, "  -n, --number=INT        a number (default: 3; 1 to 8)")) << help;
  EXPECT_TRUE(HasLine(help, "      --a-flag-with-a-long-name=FILE\n                          described below")) << help;
}

TEST(HelpFormatTest, LimitsOfTheTypeAreNotShown) {
  CLI::App app("about", "tool");
  int64_t from = 1;
  int upto = 0;
  AddNumber(&app, "--from", &from, "a number", 1);
  AddNumber(&app, "--upto", &upto, "a number", std::numeric_limits<int>::lowest(), 8);
  EXPECT_TRUE(HasLine(HelpOf(&app), "      --from=INT          a number (from 1)")) << HelpOf(&app);
  EXPECT_TRUE(HasLine(HelpOf(&app), "      --upto=INT          a number (up to 8)")) << HelpOf(&app);
}

TEST(HelpFormatTest, RelationsAreSortedByName) {
  CLI::App app("about", "tool");
  bool flag = false;
  CLI::Option* const b = app.add_flag("--b", flag, "b");
  CLI::Option* const a = app.add_flag("--a", flag, "a");
  app.add_flag("--c", flag, "c")->excludes(b)->excludes(a)->required();
  EXPECT_TRUE(HasLine(HelpOf(&app), "      --c                 c (required; not with --a, --b)")) << HelpOf(&app);
}

TEST(HelpFormatTest, LinesAreAtMostEightyWideAndKeepAllWords) {
  CLI::App app("about", "tool");
  bool flag = false;
  std::string words;
  for (int k = 0; k < 100; ++k) words += "word" + std::to_string(k) + " ";
  app.add_flag("--flag", flag, words);
  const std::string help = HelpOf(&app);
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  std::istringstream in(help);
  int next = 0;
  for (std::string word; in >> word;) next += word == "word" + std::to_string(next) ? 1 : 0;
  EXPECT_EQ(next, 100);
}

TEST(HelpFormatTest, UsageNamesCommandsAndArguments) {
  CLI::App app("about", "tool");
  std::string path;
  app.add_option("input", path)->type_name("FILE");
  EXPECT_TRUE(HelpOf(&app).find("Usage: tool [OPTION]... [input]") != std::string::npos) << HelpOf(&app);
  CLI::App with_commands("about", "tool");
  with_commands.add_subcommand("cost", "counts")->group("Commands");
  const std::string help = HelpOf(&with_commands);
  EXPECT_TRUE(help.find("Usage: tool [OPTION]... COMMAND [ARGUMENT]...\n") != std::string::npos) << help;
  EXPECT_TRUE(HasLine(help, "  cost                    counts")) << help;
}

}  // namespace
}  // namespace hlokit::cli
