// SPDX-License-Identifier: Apache-2.0
#include "interp/processor/tile_transpose.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace hlokit::interp {
namespace {

template <typename T>
void ExpectTransposed() {
  constexpr int64_t kFrom = 21, kTo = 19;
  std::vector<T> from(16 * kFrom), to(16 * kTo, T{1});
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(7 * i + 3);
  TransposeTile(to.data(), kTo, from.data(), kFrom);
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < kTo; ++j) {
      EXPECT_EQ(to[static_cast<size_t>(i * kTo + j)], j < 16 ? from[static_cast<size_t>(j * kFrom + i)] : T{1});
    }
  }
}

TEST(TileTransposeTest, ElementsOfAnySize) {
  ExpectTransposed<uint8_t>();
  ExpectTransposed<uint16_t>();
  ExpectTransposed<uint32_t>();
  ExpectTransposed<uint64_t>();
}

}  // namespace
}  // namespace hlokit::interp
