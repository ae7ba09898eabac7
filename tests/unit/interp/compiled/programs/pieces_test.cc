// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/programs/pieces.h"

#include <gtest/gtest.h>

namespace hlokit::interp::compiled {
namespace {

TEST(PiecesTest, APieceHasAtLeastItsBytesOrIsAll) {
  for (const int64_t bytes : {1, 3, 17, 64, 1000, 32767, 32768, 32769, 1 << 30}) {
    for (const int64_t count : {0, 1, 2, 7, 1000, 100'000}) {
      const int64_t items = ItemsOfPiece(bytes, count);
      EXPECT_GE(items, 1);
      EXPECT_TRUE(items * bytes >= kPieceBytes || items >= count) << items << " of " << count << " items";
      // No larger than needed.
      EXPECT_TRUE(items == 1 || (items - 1) * bytes < kPieceBytes) << items << " of " << bytes << " bytes";
      // Pieces cover all items, and none is empty.
      const Pieces pieces(count, items);
      EXPECT_GE(pieces.count * items, count);
      EXPECT_LT((pieces.count - 1) * items, std::max<int64_t>(count, 1));
      if (pieces.count > 0) {
        EXPECT_EQ((pieces.count - 1) * pieces.SizeOf(0) + pieces.SizeOf(pieces.count - 1), count);
      }
    }
  }
}

TEST(PiecesTest, CheapAndCostlyItemsAreClaimedInPieces) {
  constexpr double kMinTime = 3e4;  // ns, of what a thread is given
  for (const int64_t bytes : {1, 100, 32768, 1 << 24}) {
    for (const double cost : {0.01, 1.0, 1e3, 1e9}) {
      const double used = CostInPieces(cost, bytes);
      EXPECT_LE(used, cost);
      const int64_t items = std::max<int64_t>(1, static_cast<int64_t>(kMinTime / used + 0.5));
      EXPECT_GE(items * bytes, kPieceBytes) << bytes << " bytes, " << cost << " ns";
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
