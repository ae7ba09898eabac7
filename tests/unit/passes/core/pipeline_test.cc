// SPDX-License-Identifier: Apache-2.0
#include "passes/core/pipeline.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "passes/documentation/documentation.h"

namespace hlokit {
namespace {

// Changes the module as often as its option specifies, over all its runs.
class Countdown : public Pass {
 public:
  absl::StatusOr<bool> Run(Module&) override {
    Count("runs");
    if (left_ < 0) left_ = options().Int("times");
    return left_-- > 0;
  }

 private:
  int64_t left_ = -1;
};

class Failing : public Pass {
 public:
  absl::StatusOr<bool> Run(Module&) override { return absl::InternalError("no luck"); }
};

class Log : public PassInstrumentation {
 public:
  absl::Status RunAfterPass(const PassRun& run, const Module&, bool changed) override {
    text += std::string(run.place) + "/" + std::string(run.info.name) + (changed ? "! " : " ");
    return absl::OkStatus();
  }
  std::string text;
};

PassRegistry TestRegistry() {
  PassRegistry registry;
  registry.Add({.name = "countdown",
                .category = "test",
                .summary = "changes",
                .options = {{"times", OptionInfo::Type::kInt, "0", "how often"},
                            {"loud", OptionInfo::Type::kBool, "false", "nothing"},
                            {"kind", OptionInfo::Type::kString, "a", "a letter", 0, {"a", "b"}}},
                .create = MakePass<Countdown>});
  registry.Add({.name = "failing", .category = "test", .summary = "fails", .create = MakePass<Failing>});
  registry.AddPipeline({"once", "a named pipeline", "countdown"});
  registry.AddPipeline({"twice", "one that uses another", "once,x(once)*"});
  return registry;
}

class PipelineTest : public testing::Test {
 protected:
  PipelineTest() : module_(*ParseModuleText("ENTRY e { ROOT a = f32[] parameter(0) }")) {}

  std::string Print(std::string_view text, bool expand = false) {
    const absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text, registry_);
    return pipeline.ok() ? pipeline->ToString(expand) : std::string(pipeline.status().message());
  }
  std::string Run(std::string_view text) {
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text, registry_);
    Log log;
    PassInstrumentation* instruments[] = {&log};
    const absl::StatusOr<Pipeline::Result> result = pipeline->Run(*module_, {}, instruments);
    return result.ok() ? log.text : std::string(result.status().message());
  }

  PassRegistry registry_ = TestRegistry();
  std::unique_ptr<Module> module_;
};

TEST_F(PipelineTest, PrintsItselfBack) {
  EXPECT_EQ(Print(""), "");
  EXPECT_EQ(Print(" countdown , countdown { times = 3 , loud } * "), "countdown,countdown{times=3,loud=true}*");
  EXPECT_EQ(Print("countdown{times=0,loud=false}"), "countdown");
  EXPECT_EQ(Print("a(countdown,(countdown)*)*,countdown"), "a(countdown,(countdown)*)*,countdown");
  EXPECT_EQ(Print("twice*,once"), "twice*,once");
  EXPECT_EQ(Print("twice*", true), "twice(once(countdown),x(once(countdown))*)*");
  EXPECT_EQ(Print(Print("twice*", true), true), Print("twice*", true));
}

TEST_F(PipelineTest, OptionsOfANamedPipelineGoToItsPasses) {
  EXPECT_EQ(Print("once{ times = 2 , loud }*,once{}"), "once{times=2,loud=true}*,once");
  EXPECT_EQ(Print("twice{times=2}", true), "twice(once(countdown{times=2}),x(once(countdown{times=2}))*)");
  EXPECT_EQ(Print(Print("twice{times=2}", true), true), Print("twice{times=2}", true));
}

TEST_F(PipelineTest, ErrorsSayWhatWasMeant) {
  EXPECT_EQ(Print("countdwn"), "unknown pass `countdwn`; did you mean `countdown`?");
  EXPECT_EQ(Print("countdown{time=1}"),
            "pipeline, column 17: pass `countdown`: unknown option `time`; did you mean `times`?");
  EXPECT_EQ(Print("countdown{times=x}"),
            "pipeline, column 18: pass `countdown`: option `times`: expected an integer, found `x`");
  EXPECT_EQ(Print("countdown{times=-1}"),
            "pipeline, column 19: pass `countdown`: option `times`: expected an integer of at least 0, found `-1`");
  EXPECT_EQ(Print("countdown{kind=c}"),
            "pipeline, column 17: pass `countdown`: option `kind`: expected one of a, b, found `c`");
  EXPECT_EQ(Print("failing{x}"), "pipeline, column 10: pass `failing`: unknown option `x`: the pass has none");
  EXPECT_EQ(Print("once{x}"), "no pass of the pipeline `once` has an option `x`");
  EXPECT_EQ(Print("once{times=x}"),
            "pipeline, column 10: pass `countdown`: option `times`: expected an integer, found `x`");
  EXPECT_EQ(Print("countdown,"), "pipeline, column 11: expected a pass after `countdown,`");
  EXPECT_EQ(Print("a(countdown"), "pipeline, column 12: expected `)` at the end of a group");
  EXPECT_EQ(Print("countdown)"), "pipeline, column 10: expected `,` between passes, found `)`");
  EXPECT_EQ(Print("countdown countdown"), "pipeline, column 20: expected `,` between passes in `countdown countdown`");
}

TEST_F(PipelineTest, RepeatsUntilNothingChanges) {
  EXPECT_EQ(Run("countdown"), "/countdown ");
  EXPECT_EQ(Run("countdown{times=2}*"), "/countdown! /countdown! /countdown ");
  EXPECT_EQ(Run("g(countdown{times=1},countdown)*"), "g/countdown! g/countdown g/countdown ");
}

TEST_F(PipelineTest, APassThatFoundNothingWaitsForAChange) {
  EXPECT_EQ(Run("countdown,countdown,countdown{times=1},countdown"), "/countdown /countdown! /countdown ");
}

TEST_F(PipelineTest, NestsOfAnyDepthRun) {
  const std::string deep = StrCat(std::string(100000, '('), "countdown", std::string(100000, ')'));
  EXPECT_EQ(Run(deep), "/countdown ");
}

TEST_F(PipelineTest, NamesThePassThatFails) { EXPECT_EQ(Run("countdown,failing"), "pass failing: no luck"); }

TEST_F(PipelineTest, EveryPassOfTheLibraryIsDescribed) {
  for (const PassInfo* info : PassRegistry::Get().passes()) {
    EXPECT_FALSE(info->summary.empty()) << info->name;
    EXPECT_FALSE(info->category.empty()) << info->name;
    EXPECT_NE(info->create(), nullptr) << info->name;
    for (const OptionInfo& option : info->options) EXPECT_FALSE(option.doc.empty()) << info->name << option.name;
  }
  for (const NamedPipeline& named : PassRegistry::Get().pipelines()) {
    EXPECT_TRUE(Pipeline::Parse(named.name).ok()) << named.name;
  }
}

// `hlo-opt --list-passes=markdown > docs/passes.md` generates the page.
TEST(DocumentationTest, PageOfPassesIsCurrent) {
  std::ifstream file(HLOKIT_SOURCE_DIR "/docs/passes.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_TRUE(page.str() == PassesAsMarkdown(PassRegistry::Get()))
      << "docs/passes.md is not what `hlo-opt --list-passes=markdown` prints";
}

TEST(DocumentationTest, ExamplesRunAndChangeSomething) {
  for (const PassInfo* info : PassRegistry::Get().passes()) {
    if (info->example.empty()) continue;
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(info->example);
    ASSERT_TRUE(module.ok()) << info->name << module.status();
    const absl::StatusOr<bool> changed = PassRegistry::Make(*info, PassOptions(info->options))->Run(**module);
    ASSERT_TRUE(changed.ok()) << info->name << changed.status();
    EXPECT_TRUE(*changed) << info->name;
  }
}

}  // namespace
}  // namespace hlokit
