// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/opcode_set.h"

#include <gtest/gtest.h>

#include "ir/ops/opcode_table.h"

namespace hlokit {
namespace {

TEST(OpcodeSetTest, ContainsItsOpcodesAlone) {
  constexpr OpcodeSet kSet = {static_cast<Opcode>(0), Opcode::kDot, Opcode::kUnknown};
  for (size_t i = 0; i <= kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(kSet.Contains(opcode), i == 0 || opcode == Opcode::kDot || opcode == Opcode::kUnknown) << i;
  }
}

TEST(OpcodeTableTest, HandlersAreNullButForTheRows) {
  using Handler = int (*)();
  static constexpr OpcodeRow<Handler> kRows[] = {{Opcode::kAdd, [] { return 1; }}, {Opcode::kTuple, [] { return 2; }}};
  constexpr auto kHandlers = MakeOpcodeHandlers<Handler>(kRows);
  for (size_t i = 0; i <= kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const Handler handler = kHandlers[i];
    const int value = handler == nullptr ? 0 : handler();
    EXPECT_EQ(value, opcode == Opcode::kAdd ? 1 : opcode == Opcode::kTuple ? 2 : 0) << i;
  }
}

}  // namespace
}  // namespace hlokit
