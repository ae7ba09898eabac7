// SPDX-License-Identifier: Apache-2.0
// The size of the pieces in which threads claim work. It depends on shapes alone, so that results do not depend on the
// number of threads.
#ifndef HLOKIT_INTERP_COMPILED_PROGRAMS_PIECE_SIZE_H_
#define HLOKIT_INTERP_COMPILED_PROGRAMS_PIECE_SIZE_H_

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hlokit::interp::compiled {

// Bytes that a piece reads and writes, at least: claiming it costs less than a twentieth of its time.
constexpr int64_t kPieceBytes = 32 * 1024;

// Returns the number of items, each of which reads and writes `bytes`, that are a piece: at least 1, at most `count`.
constexpr int64_t ItemsOfPiece(int64_t bytes, int64_t count) {
  const int64_t items = (kPieceBytes + std::max<int64_t>(bytes, 1) - 1) / std::max<int64_t>(bytes, 1);
  return std::clamp<int64_t>(items, 1, std::max<int64_t>(count, 1));
}

// Returns the number of pieces of `items` items, the last of which may have less.
constexpr int64_t PieceCount(int64_t count, int64_t items) { return (count + items - 1) / items; }

// Returns the cost of an item for RunContext::ParallelFor, in ns: no more than lets it take whole pieces at a time.
constexpr double CostInPieces(double cost, int64_t bytes) {
  constexpr double kLeastTime = 3e4;  // for which RunContext::ParallelFor gives a thread work
  return std::min(cost, kLeastTime / static_cast<double>(ItemsOfPiece(bytes, std::numeric_limits<int64_t>::max())));
}

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PROGRAMS_PIECE_SIZE_H_
