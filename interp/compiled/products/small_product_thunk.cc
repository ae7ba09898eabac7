// SPDX-License-Identifier: Apache-2.0
// Products that are faster without the library: with few rows, which are bound by reading the right operand, and of
// matrices that stay in the cache.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/products/product_pieces.h"
#include "interp/compiled/products/skinny_product.h"
#include "interp/compiled/products/tile_product.h"

namespace hlokit::interp::compiled {

void BatchParams::SetArrays(const MatrixProduct& p) {
  batch = p.batch;
  batches = p.batches;
  bytes[0] = BytesOf(p.lhs_type);
  bytes[1] = BytesOf(p.rhs_type);
  bytes[2] = BytesOf(p.result_type);
  lhs_row = p.lhs.row * bytes[0];
  lhs_column = p.lhs.column * bytes[0];
  rhs_column = p.rhs.column * bytes[1];
  result_row = p.n * bytes[2];
  result_column = bytes[2];
}

int64_t RowsOfPiece(const MatrixProduct& p) {
  constexpr int64_t kMultiple = 4;
  const int64_t pieces = (p.m + kRowsOfPiece - 1) / kRowsOfPiece;
  return std::min(p.m, RoundUp((p.m + pieces - 1) / pieces, kMultiple));
}

int64_t ColumnsOfPiece(const MatrixProduct& p) {
  constexpr int64_t kColumns = 256;
  constexpr int64_t kManyColumns = 512;
  constexpr double kWork = 4e7;
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  int64_t columns = p.n;
  if (p.batches == 1 && p.m <= kRowsOfPiece) {
    if (p.n >= kManyColumns && p.m * p.k >= 4096) {
      columns = std::max(kColumns, RoundUp(p.n / 16, 64));
    } else if (p.n >= 128 && work >= kWork) {
      columns = RoundUp((p.n + 1) / 2, 64);
    }
  }
  return columns;
}

namespace {

struct SkinnyParams : BatchParams {
  SkinnyProduct product;
  SkinnyProductFunction function = nullptr;
  int64_t batches_at_once = 1;  // whose partial sums are in memory
  Pieces terms;
  Pieces columns;
  // Rows of the left operand are copied unless they are contiguous f32.
  bool lhs_copied = false;

  int64_t scratch_bytes() const {
    return lhs_copied ? AlignedBytes(product.m * product.k * int64_t{sizeof(float)}) : 0;
  }
  int64_t parts_size() const { return product.parts() * product.part_size(); }
  int64_t parts_bytes() const { return parts_size() * int64_t{sizeof(float)}; }
};

void CopyLeft(const SkinnyParams& p, const std::byte* from, float* to) {
  for (int64_t i = 0; i < p.product.m; ++i) {
    const std::byte* at = from + i * p.lhs_row;
    for (int64_t c = 0; c < p.product.k; ++c, at += p.lhs_column) {
      if (p.bytes[0] == 2) {
        uint16_t half;
        std::memcpy(&half, at, sizeof(half));
        *to++ = std::bit_cast<float>(uint32_t{half} << 16);
      } else {
        std::memcpy(to++, at, sizeof(float));
      }
    }
  }
}

// Computes products [first, first + count) of the batch. `parts`: memory for their partial sums, if there are any.
void RunSkinnyBatches(const SkinnyParams& p, int64_t first, int64_t count, float* parts, const std::byte* const* in,
                      std::byte* const* out, RunContext& context) {
  const int64_t each = p.terms.count * p.columns.count;
  context.ParallelFor(count * each, p.cost, [&](int64_t begin, int64_t end) {
    std::byte* const scratch = ThreadScratch(context, p.scratch_bytes(), "a product");
    if (scratch == nullptr) return;
    int64_t copied = -1;
    for (int64_t piece = begin; piece < end; ++piece) {
      if (context.ShouldStop()) return;
      int64_t offsets[3] = {};
      p.AddOffsets(first + piece / each, offsets);
      const float* lhs = reinterpret_cast<const float*>(in[0] + offsets[0]);
      if (p.lhs_copied) {
        if (copied != offsets[0]) CopyLeft(p, in[0] + offsets[0], reinterpret_cast<float*>(scratch));
        copied = offsets[0];
        lhs = reinterpret_cast<const float*>(scratch);
      }
      const int64_t column = piece % each / p.terms.count, term = piece % p.terms.count;
      SkinnyRange range;
      range.columns_begin = column * p.columns.size;
      range.columns_end = range.columns_begin + p.columns.SizeOf(column);
      range.terms_begin = term * p.terms.size;
      range.terms_end = range.terms_begin + p.terms.SizeOf(term);
      p.function(p.product, lhs, in[1] + offsets[1], reinterpret_cast<float*>(out[0] + offsets[2]),
                 parts == nullptr ? nullptr : parts + piece / each * p.parts_size(), range);
    }
  });
  if (parts == nullptr || context.failed()) return;
  constexpr int64_t kColumns = 1024;
  const Pieces columns(p.product.n, kColumns);
  const double cost = 0.2 * static_cast<double>(p.product.parts() * p.product.m * std::min(p.product.n, kColumns));
  context.ParallelFor(count * columns.count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t offsets[3] = {};
      p.AddOffsets(first + piece / columns.count, offsets);
      const int64_t column = piece % columns.count;
      AddSkinnyParts(p.product, parts + piece / columns.count * p.parts_size(),
                     reinterpret_cast<float*>(out[0] + offsets[2]), column * kColumns,
                     column * kColumns + columns.SizeOf(column));
    }
  });
}

void RunSkinny(const SkinnyParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  if (p.parts_size() == 0) return RunSkinnyBatches(p, 0, p.batches, nullptr, in, out, context);
  Scratch memory(context, p.batches_at_once * p.parts_bytes());
  if (memory.data() == nullptr) return;
  for (int64_t first = 0; first < p.batches && !context.failed(); first += p.batches_at_once) {
    const int64_t count = std::min(p.batches_at_once, p.batches - first);
    RunSkinnyBatches(p, first, count, memory.as<float>(), in, out, context);
  }
}

struct TileParams : PiecesParams {
  TileProduct product;  // of all rows and columns
  TileProductFunction function = nullptr;
  int64_t scratch = 0;  // bytes
};

void RunTiles(const TileParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  context.ParallelFor(p.count(), p.cost, [&](int64_t begin, int64_t end) {
    std::byte* const scratch = ThreadScratch(context, p.scratch, "a product");
    if (scratch == nullptr) return;
    p.ForEach(begin, end, context, [&](int64_t row, int64_t column, const int64_t* offsets) {
      TileProduct piece = p.product;
      piece.m = p.rows.SizeOf(row);
      piece.n = p.columns.SizeOf(column);
      p.function(piece, reinterpret_cast<const float*>(in[0] + offsets[0]),
                 reinterpret_cast<const float*>(in[1] + offsets[1]), reinterpret_cast<float*>(out[0] + offsets[2]),
                 reinterpret_cast<float*>(scratch));
    });
  });
}

}  // namespace

// Few rows: the right operand is read as it is. The left one must be small. If the contraction is contiguous, the
// library is faster with more rows.
bool IsSkinny(const MatrixProduct& p) {
  const auto is_float = [](LibraryType type) { return type == LibraryType::kF32 || type == LibraryType::kBF16; };
  constexpr int64_t kMaxLeft = int64_t{1} << 18;
  constexpr int64_t kMaxRowsOfContiguousSums = 8;
  return p.m <= (p.rhs.column == 1 ? kMaxSkinnyRows : kMaxRowsOfContiguousSums) && 4 * p.m <= p.n &&
         p.m * p.k <= kMaxLeft && is_float(p.lhs_type) && is_float(p.rhs_type) && p.result_type == LibraryType::kF32;
}

ProductKernel MakeSkinnyProduct(const MatrixProduct& p) {
  auto params = std::make_unique<SkinnyParams>();
  params->SetArrays(p);
  params->lhs_copied = p.lhs.column != 1 || p.lhs_type != LibraryType::kF32;
  SkinnyProduct& product = params->product;
  product.m = p.m;
  product.n = p.n;
  product.k = p.k;
  product.bf16 = p.rhs_type == LibraryType::kBF16;
  product.rows_contiguous = p.rhs.column == 1;
  product.lhs_row = params->lhs_copied ? p.k : p.lhs.row;
  product.rhs_stride = p.rhs.column == 1 ? p.rhs.row : p.rhs.column;
  product.result_row = p.n;
  params->function = SkinnyProductOf();
  // A piece reads 256 KB at least, of whole rows if there are several parts.
  constexpr int64_t kBytes = int64_t{256} << 10;
  constexpr int64_t kPieces = 8;
  const auto size_of = [&](int64_t total, int64_t bytes, int64_t pieces, int64_t multiple) {
    const int64_t wanted = std::max(kBytes / std::max<int64_t>(bytes, 1) + 1, (total + pieces - 1) / pieces);
    return std::min(total, RoundUp(wanted, multiple));
  };
  const int64_t depth = product.parts() == 0 ? p.k : size_of(p.k, p.n * params->bytes[1], 2 * kPieces, kSkinnyDepth);
  params->terms = Pieces(p.k, depth);
  const int64_t pieces = std::max<int64_t>(kPieces / params->terms.count, 1);
  params->columns = Pieces(p.n, size_of(p.n, depth * params->bytes[1], pieces, 64));
  params->cost = 0.03 * static_cast<double>(params->columns.size) * static_cast<double>(depth * params->bytes[1]);
  ProductKernel result;
  result.thread_scratch = params->scratch_bytes();
  if (params->parts_size() > 0) {
    // So many products keep all threads at work.
    constexpr int64_t kMaxSharedScratch = int64_t{64} << 20;
    if (params->parts_bytes() > p.max_shared_scratch) return result;
    const int64_t at_once = std::min(kMaxSharedScratch, p.max_shared_scratch) / params->parts_bytes();
    params->batches_at_once = std::clamp<int64_t>(at_once, 1, p.batches);
    result.shared_scratch = params->batches_at_once * params->parts_bytes();
  }
  result.kernel = kKernel<RunSkinny>;
  result.params = std::move(params);
  return result;
}

ProductKernel MakeTileProduct(const MatrixProduct& p) {
  ProductKernel result;
  const auto is_float = [](LibraryType type) { return type == LibraryType::kF32; };
  if (!is_float(p.lhs_type) || !is_float(p.rhs_type) || !is_float(p.result_type)) return result;
  // Measured. Few rows do not outweigh transposing the right operand, or its reads if it comes from memory. The
  // library, which packs it, is faster if it is large, unless there are few rows for that.
  constexpr int64_t kMinRows = 5;
  constexpr int64_t kMinRowsOfTransposed = 64;
  constexpr int64_t kMinColumns = 16;
  constexpr int64_t kMaxWeights = int64_t{1} << 15;
  constexpr int64_t kMaxLargeWeights = int64_t{5} << 17;
  constexpr int64_t kMaxRowsOfLargeWeights = 16;
  const int64_t size = p.n * p.k;
  if (p.m < (p.rhs.column == 1 ? kMinRows : kMinRowsOfTransposed) || p.n < kMinColumns) return result;
  if (size > (p.m <= kMaxRowsOfLargeWeights ? kMaxLargeWeights : kMaxWeights)) return result;
  if (p.reused && p.batches == 1 && size > kMaxWeights) return result;
  auto params = std::make_unique<TileParams>();
  params->function = TileProductOf();
  if (params->function == nullptr) return result;
  params->SetArrays(p);
  params->rows = Pieces(p.m, RowsOfPiece(p));
  params->columns = Pieces(p.n, ColumnsOfPiece(p));
  TileProduct& product = params->product;
  product.m = params->rows.size;
  product.n = params->columns.size;
  product.k = p.k;
  product.lhs_row = p.lhs.row;
  product.lhs_column = p.lhs.column;
  product.rhs_row = p.rhs.row;
  product.rhs_column = p.rhs.column;
  product.result_row = p.n;
  TileProduct last = product;
  last.n = params->columns.last;
  params->scratch = std::max(product.scratch_size(), last.scratch_size()) * int64_t{sizeof(float)};
  params->cost = 8e-3 * static_cast<double>(product.m * product.n) * static_cast<double>(p.k);
  result.thread_scratch = params->scratch;
  result.kernel = kKernel<RunTiles>;
  result.params = std::move(params);
  return result;
}

}  // namespace hlokit::interp::compiled
