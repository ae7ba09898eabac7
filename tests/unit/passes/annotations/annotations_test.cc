// SPDX-License-Identifier: Apache-2.0
#include "passes/annotations/annotations.h"

#include <gtest/gtest.h>

#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "passes/annotations/text.h"

namespace hlokit {
namespace {

constexpr std::string_view kText = R"(HloModule m

FileNames
1 "f.py"

FunctionNames
1 "f"
2 "g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
2 {file_name_id=1 function_name_id=2 line=7 end_line=7 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}


ENTRY %e (a: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] negate(%a), metadata={op_name="f/b" stack_frame_id=2}
  %c = f32[] negate(%b), metadata={op_name="f/c" stack_frame_id=1}
  ROOT %d = f32[] abs(%c)
}
)";

class AnnotationsTest : public testing::Test {
 protected:
  AnnotationsTest() : module_(*ParseModuleText(kText)) {}

  InstructionId Id(std::string_view name) {
    for (Instruction i : module_->entry().instructions()) {
      if (i.name() == name) return i.id();
    }
    return InstructionId();
  }
  std::string Names(Instruction i) {
    std::string names;
    for (MetadataId origin : MetadataSources(i)) {
      const Metadata m = module_->context().metadata[origin];
      names += std::string(module_->context().str(m.op_name)) + "@" + std::to_string(m.stack_frame_id) + " ";
    }
    return names;
  }
  std::string Text(const Module& module) {
    std::string text;
    {
      TextWriter out(&text);
      PrintModule(out, module);
    }
    return text;
  }

  std::unique_ptr<Module> module_;
};

TEST_F(AnnotationsTest, TheFirstOriginStaysFirstWhenItIsMergedAgain) {
  Context& context = module_->context();
  std::vector<MetadataId> sources;
  for (std::string_view name : {"p", "q", "r"}) {
    Metadata metadata;
    metadata.op_name = context.strings.Intern(name);
    sources.push_back(context.metadata.Intern(metadata));
  }
  MetadataId merged = context.metadata.Merge(context.metadata.Merge(sources[0], sources[1]), sources[2]);
  merged = context.metadata.Merge(merged, sources[0]);
  EXPECT_EQ(context.metadata.Sources(merged), sources);
}

TEST_F(AnnotationsTest, ReplacingCarriesThem) {
  Replace(*module_, Id("c"), Id("b"));
  EXPECT_FALSE(Id("c").valid());
  EXPECT_EQ(Names(module_->instruction(Id("b"))), "f/b@2 f/c@1 ");
  EXPECT_EQ(module_->entry().root().operand(0).name(), "b");
}

TEST_F(AnnotationsTest, TheFirstThatHasSomeGivesTheName) {
  Builder builder(module_.get(), module_->entry().id());
  const InstructionId sources[] = {Id("d"), Id("c"), Id("b"), Id("c")};
  AnnotationScope scope(&builder, sources);
  const InstructionId made = *builder.Unary(Opcode::kAbs, Id("a"));
  EXPECT_EQ(Names(module_->instruction(made)), "f/c@1 f/b@2 ");
  const Metadata m = module_->instruction(made).metadata();
  EXPECT_EQ(module_->context().str(m.op_name), "f/c");
}

TEST_F(AnnotationsTest, CarryingTwiceIsCarryingOnce) {
  MergeMetadata(*module_, Id("b"), Id("c"));
  const MetadataId once = module_->record(Id("c")).metadata;
  MergeMetadata(*module_, Id("b"), Id("c"));
  EXPECT_EQ(module_->record(Id("c")).metadata, once);
}

TEST_F(AnnotationsTest, TextRoundTrips) {
  Replace(*module_, Id("b"), Id("a"));
  Replace(*module_, Id("c"), Id("a"));
  WriteMetadataSources(*module_);
  const std::string text = Text(*module_);
  EXPECT_NE(text.find("frontend_attributes={hlokit.metadata_sources="), std::string::npos) << text;
  // `c`, and with it frame 1 alone, are on no instruction as its own metadata.
  const absl::StatusOr<std::unique_ptr<Module>> read = ParseModuleText(text);
  ASSERT_TRUE(read.ok()) << read.status() << text;
  EXPECT_EQ(Text(**read), text);
  module_ = std::make_unique<Module>((*read)->Clone());
  ReadMetadataSources(*module_);
  EXPECT_EQ(Text(*module_).find("hlokit.metadata_sources"), std::string::npos);
  EXPECT_EQ(Names(module_->instruction(Id("a"))), "f/b@2 f/c@1 ");
  WriteMetadataSources(*module_);
  EXPECT_EQ(Text(*module_), text);
}

TEST_F(AnnotationsTest, MalformedTextIsAnAttributeLikeAnyOther) {
  for (const std::string_view table : {"{}", "{origins={}", "\"x\"", "{origins={{op_name=\"a\"}} frames={{parent=1}}}",
                                       "{origins={{op_name=\"a\" stack_frame_id=2}}}", "{origins={{op_name=\"a\"}}}"}) {
    const std::string text =
        "HloModule m, frontend_attributes={hlokit.metadata_sources=" + std::string(table) +
        "}\nENTRY e { ROOT a = f32[] parameter(0), frontend_attributes={hlokit.metadata_sources=\"0-9\"} }";
    const absl::StatusOr<std::unique_ptr<Module>> read = ParseModuleText(text);
    if (!read.ok()) continue;  // the braces do not balance
    ReadMetadataSources(**read);
    EXPECT_NE(Text(**read).find("{hlokit.metadata_sources=\"0-9\"}"), std::string::npos) << table;
  }
}

}  // namespace
}  // namespace hlokit
