// SPDX-License-Identifier: Apache-2.0
#include "passes/dumps/dumped_module.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parser/formats/parser.h"
#include "passes/dumps/recompilations.h"

namespace hlokit::dump {
namespace {

constexpr std::string_view kBefore =
    "HloModule jit_f\nENTRY e {\n  x = f32[4] parameter(0)\n  d = f32[4] exponential(x)\n  ROOT n = f32[4] "
    "negate(x)\n}\n";
constexpr std::string_view kAfter =
    "HloModule jit_f\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x)\n}\n";

// Files in memory.
class FakeReader : public DumpReader {
 public:
  std::map<std::string, std::string> files;
  std::vector<std::string> errors;

  std::shared_ptr<const SourceBuffer> Read(const std::string& path) override {
    const auto found = files.find(path);
    if (found != files.end()) return std::make_shared<const SourceBuffer>(path, found->second);
    errors.push_back(path);
    return nullptr;
  }
  std::unique_ptr<Module> Parse(std::shared_ptr<const SourceBuffer> source, std::shared_ptr<Context> context) override {
    DiagnosticSink sink;
    const std::string_view text = source->text();
    return ParseModulePart(std::move(source), text, {}, &sink, std::move(context));
  }
  void Report(const DiagnosticSink& sink, const SourceBuffer& source) override {
    if (sink.has_errors()) errors.push_back(source.name());
  }
  void ReportError(std::string_view where, std::string_view) override { errors.emplace_back(where); }
};

DumpFile FileOf(const std::string& name) {
  DumpFile file;
  EXPECT_TRUE(ParseDumpName(name, &file)) << name;
  file.path = name;
  return file;
}

TEST(DumpedModuleTest, StagesSayWhatEachPassChanged) {
  FakeReader reader;
  const std::string before = "module_0001.jit_f.before_optimizations.txt";
  const std::string pass = "module_0001.jit_f.0001.simplification.after_dce.before_pipeline-end.txt";
  const std::string after = "module_0001.jit_f.after_optimizations.txt";
  reader.files = {{before, std::string(kBefore)}, {pass, std::string(kAfter)}, {after, std::string(kAfter)}};
  const std::vector<DumpFile> files = {FileOf(pass), FileOf(after), FileOf(before)};
  std::vector<DumpedModule> modules = GroupFiles(files);
  ASSERT_EQ(modules.size(), 1u);
  StageOptions options;
  options.shows_diff = [](const DumpFile&) { return false; };
  ReadDumpFiles(options, &modules[0], &reader);
  EXPECT_TRUE(reader.errors.empty());
  EXPECT_EQ(modules[0].name, "jit_f");
  ASSERT_EQ(modules[0].stages.size(), 3u);
  EXPECT_EQ(modules[0].stages[0].instructions, 3);
  ASSERT_TRUE(modules[0].stages[1].change);
  EXPECT_EQ(modules[0].stages[1].change->removed, 1);
  EXPECT_FALSE(modules[0].stages[1].change->of_one_pass);  // others may have run before
  ASSERT_TRUE(modules[0].stages[2].change);
  EXPECT_TRUE(modules[0].stages[2].change->same());
  EXPECT_EQ(StageNames(*modules[0].stages[1].file),
            (std::vector<std::string>{"dce", "simplification/dce", "1", "1 simplification/dce"}));
  EXPECT_TRUE(FindRecompilations(modules, options).empty());
}

TEST(DumpedModuleTest, FilesThatCannotBeReadAreReported) {
  FakeReader reader;
  const std::vector<DumpFile> files = {FileOf("module_0002.jit_g.after_optimizations.txt")};
  std::vector<DumpedModule> modules = GroupFiles(files);
  ASSERT_EQ(modules.size(), 1u);
  StageOptions options;
  options.shows_diff = [](const DumpFile&) { return false; };
  ReadDumpFiles(options, &modules[0], &reader);
  EXPECT_EQ(reader.errors, std::vector<std::string>{"module_0002.jit_g.after_optimizations.txt"});
  EXPECT_TRUE(modules[0].stages.empty());
  EXPECT_EQ(modules[0].name, "jit_g");
}

}  // namespace
}  // namespace hlokit::dump
