// SPDX-License-Identifier: Apache-2.0
#include "passes/annotations/annotation_report.h"

#include <gtest/gtest.h>

#include "tests/unit/parsed_module.h"

namespace hlokit {
namespace {

TEST(AnnotationReportTest, ScopesHaveNumbersBeforeAndAfterThePasses) {
  const auto module = Parse(R"(HloModule m
    ENTRY e {
      x = f32[10] parameter(0), metadata={op_name="x"}
      unused = f32[10] exponential(x), metadata={op_name="s/t/exp"}
      ROOT n = f32[10] negate(x), metadata={op_name="s/neg"}
    })");
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse("dce");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const absl::StatusOr<AnnotationReport> report = ReportAnnotations(&*pipeline, PipelineOptions(), module.get());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->before.instructions, 3);
  EXPECT_EQ(report->after.instructions, 2);
  ASSERT_FALSE(report->scopes.empty());
  EXPECT_EQ(report->scopes[0].depth, 0);
  EXPECT_EQ(report->scopes[0].before.instructions, 3);
  EXPECT_EQ(report->scopes[0].after.instructions, 2);
  bool has_removed = false;
  for (const ScopeChange& scope : report->scopes) {
    has_removed |= scope.name == "t" && scope.before.instructions == 1 && scope.after.instructions == 0;
  }
  EXPECT_TRUE(has_removed);
  EXPECT_TRUE(report->missing.empty());
}

}  // namespace
}  // namespace hlokit
