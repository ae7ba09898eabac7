// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/schema.h"

#include <gtest/gtest.h>

#include "tracer/graph/op.h"

namespace hlokit::lazy {
namespace {

TEST(SchemaTest, ReadsNamesTypesAndDefaults) {
  const absl::StatusOr<Schema> s =
      ParseSchema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->full_name(), "aten::add.Tensor");
  ASSERT_EQ(s->args.size(), 3u);
  EXPECT_EQ(s->positional, 2);
  EXPECT_EQ(s->args[2].name, "alpha");
  EXPECT_EQ(s->args[2].type, ArgType::kScalar);
  EXPECT_EQ(s->args[2].default_value.get<Scalar>()->ToInt(), 1);
}

TEST(SchemaTest, SeesWrittenArgumentsListsAndSeveralResults) {
  const absl::StatusOr<Schema> s =
      ParseSchema("aten::f(Tensor(a!) self, Tensor?[] indices, int[2] kernel=3) -> (Tensor values, Tensor indices)");
  ASSERT_TRUE(s.ok());
  EXPECT_TRUE(s->args[0].written);
  EXPECT_TRUE(s->args[1].optional_items);
  EXPECT_EQ(s->args[2].default_value.get<IntList>()->size(), 2u);
  EXPECT_EQ(s->outputs, 2);
}

TEST(SchemaTest, RefusesWhatIsNoSchema) {
  EXPECT_FALSE(ParseSchema("aten::add").ok());
  EXPECT_FALSE(ParseSchema("aten::add(Widget w) -> Tensor").ok());
}

TEST(SchemaTest, EveryRowOfTheTableIsOne) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const OpInfo& info = InfoOf(static_cast<Op>(i));
    absl::StatusOr<Schema> s = ParseSchema(info.schema_text);
    ASSERT_TRUE(s.ok()) << info.schema_text << ": " << s.status().message();
    EXPECT_TRUE(ParseConstraints(info.constraints, &*s).ok()) << info.schema_text << ": " << info.constraints;
  }
}

TEST(SchemaTest, ConstraintsAreNotedWithTheirArguments) {
  absl::StatusOr<Schema> schema = ParseSchema("aten::f(Tensor self, int dim, Tensor index, Tensor src) -> Tensor");
  ASSERT_TRUE(schema.ok());
  ASSERT_TRUE(ParseConstraints("self:2+ index:0-1,int,rank src:3,type", &*schema).ok());
  EXPECT_EQ(schema->args[0].constraint.min_rank, 2);
  EXPECT_EQ(schema->args[0].constraint.max_rank, ArgConstraint::kAnyRank);
  EXPECT_FALSE(schema->args[0].constraint.integer);
  EXPECT_EQ(schema->args[2].constraint.max_rank, 1);
  EXPECT_TRUE(schema->args[2].constraint.integer && schema->args[2].constraint.rank_of_first);
  EXPECT_EQ(schema->args[3].constraint.min_rank, 3);
  EXPECT_EQ(schema->args[3].constraint.max_rank, 3);
  EXPECT_TRUE(schema->args[3].constraint.type_of_first);
  for (const char* wrong : {"self", "other:2", "self:x", "self:2-", "self:2*", "self:2-3x"}) {
    EXPECT_FALSE(ParseConstraints(wrong, &*schema).ok()) << wrong;
  }
}

TEST(SchemaTest, ArgumentsAsText) {
  ArgSpec spec;
  spec.name = "dim";
  spec.type = ArgType::kInt;
  EXPECT_EQ(ParseArgument(spec, "-1")->get<Scalar>()->ToInt(), -1);
  EXPECT_FALSE(ParseArgument(spec, "1.5").ok());
  EXPECT_FALSE(ParseArgument(spec, "none").ok());
  spec.type = ArgType::kIntList;
  EXPECT_EQ(ParseArgument(spec, "(1, -2)")->get<IntList>()->at(1), -2);
  spec.type = ArgType::kDtype;
  EXPECT_EQ(*ParseArgument(spec, "bf16")->get<ElementType>(), ElementType::kBF16);
}

}  // namespace
}  // namespace hlokit::lazy
