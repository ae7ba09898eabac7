// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/completion.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "ir/ops/opcode.h"
#include "passes/core/registry.h"
#include "passes/target/device_description.h"

namespace hlokit::cli {
namespace {

using Strings = std::vector<std::string>;

// A tool with an argument, options of several kinds, and flags that exclude each other.
class CompletionTest : public testing::Test {
 protected:
  CompletionTest() : app_("about", "tool") {
    app_.add_option("input", text_, "a file")->type_name("FILE");
    app_.add_option("--passes", text_, "passes to run")->type_name("PIPELINE");
    app_.add_option("--device,--target", text_, "the target")->type_name("DEVICE");
    app_.add_option("--print", text_, "a form")->check(CLI::IsMember({"short", "json"}));
    app_.add_option("--opcode", text_, "an opcode")->type_name("OPCODE");
    CLI::Option* const quiet = app_.add_flag("--quiet", flag_, "print nothing");
    app_.add_flag("--verbose", flag_, "print more")->excludes(quiet);
    app_.add_option("--out", text_, "a directory")->type_name("DIR");
  }

  Completion Of(const Strings& words) const { return Complete(app_, words, CommonValueKinds()); }
  Strings Texts(const Strings& words) const {
    Strings texts;
    for (const Candidate& c : Of(words).candidates) texts.push_back(c.text);
    return texts;
  }
  bool Offers(const Strings& words, const std::string& text) const {
    const Strings texts = Texts(words);
    return std::find(texts.begin(), texts.end(), text) != texts.end();
  }

  CLI::App app_;
  std::string text_;
  bool flag_ = false;
};

TEST_F(CompletionTest, FlagsHaveAnEqualsSignIfTheyTakeAValue) {
  EXPECT_EQ(Texts({"--p"}), (Strings{"--passes=", "--print="}));
  EXPECT_EQ(Texts({"--q"}), Strings{"--quiet"});
}

TEST_F(CompletionTest, GivenAndExcludedFlagsAreNotOffered) {
  EXPECT_EQ(Texts({"--passes=dce", "--p"}), Strings{"--print="});
  EXPECT_EQ(Texts({"--passes", "dce", "--p"}), Strings{"--print="});
  EXPECT_TRUE(Texts({"--verbose", "--q"}).empty());
}

TEST_F(CompletionTest, AliasesAreOfferedIfNothingElseHasThePrefix) {
  EXPECT_EQ(Texts({"--d"}), Strings{"--device="});
  EXPECT_EQ(Texts({"--t"}), Strings{"--target="});
}

TEST_F(CompletionTest, MembersOfAFewValues) {
  EXPECT_EQ(Texts({"--print="}), (Strings{"--print=short", "--print=json"}));
  EXPECT_EQ(Texts({"--print=s"}), Strings{"--print=short"});
  EXPECT_EQ(Texts({"--print", "j"}), Strings{"json"});
}

TEST_F(CompletionTest, ArgumentsAreFiles) {
  EXPECT_EQ(Of({"mod"}).paths, Completion::Paths::kFiles);
  EXPECT_EQ(Of({"--out="}).paths, Completion::Paths::kDirectories);
  EXPECT_EQ(Of({"--out=a/b"}).path_begin, 6u);
  // A second argument is not taken.
  EXPECT_EQ(Of({"module.hlo", "mod"}).paths, Completion::Paths::kNone);
  EXPECT_EQ(Of({"--", "--p"}).paths, Completion::Paths::kFiles);
}

TEST_F(CompletionTest, EveryPassIsOfferedOnce) {
  const Strings texts = Texts({"--passes="});
  for (const PassInfo* pass : PassRegistry::Get().passes()) {
    EXPECT_EQ(std::count(texts.begin(), texts.end(), "--passes=" + std::string(pass->name)), 1) << pass->name;
  }
  EXPECT_EQ(texts.size(), PassRegistry::Get().passes().size() + PassRegistry::Get().pipelines().size());
}

TEST_F(CompletionTest, PipelinesContinueAfterSeparators) {
  EXPECT_EQ(Texts({"--passes=dce,(cs"}), Strings{"--passes=dce,(cse"});
  EXPECT_TRUE(Offers({"--passes=dce,"}, "--passes=dce,cse"));
  // After a group a comma must follow.
  EXPECT_TRUE(Texts({"--passes=(dce)"}).empty());
  EXPECT_TRUE(Of({"--passes=dce,"}).open);
}

TEST_F(CompletionTest, PassesAreSpelledAsTyped) {
  EXPECT_TRUE(Offers({"--passes=gather_s"}, "--passes=gather_simplifier"));
  EXPECT_TRUE(Offers({"--passes=gather-s"}, "--passes=gather-simplifier"));
}

TEST_F(CompletionTest, OptionsOfAPassAndTheirValues) {
  EXPECT_EQ(Texts({"--passes=dce,fusion{max-o"}), Strings{"--passes=dce,fusion{max-operands="});
  const Strings values = Texts({"--passes=cholesky-expander{wide="});
  EXPECT_EQ(values, (Strings{"--passes=cholesky-expander{wide=true", "--passes=cholesky-expander{wide=false"}));
  EXPECT_TRUE(Texts({"--passes=no-such-pass{"}).empty());
}

TEST_F(CompletionTest, DevicesAndFiles) {
  const Completion completion = Of({"--device="});
  EXPECT_EQ(completion.candidates.size(), tpu::BuiltinDeviceDescriptions().size());
  EXPECT_EQ(completion.paths, Completion::Paths::kFiles);
  EXPECT_EQ(Texts({"--target=v5"}).size(), 2u);
}

TEST_F(CompletionTest, Opcodes) {
  EXPECT_EQ(Texts({"--opcode="}).size(), kOpcodeCount);
  EXPECT_EQ(Texts({"--opcode=all-g"}),
            (Strings{"--opcode=all-gather", "--opcode=all-gather-done", "--opcode=all-gather-start"}));
}

TEST_F(CompletionTest, CommandsComeFirstAndHaveFlagsOfTheirOwn) {
  CLI::App app("about", "tool");
  CLI::App* const cost = app.add_subcommand("cost", "counts operations");
  cost->add_flag("--trips", flag_, "of loops");
  app.add_subcommand("memory", "live arrays");
  const auto texts = [&](const Strings& words) {
    Strings result;
    for (const Candidate& c : Complete(app, words, {}).candidates) result.push_back(c.text);
    return result;
  };
  EXPECT_EQ(texts({""}), (Strings{"cost", "memory"}));
  EXPECT_EQ(texts({"m"}), Strings{"memory"});
  EXPECT_EQ(texts({"cost", "--t"}), Strings{"--trips"});
  EXPECT_TRUE(texts({"memory", "--t"}).empty());
}

TEST_F(CompletionTest, TextHasALineForEachCandidate) {
  EXPECT_EQ(CompletionsToString(app_, {"--print="}, {}), "--print=short\t\n--print=json\t\n");
  EXPECT_EQ(CompletionsToString(app_, {"--q"}, {}), "--quiet\tprint nothing\n");
  EXPECT_EQ(CompletionsToString(app_, {"--out=a"}, CommonValueKinds()), ":folders --out=\n");
}

TEST(CompleteListTest, NamesThatAreListedAreNotOfferedAgain) {
  Completion completion;
  CompleteList("a,b,", {"a", "b", "c", "d"}, &completion);
  ASSERT_EQ(completion.candidates.size(), 2u);
  EXPECT_EQ(completion.candidates[0].text, "a,b,c");
  EXPECT_EQ(completion.candidates[1].text, "a,b,d");
  EXPECT_TRUE(completion.open);
}

}  // namespace
}  // namespace hlokit::cli
