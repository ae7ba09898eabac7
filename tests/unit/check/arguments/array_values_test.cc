// SPDX-License-Identifier: Apache-2.0
#include "check/arguments/array_values.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/parsed_module.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::interp {
namespace {

class ArrayValuesTest : public ::testing::Test {
 protected:
  std::optional<std::vector<Literal>> Read(const std::string& path, const std::vector<LeafNames>& names) {
    issues_.clear();
    const std::vector<Shape> shapes = {module_->entry().parameter(0).shape(), module_->entry().parameter(1).shape()};
    return ReadArrayValues(path, names, shapes, &module_->context().shapes, {1, 0, 1}, "argument", &issues_);
  }
  Literal ValueOf(float first) {
    Literal value = Literal::Zeros(module_->entry().parameter(0).shape());
    value.values<float>()[0] = first;
    return value;
  }

  const std::unique_ptr<Module> module_ = Parse(R"(HloModule m
    ENTRY e {
      p = f32[2] parameter(0), metadata={op_name="params['w'][0]"}
      q = f32[2] parameter(1)
      ROOT a = f32[2] add(p, q)
    })");
  const TemporaryFolder folder_;
  std::vector<FileIssue> issues_;
};

TEST_F(ArrayValuesTest, LeavesHaveSeveralNames) {
  const std::vector<LeafNames> names = ArgumentNames(*module_);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0], (LeafNames{"p", "params['w'][0]", "params.w.0", "arg0"}));
  EXPECT_EQ(names[1], (LeafNames{"q", "arg1"}));
}

TEST_F(ArrayValuesTest, ArraysAreFoundByName) {
  const std::string path = (folder_.path() / "values.npz").string();
  ASSERT_TRUE(WriteArrayValues(path, {ValueOf(3), ValueOf(4)}, 1).ok());
  const std::optional<std::vector<Literal>> read = Read(path, {{"result1"}, {"result0"}});
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)[0].values<float>()[0], 4);
  EXPECT_EQ((*read)[1].values<float>()[0], 3);
  EXPECT_TRUE(issues_.empty());
}

TEST_F(ArrayValuesTest, IssuesSayWhichFile) {
  const std::string path = (folder_.path() / "values.npz").string();
  EXPECT_FALSE(Read(path, {{"a"}, {"b"}}));
  ASSERT_EQ(issues_.size(), 1u);
  EXPECT_EQ(issues_[0].kind, FileIssue::Kind::kUnreadable);
  EXPECT_EQ(issues_[0].where, path);
  ASSERT_TRUE(WriteArrayValues(path, {ValueOf(3), ValueOf(4)}, 1).ok());
  EXPECT_FALSE(Read(path, {{"result0"}, {"b"}}));
  ASSERT_EQ(issues_.size(), 1u);
  EXPECT_EQ(issues_[0].kind, FileIssue::Kind::kRejected);
  EXPECT_NE(issues_[0].message.find("there is no array `b` for argument 1, f32[2]"), std::string::npos);
}

}  // namespace
}  // namespace hlokit::interp
