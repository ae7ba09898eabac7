// SPDX-License-Identifier: Apache-2.0
// Dots as products of matrices: pieces of rows, or of columns where there are few rows. The right operand is converted
// to the layout of the library where its reads outweigh that.
#include "interp/compiled/products/product_thunk.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/products/product_pieces.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/contractions/strided_source.h"
#include "interp/exact/machine/run_context.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

struct ProductParams : PiecesParams {
  // By whether the piece is the last one of rows, and of columns. Null where there is none of that size.
  std::shared_ptr<const LibraryPrimitive> primitives[2][2];
  int64_t scratch = 0;                 // bytes
  std::vector<int64_t> packed_offset;  // of the right operand by piece of columns; empty: it is not packed

  const std::shared_ptr<const LibraryPrimitive>& At(int64_t row, int64_t column) const {
    return primitives[row + 1 == rows.count][column + 1 == columns.count];
  }
};

void RunProduct(const ProductParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  std::atomic<bool> ok = true;
  context.ParallelFor(p.count(), p.cost, [&](int64_t begin, int64_t end) {
    p.ForEach(begin, end, context, [&](int64_t row, int64_t column, const int64_t* offsets) {
      const int64_t rhs = p.packed_offset.empty() ? offsets[1] : p.packed_offset[static_cast<size_t>(column)];
      std::byte* const scratch = ThreadScratch(context, p.scratch, "a product");
      if (scratch == nullptr) return;
      if (!p.At(row, column)
               ->Run(const_cast<std::byte*>(in[0] + offsets[0]), const_cast<std::byte*>(in[1] + rhs),
                     out[0] + offsets[2], scratch)) {
        ok = false;
      }
    });
  });
  if (!ok) context.Fail("oneDNN cannot compute a product");
}

// Products next to each other in the batch that one primitive computes, and the nest of their starts.
struct BatchPieces {
  int64_t size = 1;
  int64_t strides[3] = {};  // of left, right and result
  LoopNest starts;
};

BatchPieces DivideBatch(const MatrixProduct& p) {
  BatchPieces pieces;
  pieces.starts = p.batch;
  if (p.batches == 1) return pieces;
  constexpr double kWork = 1.5e7;
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const int last = p.batch.rank() - 1;
  const int64_t inner = p.batch.inner_size();
  for (int a = 0; a < 3; ++a) {
    pieces.strides[a] = p.batch.stride(last, a);
    if (pieces.strides[a] <= 0) return pieces;
  }
  for (int64_t size = 2; size <= inner && static_cast<double>(size) * work <= kWork; ++size) {
    if (inner % size == 0) pieces.size = size;
  }
  Dims dims;
  Dims strides[3];
  for (int d = 0; d <= last; ++d) {
    dims.push_back(d == last ? inner / pieces.size : p.batch.size(d));
    for (int a = 0; a < 3; ++a) strides[a].push_back(p.batch.stride(d, a) * (d == last ? pieces.size : 1));
  }
  pieces.starts = LoopNest(dims, strides);
  return pieces;
}

std::shared_ptr<const LibraryPrimitive> CreateProduct(const MatrixProduct& p, const BatchPieces& batch, int64_t m,
                                                      int64_t n, bool pack, const LibraryPrimitive* like) {
  LibrarySpec spec;
  spec.op = LibraryOp::kProduct;
  if (batch.size > 1) {
    spec.src.Add(batch.size, batch.strides[0]);
    spec.weights.Add(batch.size, batch.strides[1]);
    spec.dst.Add(batch.size, batch.strides[2]);
  }
  spec.src.Add(m, p.lhs.row);
  spec.src.Add(p.k, p.lhs.column);
  spec.src.type = p.lhs_type;
  spec.weights.Add(p.k, p.rhs.row);
  spec.weights.Add(n, p.rhs.column);
  spec.weights.type = p.rhs_type;
  if (pack) spec.weights.layout = LibraryArray::Layout::kAny;
  spec.dst.Add(m, p.n);
  spec.dst.Add(n, 1);
  spec.dst.type = p.result_type;
  return std::shared_ptr<const LibraryPrimitive>((*ProductLibrary())->Create(spec, like));
}

}  // namespace

ProductKernel MakeProduct(const MatrixProduct& p) {
  ProductKernel result = MakeTileProduct(p);
  if (result.params != nullptr) return result;
  if (IsSkinny(p)) result = MakeSkinnyProduct(p);
  if (result.params != nullptr) return result;
  auto params = std::make_unique<ProductParams>();
  params->SetArrays(p);
  params->rows = Pieces(p.m, RowsOfPiece(p));
  params->columns = Pieces(p.n, ColumnsOfPiece(p));
  BatchPieces batch;
  if (params->rows.count == 1 && params->columns.count == 1) {
    batch = DivideBatch(p);
    params->batch = batch.starts;
    params->batches /= batch.size;
  }
  params->cost = static_cast<double>(batch.size) * 8e-3 * static_cast<double>(params->rows.size) *
                 static_cast<double>(params->columns.size) * static_cast<double>(p.k);
  // Packing takes as long as some hundred rows. It brings less if the contraction is contiguous, or if the left operand
  // is transposed too.
  constexpr int64_t kLarge = int64_t{1} << 20;
  constexpr int64_t kFew = 16;
  const bool integers = p.result_type == LibraryType::kS32;  // which the library packs slowly
  const bool pays = !integers && p.rhs.row != 1 && p.lhs.column == 1 && p.m >= 2 * kRowsOfPiece && p.n * p.k >= kLarge;
  const bool pack = p.batches == 1 && (p.reused ? p.n >= kFew && p.k >= kFew : pays);
  for (int last_column : {0, 1}) {
    const LibraryPrimitive* like = nullptr;
    for (int last_row : {0, 1}) {
      const int64_t height = last_row ? params->rows.last : params->rows.size;
      const int64_t width = last_column ? params->columns.last : params->columns.size;
      if ((!last_row && params->rows.count == 1) || (!last_column && params->columns.count == 1)) continue;
      std::shared_ptr<const LibraryPrimitive>& primitive = params->primitives[last_row][last_column];
      primitive = CreateProduct(p, batch, height, width, pack, like);
      if (primitive == nullptr) return result;
      like = primitive.get();
      params->scratch = std::max(params->scratch, primitive->scratch_bytes());
    }
  }
  result.thread_scratch = params->scratch;
  if (pack && params->At(0, 0)->packed_bytes(LibraryRole::kWeights) > 0) {
    int64_t end = 0;
    for (int64_t c = 0; c < params->columns.count; ++c) {
      PackedWeights::Part part;
      part.primitive = params->At(0, c);
      part.packed = part.primitive->packed_bytes(LibraryRole::kWeights);
      // All pieces have the layout of the first, or all that of the operand.
      if (part.packed == 0) return result;
      part.from = c * params->columns.size * params->rhs_column;
      part.to = end;
      params->packed_offset.push_back(end);
      end += AlignedBytes(part.packed);
      result.packed.push_back(std::move(part));
    }
  }
  result.kernel = kKernel<RunProduct>;
  result.params = std::move(params);
  return result;
}

namespace {

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
  std::vector<bool> free(view.dims().size(), true);
  Dims order(batch.begin(), batch.end());
  for (int64_t d : batch) free[static_cast<size_t>(d)] = false;
  for (int64_t d : contracting) free[static_cast<size_t>(d)] = false;
  for (size_t d = 0; d < free.size(); ++d) {
    if (free[d]) order.push_back(static_cast<int64_t>(d));
  }
  order.insert(order.end(), contracting.begin(), contracting.end());
  batch_dims->clear();
  contracting_dims->clear();
  for (size_t i = 0; i < batch.size(); ++i) batch_dims->push_back(static_cast<int64_t>(i));
  for (size_t i = order.size() - contracting.size(); i < order.size(); ++i) {
    contracting_dims->push_back(static_cast<int64_t>(i));
  }
  return copies.MakeDense(Permuted(copies.builder(), view, order));
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

bool InRange(absl::Span<const int64_t> dims, int64_t rank) {
  return std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return d >= 0 && d < rank; });
}

// Types in which the operands are read and the result is written. Returns false if the library has none for them.
bool SetTypes(ElementType lhs, ElementType rhs, ElementType result, bool skinny, bool allow_bf16, MatrixProduct* p) {
  const auto library_type = [](ElementType type) -> std::optional<LibraryType> {
    if (type == ElementType::kF32) return LibraryType::kF32;
    if (type == ElementType::kBF16) return LibraryType::kBF16;
    if (type == ElementType::kS8) return LibraryType::kS8;
    if (type == ElementType::kU8) return LibraryType::kU8;
    if (type == ElementType::kS32) return LibraryType::kS32;
    return std::nullopt;
  };
  if (IsLibraryType(lhs) && IsLibraryType(rhs) && IsLibraryType(result)) {
    const bool bf16 = lhs == ElementType::kBF16 && rhs == ElementType::kBF16 && result != ElementType::kF16;
    if (skinny) {
      p->lhs_type = lhs == ElementType::kBF16 ? LibraryType::kBF16 : LibraryType::kF32;
      p->rhs_type = rhs == ElementType::kBF16 ? LibraryType::kBF16 : LibraryType::kF32;
    } else if (bf16 && allow_bf16 && HasFastBf16()) {
      p->lhs_type = p->rhs_type = LibraryType::kBF16;
      p->result_type = *library_type(result);
    }
    return true;
  }
  // The library multiplies unsigned integers on the left and signed ones on the right.
  const bool integers =
      (lhs == ElementType::kS8 || lhs == ElementType::kU8) && rhs == ElementType::kS8 && result == ElementType::kS32;
  if (!integers || !(*ProductLibrary())->IsFast(LibraryType::kS8)) return false;
  p->lhs_type = *library_type(lhs);
  p->rhs_type = *library_type(rhs);
  p->result_type = LibraryType::kS32;
  return true;
}

ElementType ElementTypeOf(LibraryType type) {
  switch (type) {
    case LibraryType::kF32:
      return ElementType::kF32;
    case LibraryType::kBF16:
      return ElementType::kBF16;
    case LibraryType::kS8:
      return ElementType::kS8;
    case LibraryType::kU8:
      return ElementType::kU8;
    case LibraryType::kS32:
      return ElementType::kS32;
  }
  return ElementType::kF32;
}

// Prepares the product with operands of bf16 if the library has fast ones, or with f32.
PrepareResult PrepareProductIn(bool allow_bf16, CompiledComputationBuilder& b, PackedWeights* packed) {
  const DotDims dims = DotDims::Of(b.instruction());
  if (!b.shape().IsArray()) return PrepareResult::Unsupported();
  View sides[] = {b.operand(0), b.operand(1)};
  if (!sides[0].shape.IsArray() || !sides[1].shape.IsArray()) return PrepareResult::Unsupported("type");
  if (!InRange(dims.lhs_batch, sides[0].shape.rank()) || !InRange(dims.rhs_batch, sides[1].shape.rank()) ||
      !InRange(dims.lhs_contracting, sides[0].shape.rank()) || !InRange(dims.rhs_contracting, sides[1].shape.rank()) ||
      dims.lhs_batch.size() != dims.rhs_batch.size() || dims.lhs_contracting.size() != dims.rhs_contracting.size()) {
    return PrepareResult::Unsupported("type");
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
    return PrepareResult::Unsupported("type");
  }
  MatrixProduct product;
  product.k = k;
  product.m = sides[0].count() / batches / k;
  product.n = sides[1].count() / batches / k;
  if (batches * product.m * product.n != b.shape().element_count()) return PrepareResult::Unsupported("type");
  constexpr double kSmall = 32 * 32 * 32;
  const double work = static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(k);
  if (!ProductLibrary().ok()) return PrepareResult::Unsupported(ProductLibrary().status());
  // A product with one column is one with one row of the other operand.
  absl::Span<const int64_t> batch_dims[] = {dims.lhs_batch, dims.rhs_batch};
  absl::Span<const int64_t> contracting[] = {dims.lhs_contracting, dims.rhs_contracting};
  if (product.n == 1 && product.m > 1) {
    std::swap(product.m, product.n);
    std::swap(sides[0], sides[1]);
    std::swap(batch_dims[0], batch_dims[1]);
    std::swap(contracting[0], contracting[1]);
  }
  // Decided before the types, which skinny products need not convert: the matrices have the strides of the views.
  const OperandCopies planned(b, /*planned=*/true);
  Matrix lhs = MatrixOf(planned, sides[0], batch_dims[0], contracting[0]);
  Matrix rhs = MatrixOf(planned, sides[1], batch_dims[1], contracting[1]);
  product.lhs = {lhs.line, lhs.contracted};
  product.rhs = {rhs.contracted, rhs.line};
  const bool skinny = IsSkinny(product);
  if (!SetTypes(sides[0].type(), sides[1].type(), b.shape().element_type(), skinny, allow_bf16, &product)) {
    return PrepareResult::Unsupported("type");
  }
  if (work * (skinny ? static_cast<double>(batches) : 1) < kSmall) return PrepareResult::Unsupported("size");
  // Of one term, the library's products are that term; a sum begins with +0, so that of -0 is +0.
  if (k == 1) return PrepareResult::Unsupported("one term");
  const auto set_matrices = [&](const OperandCopies& copies) {
    const std::optional<View> left = copies.To(ElementTypeOf(product.lhs_type), sides[0]);
    const std::optional<View> other = left ? copies.To(ElementTypeOf(product.rhs_type), sides[1]) : std::nullopt;
    if (!other) return false;
    lhs = MatrixOf(copies, *left, batch_dims[0], contracting[0]);
    rhs = MatrixOf(copies, *other, batch_dims[1], contracting[1]);
    return true;
  };
  if (!set_matrices(planned)) return PrepareResult::Failed();
  product.lhs = {lhs.line, lhs.contracted};
  product.rhs = {rhs.contracted, rhs.line};
  product.batches = batches;
  // Neither converted nor copied.
  const bool as_it_is = rhs.view.slot == sides[1].slot;
  product.reused = as_it_is && (b.IsUnchangedInLoop(sides[1]) || b.ConstantData(sides[1]) != nullptr);
  Dims batch_sizes;
  for (int64_t d : batch_dims[0]) batch_sizes.push_back(sides[0].dims()[static_cast<size_t>(d)]);
  Dims result_batch = DenseStrides(batch_sizes);
  for (int64_t& stride : result_batch) stride *= product.m * product.n;
  product.batch = LoopNest(batch_sizes, {{lhs.batch, rhs.batch, result_batch}});
  product.max_shared_scratch = MaxSharedScratch(b);
  ProductKernel made = MakeProduct(product);
  if (made.params == nullptr) return PrepareResult::Unsupported("oneDNN has no such product");
  if (!HasThreadScratch(b, made.thread_scratch) || !PackedWeights::Fits(b, made.packed)) {
    return PrepareResult::Unsupported("memory");
  }
  // Nothing was emitted so far: the exact engine could still have prepared the instruction.
  if (!set_matrices(OperandCopies(b, /*planned=*/false))) return PrepareResult::Failed();
  const View weights = made.packed.empty() ? rhs.view : packed->Pack(b, rhs.view, std::move(made.packed));
  const View operands[] = {lhs.view, weights};
  const Shape shape = b.program_shapes().Array(ElementTypeOf(product.result_type), b.shape().dims());
  SetConvertedResult(b, b.EmitTo(made.kernel, std::move(made.params), operands, {&shape, 1})[0]);
  return PrepareResult::Prepared();
}

}  // namespace

PrepareResult PrepareProduct(CompiledComputationBuilder& b, PackedWeights* packed) {
  if (b.instruction().operand_count() != 2) return PrepareResult::Unsupported();
  PrepareResult result = PrepareProductIn(/*allow_bf16=*/true, b, packed);
  // The library may have the product in f32 only.
  const bool bf16 = b.operand(0).type() == ElementType::kBF16;
  return result.unsupported() && bf16 ? PrepareProductIn(/*allow_bf16=*/false, b, packed) : result;
}

}  // namespace hlokit::interp::compiled
