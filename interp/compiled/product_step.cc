// SPDX-License-Identifier: Apache-2.0
// Dots as products of matrices: pieces of rows, or of columns where there are few rows. The right operand is converted
// to the layout of the library where its reads outweigh that.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/compiled/engine_modules.h"
#include "interp/compiled/library_step.h"
#include "interp/exact/kernels/contractions/strided_source.h"
#include "interp/exact/kernels/emit.h"
#include "interp/exact/loop_nest.h"
#include "interp/exact/program_builder.h"
#include "interp/exact/run_context.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

struct Pieces {
  int64_t size = 1;  // of each but the last
  int64_t count = 1;
  int64_t last = 1;

  Pieces() = default;
  Pieces(int64_t total, int64_t piece) : size(piece), count((total + piece - 1) / piece) {
    last = total - (count - 1) * size;
  }
  int64_t SizeOf(int64_t i) const { return i + 1 == count ? last : size; }
};

struct ProductPlan : ThunkParams {
  // By whether the piece is the last one of rows, and of columns. Null where there is none of that size.
  std::unique_ptr<LibraryPrimitive> primitives[2][2];
  Pieces rows;
  Pieces columns;
  LoopNest batch;  // operands: left, right, result
  int64_t batches = 1;
  int64_t lhs_row = 0;  // strides, in elements
  int64_t rhs_column = 0;
  int64_t result_row = 0;
  int64_t scratch = 0;                 // bytes
  bool packed = false;                 // the right operand
  std::vector<int64_t> packed_offset;  // by piece of columns
  int64_t packed_bytes = 0;
  double cost = 1;  // of a piece, in ns

  const LibraryPrimitive& At(int64_t row, int64_t column) const {
    return *primitives[row + 1 == rows.count][column + 1 == columns.count];
  }
};

const std::byte* AtElement(const std::byte* data, int64_t offset) { return data + offset * int64_t{sizeof(float)}; }

void RunProduct(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const ProductPlan*>(plan);
  std::byte* packed = nullptr;
  std::optional<Scratch> memory;
  std::atomic<bool> ok = true;
  if (p.packed) {
    memory.emplace(context, p.packed_bytes);
    packed = memory->data();
    if (packed == nullptr) return;
    context.ParallelFor(p.columns.count, 1e5, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        std::byte* const scratch = ThreadScratch(p.scratch);
        if (scratch == nullptr ||
            !p.At(0, c).Pack(LibraryRole::kWeights, AtElement(in[1], c * p.columns.size * p.rhs_column),
                             packed + p.packed_offset[static_cast<size_t>(c)], scratch)) {
          ok = false;
        }
      }
    });
  }
  const int64_t each = p.rows.count * p.columns.count;
  context.ParallelFor(p.batches * each, p.cost, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      if (context.ShouldStop()) return;
      const int64_t column = item % each / p.rows.count;
      const int64_t row = item % p.rows.count;
      int64_t offsets[3] = {};
      int64_t rest = item / each;
      for (int d = p.batch.rank(); d-- > 0;) {
        for (int a = 0; a < 3; ++a) offsets[a] += rest % p.batch.size(d) * p.batch.stride(d, a);
        rest /= p.batch.size(d);
      }
      const std::byte* const lhs = AtElement(in[0], offsets[0] + row * p.rows.size * p.lhs_row);
      const std::byte* const rhs = packed != nullptr
                                       ? packed + p.packed_offset[static_cast<size_t>(column)]
                                       : AtElement(in[1], offsets[1] + column * p.columns.size * p.rhs_column);
      const std::byte* const result =
          AtElement(out[0], offsets[2] + row * p.rows.size * p.result_row + column * p.columns.size);
      std::byte* const scratch = ThreadScratch(p.scratch);
      if (scratch == nullptr || !p.At(row, column)
                                     .Run(const_cast<std::byte*>(lhs), const_cast<std::byte*>(rhs),
                                          const_cast<std::byte*>(result), scratch)) {
        ok = false;
      }
    }
  });
  if (!ok) context.Fail("oneDNN cannot compute a product");
}

// One operand as a batch of matrices with these strides.
struct Matrix {
  View view;
  Dims batch;        // strides
  int64_t line = 0;  // of rows or columns of the result
  int64_t contracted = 0;
  int64_t lines = 1;
  int64_t depth = 1;
};

// Returns false if rows or the contraction have no single stride.
bool Split(const View& view, absl::Span<const int64_t> batch, absl::Span<const int64_t> contracting, Matrix* matrix) {
  const Dims strides = StridesOf(view);
  std::vector<bool> free(strides.size(), true);
  matrix->view = view;
  matrix->batch.clear();
  for (int64_t d : batch) {
    matrix->batch.push_back(strides[static_cast<size_t>(d)]);
    free[static_cast<size_t>(d)] = false;
  }
  DimGroup contracted, lines;
  for (int64_t d : contracting) {
    contracted.Add(view.dims()[static_cast<size_t>(d)], strides[static_cast<size_t>(d)]);
    free[static_cast<size_t>(d)] = false;
  }
  for (size_t d = 0; d < strides.size(); ++d) {
    if (free[d]) lines.Add(view.dims()[d], strides[d]);
  }
  if (contracted.sizes.size() > 1 || lines.sizes.size() > 1) return false;
  matrix->depth = contracted.count();
  matrix->lines = lines.count();
  matrix->contracted = contracted.sizes.empty() ? 0 : contracted.strides[0];
  matrix->line = lines.sizes.empty() ? 0 : lines.strides[0];
  return true;
}

// The library reads matrices with elements next to each other along one dimension.
bool IsPlain(Matrix* m) {
  if (m->lines == 1 && m->depth == 1) {
    m->line = m->contracted = 1;
  } else if (m->lines == 1) {
    m->line = m->contracted == 1 ? m->depth : 1;
  } else if (m->depth == 1) {
    m->contracted = m->line == 1 ? m->lines : 1;
  }
  return (m->contracted == 1 && m->line >= m->depth) || (m->line == 1 && m->contracted >= m->lines);
}

// Returns a copy of the view with its dimensions in the order batch, lines, contraction.
View InOrder(const OperandCopies& copies, const View& view, absl::Span<const int64_t> batch,
             absl::Span<const int64_t> contracting, Dims* batch_dims, Dims* contracting_dims) {
  const Dims strides = StridesOf(view);
  std::vector<bool> free(strides.size(), true);
  Dims order(batch.begin(), batch.end());
  for (int64_t d : batch) free[static_cast<size_t>(d)] = false;
  for (int64_t d : contracting) free[static_cast<size_t>(d)] = false;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (free[d]) order.push_back(static_cast<int64_t>(d));
  }
  order.insert(order.end(), contracting.begin(), contracting.end());
  Dims dims, new_strides;
  for (int64_t d : order) {
    dims.push_back(view.dims()[static_cast<size_t>(d)]);
    new_strides.push_back(strides[static_cast<size_t>(d)]);
  }
  batch_dims->clear();
  contracting_dims->clear();
  for (size_t i = 0; i < batch.size(); ++i) batch_dims->push_back(static_cast<int64_t>(i));
  for (size_t i = order.size() - contracting.size(); i < order.size(); ++i) {
    contracting_dims->push_back(static_cast<int64_t>(i));
  }
  View permuted = view;
  permuted.shape = copies.builder().program_shapes().Array(view.type(), dims);
  permuted.strides = copies.builder().NewStrides(new_strides, dims);
  return copies.MakeDense(permuted);
}

Matrix MatrixOf(const OperandCopies& copies, const View& view, absl::Span<const int64_t> batch,
                absl::Span<const int64_t> contracting) {
  Matrix matrix;
  if (Split(view, batch, contracting, &matrix) && IsPlain(&matrix)) return matrix;
  Dims batch_dims, contracting_dims;
  const View dense = InOrder(copies, view, batch, contracting, &batch_dims, &contracting_dims);
  Split(dense, batch_dims, contracting_dims, &matrix);
  IsPlain(&matrix);
  return matrix;
}

// Sets the matrices of both sides of the dot. Returns false after an error report.
bool SetMatrices(const OperandCopies& copies, absl::Span<const View> sides, const DotDims& dims, Matrix* lhs,
                 Matrix* rhs) {
  const std::optional<View> left = copies.ToF32(sides[0]);
  const std::optional<View> right = left ? copies.ToF32(sides[1]) : std::nullopt;
  if (!left || !right) return false;
  *lhs = MatrixOf(copies, *left, dims.lhs_batch, dims.lhs_contracting);
  *rhs = MatrixOf(copies, *right, dims.rhs_batch, dims.rhs_contracting);
  return true;
}

std::unique_ptr<LibraryPrimitive> CreateProduct(int64_t m, int64_t n, int64_t k, const Matrix& lhs, const Matrix& rhs,
                                                int64_t result_row, bool pack, const LibraryPrimitive* like) {
  LibrarySpec spec;
  spec.op = LibraryOp::kProduct;
  spec.src.Add(m, lhs.line);
  spec.src.Add(k, lhs.contracted);
  spec.weights.Add(k, rhs.contracted);
  spec.weights.Add(n, rhs.line);
  spec.weights.any_layout = pack;
  spec.dst.Add(m, result_row);
  spec.dst.Add(n, 1);
  return std::unique_ptr<LibraryPrimitive>(ProductLibrary()->Create(spec, like));
}

bool InRange(absl::Span<const int64_t> dims, int64_t rank) {
  return std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return d >= 0 && d < rank; });
}

}  // namespace

bool PrepareProduct(CompiledComputationBuilder& b, std::string* why) {
  const DotDims dims = DotDims::Of(b.instruction());
  if (b.instruction().operand_count() != 2 || !b.shape().IsArray()) return false;
  const View sides[] = {b.operand(0), b.operand(1)};
  for (const View& side : sides) {
    if (!side.shape.IsArray() || !IsLibraryType(side.type())) {
      *why = "type";
      return false;
    }
  }
  if (!IsLibraryType(b.shape().element_type())) {
    *why = "type";
    return false;
  }
  if (!InRange(dims.lhs_batch, sides[0].shape.rank()) || !InRange(dims.rhs_batch, sides[1].shape.rank()) ||
      !InRange(dims.lhs_contracting, sides[0].shape.rank()) || !InRange(dims.rhs_contracting, sides[1].shape.rank()) ||
      dims.lhs_batch.size() != dims.rhs_batch.size() || dims.lhs_contracting.size() != dims.rhs_contracting.size()) {
    return false;
  }
  // Sizes, which the exact engine checks otherwise.
  const auto size_of = [&](int side, absl::Span<const int64_t> of) {
    int64_t size = 1;
    for (int64_t d : of) size *= sides[side].dims()[static_cast<size_t>(d)];
    return size;
  };
  const int64_t batches = size_of(0, dims.lhs_batch);
  const int64_t k = size_of(0, dims.lhs_contracting);
  if (batches * k == 0 || b.shape().element_count() == 0 || size_of(1, dims.rhs_batch) != batches ||
      size_of(1, dims.rhs_contracting) != k) {
    return false;
  }
  const int64_t m = sides[0].count() / batches / k;
  const int64_t n = sides[1].count() / batches / k;
  if (batches * m * n != b.shape().element_count()) return false;
  constexpr double kSmall = 32 * 32 * 32;
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) < kSmall) {
    *why = "size";
    return false;
  }
  if (ProductLibrary(why) == nullptr) return false;
  Matrix lhs, rhs;
  if (!SetMatrices(OperandCopies(b, /*planned=*/true), sides, dims, &lhs, &rhs)) return true;

  auto plan = std::make_unique<ProductPlan>();
  constexpr int64_t kRows = 256;
  constexpr int64_t kColumns = 256;
  constexpr int64_t kManyColumns = 512;
  plan->rows = Pieces(m, std::min(m, kRows));
  const bool by_columns = batches == 1 && m <= kRows && n >= kManyColumns && m * k >= 4096;
  plan->columns = Pieces(n, by_columns ? std::max(kColumns, (n / 16 + 63) / 64 * 64) : n);
  constexpr int64_t kReuse = 64;
  plan->packed = batches == 1 && m >= kReuse && n >= kReuse && k >= kReuse;
  plan->batches = batches;
  plan->lhs_row = lhs.line;
  plan->rhs_column = rhs.line;
  plan->result_row = n;
  plan->cost =
      2e-2 * static_cast<double>(plan->rows.size) * static_cast<double>(plan->columns.size) * static_cast<double>(k);
  Dims batch_dims;
  for (int64_t d : dims.lhs_batch) batch_dims.push_back(sides[0].dims()[static_cast<size_t>(d)]);
  Dims result_batch = DenseStrides(batch_dims);
  for (int64_t& stride : result_batch) stride *= m * n;
  plan->batch = LoopNest(batch_dims, {{lhs.batch, rhs.batch, result_batch}});
  for (int last_column : {0, 1}) {
    const LibraryPrimitive* like = nullptr;
    for (int last_row : {0, 1}) {
      const int64_t rows = last_row ? plan->rows.last : plan->rows.size;
      const int64_t columns = last_column ? plan->columns.last : plan->columns.size;
      if ((!last_row && plan->rows.count == 1) || (!last_column && plan->columns.count == 1)) continue;
      std::unique_ptr<LibraryPrimitive>& primitive = plan->primitives[last_row][last_column];
      primitive = CreateProduct(rows, columns, k, lhs, rhs, n, plan->packed, like);
      if (primitive == nullptr) {
        *why = "oneDNN has no such product";
        return false;
      }
      like = primitive.get();
      plan->scratch = std::max(plan->scratch, primitive->scratch_bytes());
    }
  }
  if (plan->packed) {
    plan->packed = plan->At(0, 0).packed_bytes(LibraryRole::kWeights) > 0;
    for (int64_t c = 0; c < plan->columns.count; ++c) {
      const int64_t bytes = plan->At(0, c).packed_bytes(LibraryRole::kWeights);
      // All pieces have the layout of the first, or all that of the operand.
      if ((bytes > 0) != plan->packed) return false;
      plan->packed_offset.push_back(plan->packed_bytes);
      plan->packed_bytes += AlignedBytes(bytes);
    }
  }
  if (!HasThreadScratch(b, plan->scratch)) {
    *why = "memory";
    return false;
  }
  // Nothing was emitted so far: the exact engine could still have prepared the instruction.
  if (!SetMatrices(OperandCopies(b, /*planned=*/false), sides, dims, &lhs, &rhs)) return true;
  const View operands[] = {lhs.view, rhs.view};
  const Shape shape = b.program_shapes().Array(ElementType::kF32, b.shape().dims());
  SetF32Result(b, b.EmitTo(RunProduct, std::move(plan), operands, {&shape, 1})[0]);
  return true;
}

}  // namespace hlokit::interp::compiled
