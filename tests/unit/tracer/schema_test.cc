#include "tracer/schema.h"

#include <gtest/gtest.h>

#include "tracer/op.h"

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
    const absl::StatusOr<Schema> s = ParseSchema(InfoOf(static_cast<Op>(i)).schema_text);
    EXPECT_TRUE(s.ok()) << InfoOf(static_cast<Op>(i)).schema_text << ": " << s.status().message();
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
