// SPDX-License-Identifier: Apache-2.0
// The pieces in which threads claim work. Their size depends on shapes alone, so that results do not depend on the
// number of threads.
#ifndef HLOKIT_INTERP_COMPILED_PROGRAMS_PIECES_H_
#define HLOKIT_INTERP_COMPILED_PROGRAMS_PIECES_H_

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hlokit::interp::compiled {

// Pieces of the same size, but for the last one.
struct Pieces {
  int64_t size = 1;
  int64_t count = 1;
  int64_t last = 1;  // size of the last one

  constexpr Pieces() = default;
  constexpr Pieces(int64_t total, int64_t piece)
      : size(piece), count((total + piece - 1) / piece), last(total - (count - 1) * piece) {}
  constexpr int64_t SizeOf(int64_t i) const { return i + 1 == count ? last : size; }
};

// Bytes that a piece reads and writes, at least: claiming it costs less than a twentieth of its time.
constexpr int64_t kPieceBytes = 32 * 1024;

// Returns the number of items, each of which reads and writes `bytes`, that are a piece: at least 1, at most `count`.
constexpr int64_t ItemsOfPiece(int64_t bytes, int64_t count) {
  const int64_t items = (kPieceBytes + std::max<int64_t>(bytes, 1) - 1) / std::max<int64_t>(bytes, 1);
  return std::clamp<int64_t>(items, 1, std::max<int64_t>(count, 1));
}

// Returns the cost of an item for RunContext::ParallelFor, in ns: no more than lets it take whole pieces at a time.
constexpr double CostInPieces(double cost, int64_t bytes) {
  constexpr double kMinTime = 3e4;  // for which RunContext::ParallelFor gives a thread work
  return std::min(cost, kMinTime / static_cast<double>(ItemsOfPiece(bytes, std::numeric_limits<int64_t>::max())));
}

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_PROGRAMS_PIECES_H_
