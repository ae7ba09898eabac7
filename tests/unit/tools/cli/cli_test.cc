// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/cli.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/captured_stderr.h"
#include "tests/unit/files.h"
#include "tests/unit/temporary_folder.h"
#include "tools/cli/number_flag.h"

namespace hlokit::cli {
namespace {

// A tool with a number, a text, a flag and an argument.
class ParseFlagsTest : public testing::Test {
 protected:
  // Parses the words. Returns the exit code, or nothing if the tool runs.
  std::optional<int> Parse(std::vector<std::string> words) {
    CLI::App app("about", "tool");
    app.add_option("input", input, "a file");
    AddNumber(&app, "--max-steps", &number, "a number", 1, 8);
    app.add_option("--form", text, "a form")->check(CLI::IsMember({"short", "json"}));
    app.add_option("--name", name, "any text");
    app.add_flag("--verify,!--no-verify", flag, "verify");
    words.insert(words.begin(), "tool");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    std::optional<int> code;
    message = StderrOf([&] { code = ParseFlags(&app, static_cast<int>(argv.size()), argv.data()); });
    return code;
  }
  // Returns the message of a usage error without its frame.
  std::string Mistake(std::vector<std::string> words) {
    EXPECT_EQ(Parse(std::move(words)), kUsage);
    const std::string begin = "tool: error: ", end = "\nRun with --help for more information.\n";
    EXPECT_TRUE(message.starts_with(begin) && message.ends_with(end)) << message;
    return message.substr(begin.size(), message.size() - begin.size() - end.size());
  }

  int number = 0;
  std::string text, name = "unset", input, message;
  bool flag = false;
};

TEST_F(ParseFlagsTest, DashesAndUnderscoresAreEqualInNames) {
  EXPECT_EQ(Parse({"--max_steps=3", "--no_verify", "--name=a_b"}), std::nullopt);
  EXPECT_EQ(number, 3);
  EXPECT_EQ(name, "a_b");
  EXPECT_EQ(Parse({"--verify", "a_b.hlo"}), std::nullopt);
  EXPECT_TRUE(flag);
  EXPECT_EQ(input, "a_b.hlo");
}

TEST_F(ParseFlagsTest, EmptyValueIsAUsageError) {
  EXPECT_EQ(Mistake({"--name=", "file"}), "--name: expected a value, found an empty text");
}

TEST_F(ParseFlagsTest, AfterTwoDashesThereAreNoFlags) {
  EXPECT_EQ(Parse({"--", "--max_steps"}), std::nullopt);
  EXPECT_EQ(input, "--max_steps");
}

TEST_F(ParseFlagsTest, Mistakes) {
  EXPECT_EQ(Mistake({"--max-step=1"}), "unknown flag `--max-step`; did you mean `--max-steps`?");
  EXPECT_EQ(Mistake({"--qqqqqqqq"}), "unknown flag `--qqqqqqqq`");
  EXPECT_EQ(Mistake({"--name"}), "missing value of `--name`");
  EXPECT_EQ(Mistake({"--name", "--verify"}), "missing value of `--name`");
  EXPECT_EQ(Mistake({"--form=long"}), "--form: expected one of short, json, found `long`");
  EXPECT_EQ(Mistake({"--max-steps=9"}), "--max-steps: expected an integer from 1 to 8, found `9`");
  EXPECT_EQ(Mistake({"--max-steps=1", "--max_steps=2"}), "duplicate flag `--max-steps`");
  EXPECT_EQ(Mistake({"one", "two"}), "unexpected argument `two`");
}

TEST_F(ParseFlagsTest, LeadingZerosAreDecimal) {
  EXPECT_EQ(Parse({"--max-steps=07"}), std::nullopt);
  EXPECT_EQ(number, 7);
}

TEST(NumberFlagTest, OtherNumbersAreAnInternalError) {
  CLI::App app("about", "tool");
  double limit = 0;
  app.add_option("--limit", limit, "a number that CLI11 converts");
  std::string tool = "tool";
  char* argv[] = {tool.data()};
  EXPECT_THROW(ParseFlags(&app, 1, argv), std::logic_error);
}

TEST_F(ParseFlagsTest, UnknownCommand) {
  CLI::App app("about", "tool");
  app.require_subcommand(1);
  app.add_subcommand("memory", "live arrays");
  std::string words[] = {"tool", "memroy"};
  char* argv[] = {words[0].data(), words[1].data()};
  const std::string text = StderrOf([&] { EXPECT_EQ(ParseFlags(&app, 2, argv), kUsage); });
  EXPECT_NE(text.find("unknown command `memroy`; did you mean `memory`?"), std::string::npos) << text;
}

TEST(MainTest, ExceptionsAreInternalErrors) {
  const auto bad_alloc = [](int, char**) -> int { throw std::bad_alloc(); };
  const auto other = [](int, char**) -> int { throw std::runtime_error("lost"); };
  const auto fine = [](int, char**) { return 1; };
  EXPECT_NE(StderrOf([&] { EXPECT_EQ(Main(bad_alloc, 0, nullptr), kInternal); }).find("out of memory"),
            std::string::npos);
  EXPECT_NE(StderrOf([&] { EXPECT_EQ(Main(other, 0, nullptr), kInternal); }).find("lost"), std::string::npos);
  EXPECT_EQ(Main(fine, 0, nullptr), 1);
}

TEST(DiagnosticReporterTest, TheHighestCodeStays) {
  DiagnosticReporter diagnostics({});
  EXPECT_EQ(diagnostics.exit_code(), kOk);
  diagnostics.Fail(kUsage);
  diagnostics.Fail(kRejected);
  EXPECT_EQ(diagnostics.exit_code(), kUsage);
}

TEST(DiagnosticReporterTest, ReadSplitsAtMarkers) {
  const TemporaryFolder directory;
  const std::string path = WriteFile(directory.path() / "two.hlo", "HloModule a\n// -----\nHloModule b\n");
  InputOptions options;
  DiagnosticReporter whole(options);
  ASSERT_EQ(whole.Read(path).size(), 1u);
  EXPECT_EQ(whole.Read(path)[0].label(), path);
  options.split_input_file = true;
  DiagnosticReporter split(options);
  const std::vector<InputPart> parts = split.Read(path);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].label(), path + "#2");
  EXPECT_NE(parts[1].text.find("HloModule b"), std::string_view::npos);
  EXPECT_EQ(parts[1].text.find("HloModule a"), std::string_view::npos);
}

TEST(DiagnosticReporterTest, MissingFileIsAUsageError) {
  const TemporaryFolder directory;
  DiagnosticReporter diagnostics({});
  StderrOf([&] { EXPECT_TRUE(diagnostics.Read((directory.path() / "none").string()).empty()); });
  EXPECT_EQ(diagnostics.exit_code(), kUsage);
}

TEST(DiagnosticReporterTest, JsonIsOneArrayOfAllMessages) {
  const TemporaryFolder directory;
  const std::string path =
      WriteFile(directory.path() / "bad.hlo", "HloModule m\nENTRY e {\n  ROOT r = f32[] add(x, y)\n}\n");
  InputOptions options;
  options.json_diagnostics = true;
  const std::string text = StderrOf([&] {
    DiagnosticReporter diagnostics(options);
    diagnostics.ShowError("--flag", "a \"quoted\" message", kUsage);
    EXPECT_EQ(diagnostics.Parse(diagnostics.Read(path)[0]), nullptr);
    EXPECT_EQ(diagnostics.exit_code(), kUsage);
  });
  const nlohmann::json json = nlohmann::json::parse(text);
  ASSERT_GE(json.size(), 2u) << text;
  EXPECT_EQ(json[0]["file"], "--flag");
  EXPECT_EQ(json[0]["message"], "a \"quoted\" message");
  EXPECT_EQ(json[1]["file"], path);
  EXPECT_EQ(json[1]["line"], 3);
  EXPECT_EQ(json[1]["kind"], "undefined-operand");
}

TEST(DiagnosticReporterTest, JsonWithoutMessagesIsAnEmptyArray) {
  InputOptions options;
  options.json_diagnostics = true;
  EXPECT_EQ(StderrOf([&] { const DiagnosticReporter diagnostics(options); }), "[]\n");
}

TEST(FillElidedFlagTest, Kinds) {
  const auto parse = [](const std::string& word, bool xla) -> std::optional<FillKind> {
    CLI::App app;
    std::optional<FillKind> kind;
    AddFillElidedFlag(&app, &kind, xla, "purpose");
    try {
      app.parse("--fill-elided=" + word);
    } catch (const CLI::ParseError&) {
    }
    return kind;
  };
  EXPECT_EQ(parse("zeros", false), FillKind::kZeros);
  EXPECT_EQ(parse("iota", false), FillKind::kIota);
  EXPECT_EQ(parse("random", false), FillKind::kRandom);
  EXPECT_EQ(parse("xla", false), std::nullopt);
  EXPECT_EQ(parse("xla", true), FillKind::kXla);
}

}  // namespace
}  // namespace hlokit::cli
