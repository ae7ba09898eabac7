// SPDX-License-Identifier: Apache-2.0
#include "check/comparison/engine_ulps.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "ir/core/str_cat.h"
#include "ir/graph/context.h"

namespace hlokit::interp {
namespace {

TEST(EngineUlpsTest, OpcodesWithoutARowAreExact) {
  EXPECT_EQ(kEngineUlpsOf[static_cast<size_t>(Opcode::kAdd)].ulps, 0);
  EXPECT_EQ(kEngineUlpsOf[static_cast<size_t>(Opcode::kDot)].ulps, 0);
  EXPECT_EQ(kEngineUlpsOf[static_cast<size_t>(Opcode::kTanh)].ulps, 1);
}

TEST(EngineUlpsTest, UnitsOfTheElementAndOfTheLargestNumber) {
  Context context;
  Literal sum = Literal::Zeros(context.shapes.Scalar(ElementType::kF64));
  Literal terms = Literal::Zeros(context.shapes.Array(ElementType::kF64, {2}));
  terms.values<double>()[0] = 1024;
  EXPECT_TRUE(EngineTolerance(Opcode::kAdd, {}, sum).is_exact());
  EXPECT_EQ(EngineTolerance(Opcode::kExp, {}, sum).ulp, 1);
  EXPECT_EQ(EngineTolerance(Opcode::kReduce, {&terms, 1}, sum).absolute, 8 * 1024 * 0x1p-52);
}

TEST(EngineUlpsTest, ThePageShowsEveryRow) {
  std::ifstream file(HLOKIT_SOURCE_DIR "/docs/interpreter.md");
  std::ostringstream page;
  page << file.rdbuf();
  for (const EngineUlps& row : kEngineUlps) {
    EXPECT_NE(page.str().find(StrCat("`", ToString(row.opcode), "`")), std::string::npos) << ToString(row.opcode);
  }
}

}  // namespace
}  // namespace hlokit::interp
