// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/piece_size.h"

#include <gtest/gtest.h>

namespace hlokit::interp::compiled {
namespace {

TEST(PieceSizeTest, APieceHasAtLeastItsBytesOrIsAll) {
  for (const int64_t bytes : {1, 3, 17, 64, 1000, 32767, 32768, 32769, 1 << 30}) {
    for (const int64_t count : {0, 1, 2, 7, 1000, 100'000}) {
      const int64_t items = ItemsOfPiece(bytes, count);
      EXPECT_GE(items, 1);
      EXPECT_TRUE(items * bytes >= kPieceBytes || items >= count) << items << " of " << count << " items";
      // No larger than needed.
      EXPECT_TRUE(items == 1 || (items - 1) * bytes < kPieceBytes) << items << " of " << bytes << " bytes";
      // Pieces cover all items, and none is empty.
      const int64_t pieces = PieceCount(count, items);
      EXPECT_GE(pieces * items, count);
      EXPECT_LT((pieces - 1) * items, std::max<int64_t>(count, 1));
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
