// SPDX-License-Identifier: Apache-2.0
// Expands XLA's custom-call Eigh, the eigendecomposition of symmetric matrices, into Jacobi rotations:
//
//   (v, w) = Eigh(a), backend_config="LOWER,SORT,SWEEPS,TOLERANCE"
//
// with at most SWEEPS sweeps, until few squares are left off the diagonal (eigh_config.h).
//
// The matrix is four quadrants. A round rotates rows and columns k of the upper and lower ones, for all k at once,
// which makes the diagonals of the right upper and left lower one zero. It then exchanges rows and columns as a
// round-robin tournament exchanges players: after n - 1 rounds, a sweep, each pair has met once, and all are back in
// their places. Brent and Luk, The Solution of Singular-Value and Symmetric Eigenvalue Problems on Multiprocessor
// Arrays, 1985. interp/custom_calls/matrix_calls.cc evaluates the call with the same rotations.
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ir/text/eigh_config.h"
#include "passes/core/pass_row.h"
#include "passes/expanders/array_builder.h"
#include "passes/expanders/expanders.h"
#include "passes/expanders/loop_builder.h"
#include "passes/rewrite/rule_pass.h"

namespace hlokit {
namespace {

using Id = InstructionId;
using Dims = std::vector<int64_t>;

// The quadrants of a matrix: top left, top right, bottom left, bottom right.
using Quadrants = std::array<Id, 4>;

// Jacobi rotations on batches of matrices in quadrants, and their eigenvectors as rows.
class Rotations {
 public:
  Rotations(Builder* builder, int64_t row_dim) : m_(builder), row_dim_(row_dim), column_dim_(row_dim + 1) {}

  // Rotates, and makes the pairs of the next round.
  void Round(Quadrants& w, Quadrants& v) {
    const Id tl = Diagonal(w[0]), tr = Diagonal(w[1]), br = Diagonal(w[3]);
    const Id zero = m_.Like(tl, 0), one = m_.Like(tl, 1);
    const Id twice = m_.Multiply(m_.Like(tl, 2), tr), difference = m_.Subtract(br, tl);
    const Id tau = m_.Divide(difference, twice);
    const Id root = m_.Sqrt(m_.Add(one, m_.Square(tau)));
    const Id is_positive = m_.Compare(ComparisonDirection::kGe, tau, zero);
    const Id tangent = m_.Divide(one, m_.Add(tau, m_.Select(is_positive, root, m_.Negate(root))));
    // An element this small would not change the diagonal.
    constexpr float kNegligible = 0.1f * std::numeric_limits<float>::epsilon();
    const Id br_size = m_.Abs(br), tl_size = m_.Abs(tl), size = m_.Minimum(tl_size, br_size);
    const Id bound = m_.Multiply(m_.Like(tl, kNegligible), size);
    const Id is_tiny = m_.Compare(ComparisonDirection::kLe, m_.Abs(tr), bound);
    const Id t = m_.Select(is_tiny, zero, tangent);
    const Id c = m_.Divide(one, m_.Sqrt(m_.Add(one, m_.Square(t))));
    const Id s = m_.Multiply(t, c), change = m_.Multiply(t, tr);
    Rotate(w, row_dim_, c, s);
    Rotate(w, column_dim_, c, s);
    w = {WithDiagonal(w[0], m_.Subtract(tl, change)), WithDiagonal(w[1], zero), WithDiagonal(w[2], zero),
         WithDiagonal(w[3], m_.Add(br, change))};
    Rotate(v, row_dim_, c, s);
    if (m_.Of(w[0]).dim(row_dim_) == 1) return;
    Exchange(w[0], w[1], column_dim_);
    Exchange(w[2], w[3], column_dim_);
    for (Quadrants* q : {&w, &v}) {
      Exchange((*q)[0], (*q)[2], row_dim_);
      Exchange((*q)[1], (*q)[3], row_dim_);
    }
  }

  // Returns true while the elements off the diagonal of some matrix are not small.
  Id IsUnfinished(const Quadrants& w, float tolerance) {
    Id all, off_diagonal;
    for (size_t k = 0; k < 4; ++k) {
      const Id squares = m_.Square(w[k]);
      Id rest = squares;
      if (k == 0 || k == 3) {
        const Id none = m_.Like(squares, 0);
        rest = m_.Select(IsDiagonal(w[k]), none, squares);
      }
      all = k == 0 ? squares : m_.Add(all, squares);
      off_diagonal = k == 0 ? rest : m_.Add(off_diagonal, rest);
    }
    const Dims both = {row_dim_, column_dim_};
    const Id total = m_.Sum(all, both);
    const Id bound = m_.Multiply(total, m_.Like(total, static_cast<double>(tolerance) * tolerance));
    const Id unfinished = m_.Compare(ComparisonDirection::kLt, bound, m_.Sum(off_diagonal, both));
    return row_dim_ == 0 ? unfinished : m_.Reduce(unfinished, Opcode::kOr, 0, Sequence(row_dim_));
  }

  Id Diagonal(Id x) {
    const Id zeros = m_.Like(x, 0);
    return m_.Sum(m_.Select(IsDiagonal(x), x, zeros), {column_dim_});
  }

 private:
  Dims Positions(int64_t dim) const {
    Dims positions = Sequence(row_dim_);
    positions.push_back(dim);
    return positions;
  }
  Id IsDiagonal(Id x) {
    const Dims sizes = m_.SizesOf(x);
    const Id column = m_.Iota(sizes, column_dim_), row = m_.Iota(sizes, row_dim_);
    return m_.Compare(ComparisonDirection::kEq, row, column);
  }
  Id WithDiagonal(Id x, Id diagonal) {
    const Id spread = m_.Broadcast(diagonal, m_.SizesOf(x), Positions(row_dim_));
    return m_.Select(IsDiagonal(x), spread, x);
  }
  void Rotate(Id& x, Id& y, Id c, Id s) {
    const Id y_sine = m_.Multiply(y, s), x_cosine = m_.Multiply(x, c);
    const Id first = m_.Subtract(x_cosine, y_sine);
    const Id y_cosine = m_.Multiply(y, c), x_sine = m_.Multiply(x, s);
    y = m_.Add(x_sine, y_cosine);
    x = first;
  }
  // Rotates rows or columns, which are pairs of quadrants, by the angles that run along `dim`.
  void Rotate(Quadrants& q, int64_t dim, Id c, Id s) {
    const Dims sizes = m_.SizesOf(q[0]);
    c = m_.Broadcast(c, sizes, Positions(dim));
    s = m_.Broadcast(s, sizes, Positions(dim));
    const bool rows = dim == row_dim_;
    Rotate(q[0], q[rows ? 2 : 1], c, s);
    Rotate(q[rows ? 1 : 2], q[3], c, s);
  }
  // Makes the pairs of the next round along a dimension. The first element stays; the others of `first` move one index
  // up, those of `second` one down, and at the ends from one to the other.
  void Exchange(Id& first, Id& second, int64_t dim) {
    const int64_t k = m_.Of(first).dim(dim);
    const Id stays = m_.Slice(first, dim, 0, 1), enters = m_.Slice(second, dim, 0, 1);
    const Id leaves = m_.Slice(first, dim, k - 1, k), rest = m_.Slice(second, dim, 1, k);
    first = k == 2 ? m_.Concatenate({stays, enters}, dim)
                   : m_.Concatenate({stays, enters, m_.Slice(first, dim, 1, k - 1)}, dim);
    second = m_.Concatenate({rest, leaves}, dim);
  }

  ArrayBuilder m_;
  const int64_t row_dim_, column_dim_;
};

// Returns the quadrants of the matrix, then those of the eigenvectors.
std::pair<Quadrants, Quadrants> QuadrantsOf(const std::vector<Id>& state) {
  std::pair<Quadrants, Quadrants> both;
  for (size_t k = 0; k < 4; ++k) {
    both.first[k] = state[k];
    both.second[k] = state[4 + k];
  }
  return both;
}

class Eigendecomposition {
 public:
  Eigendecomposition(PatternRewriter& rewriter, Instruction call, EighConfig config)
      : rewriter_(rewriter),
        m_(&rewriter),
        call_(call),
        config_(config),
        row_dim_(call.operand(0).shape().rank() - 2),
        n_(call.operand(0).shape().dim(row_dim_)) {}

  // Returns eigenvectors, as columns, and eigenvalues.
  std::pair<Id, Id> Make(Id a) {
    a = Symmetric(a);
    const Dims batch = Sequence(row_dim_), both = {row_dim_, row_dim_ + 1};
    if (n_ == 1) return {m_.Like(a, 1), m_.Reshape(a, VectorSizes(a, 1))};
    // Scaled, so that squares neither overflow nor vanish.
    const Id largest = m_.Reduce(m_.Abs(a), Opcode::kMaximum, 0, both);
    const Id is_zero = m_.Compare(ComparisonDirection::kEq, largest, m_.Like(largest, 0));
    const Id scale = m_.Select(is_zero, m_.Like(largest, 1), largest);
    a = m_.Divide(a, m_.Broadcast(scale, m_.SizesOf(a), batch));
    // Quadrants, with a row and a column of zeros if the size is odd.
    const int64_t half = (n_ + 1) / 2, columns = row_dim_ + 1;
    if (n_ % 2 != 0) a = m_.PadEnd(m_.PadEnd(a, row_dim_, 1), columns, 1);
    const Id top = m_.Slice(a, row_dim_, 0, half), bottom = m_.Slice(a, row_dim_, half, 2 * half);
    std::vector<Id> state = {m_.Slice(top, columns, 0, half), m_.Slice(top, columns, half, 2 * half),
                             m_.Slice(bottom, columns, 0, half), m_.Slice(bottom, columns, half, 2 * half)};
    const Dims sizes = m_.SizesOf(state[0]);
    const Id column = m_.Iota(sizes, columns), row = m_.Iota(sizes, row_dim_);
    const Id equal = m_.Compare(ComparisonDirection::kEq, row, column);
    const Id identity = rewriter_.MakeConvert(equal, m_.TypeOf(a)), zeros = m_.Like(identity, 0);
    state.insert(state.end(), {identity, zeros, zeros, identity});
    const auto [w, v] = QuadrantsOf(Sweep(state, half));
    Rotations rotations(&rewriter_, row_dim_);
    Id values = m_.Concatenate({rotations.Diagonal(w[0]), rotations.Diagonal(w[3])}, row_dim_);
    Id vectors =
        m_.Concatenate({m_.Concatenate({v[0], v[1]}, columns), m_.Concatenate({v[2], v[3]}, columns)}, row_dim_);
    if (n_ % 2 != 0) {
      values = m_.Slice(values, row_dim_, 0, n_);
      vectors = m_.Slice(m_.Slice(vectors, row_dim_, 0, n_), columns, 0, n_);
    }
    vectors = m_.Transpose(vectors, Exchanged());
    values = m_.Multiply(values, m_.Broadcast(scale, m_.SizesOf(values), batch));
    return config_.sort ? Sorted(vectors, values) : std::pair<Id, Id>{vectors, values};
  }

 private:
  Dims VectorSizes(Id matrix, int64_t size) {
    Dims sizes = m_.SizesOf(matrix);
    sizes.pop_back();
    sizes.back() = size;
    return sizes;
  }
  Dims Exchanged() const {
    Dims order = Sequence(row_dim_ + 2);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return order;
  }
  // Copies the triangle that is read to the other one.
  Id Symmetric(Id a) {
    const Dims sizes = m_.SizesOf(a);
    const Id row = m_.Iota(sizes, row_dim_), column = m_.Iota(sizes, row_dim_ + 1);
    const ComparisonDirection direction = config_.lower ? ComparisonDirection::kGe : ComparisonDirection::kLe;
    const Id other = m_.Transpose(a, Exchanged());
    return m_.Select(m_.Compare(direction, row, column), a, other);
  }
  // Returns the elements of the state after the sweeps.
  std::vector<Id> Sweep(std::vector<Id> state, int64_t half) {
    state.insert(state.begin(), rewriter_.MakeScalarConstant(ElementType::kS32, 0));
    const Id loop = MakeLoop(
        rewriter_, call_, state,
        [&](Builder& b, Id seen) {
          const Id limit = b.MakeScalarConstant(ElementType::kS32, config_.sweeps);
          const Id is_allowed = b.MakeCompare(ComparisonDirection::kLt, b.MakeElement(seen, 0), limit);
          Quadrants w;
          for (int64_t k = 0; k < 4; ++k) w[static_cast<size_t>(k)] = b.MakeElement(seen, k + 1);
          return b.MakeLike(Opcode::kAnd, {is_allowed, Rotations(&b, row_dim_).IsUnfinished(w, config_.tolerance)});
        },
        [&](Builder& b, std::vector<Id> elements) {
          const Id sweep = b.MakeLike(Opcode::kAdd, {elements[0], b.MakeScalarConstant(ElementType::kS32, 1)});
          elements.erase(elements.begin());
          const Id rounds = MakeCountedLoop(b, call_, 2 * half - 1, std::move(elements),
                                            [&](Builder& inner, Id, const std::vector<Id>& before) {
                                              auto [w, v] = QuadrantsOf(before);
                                              Rotations(&inner, row_dim_).Round(w, v);
                                              std::vector<Id> next(w.begin(), w.end());
                                              next.insert(next.end(), v.begin(), v.end());
                                              return next;
                                            });
          std::vector<Id> next = {sweep};
          for (int64_t k = 1; k <= 8; ++k) next.push_back(b.MakeElement(rounds, k));
          return next;
        });
    std::vector<Id> results;
    for (int64_t k = 1; k <= 8; ++k) results.push_back(rewriter_.MakeElement(loop, k));
    return results;
  }
  // Sorts the columns of the vectors by the values.
  std::pair<Id, Id> Sorted(Id vectors, Id values) {
    const Dims sizes = m_.SizesOf(vectors);
    Dims positions = Sequence(row_dim_);
    positions.push_back(row_dim_ + 1);
    const Id keys = m_.Broadcast(values, sizes, positions);
    Module& module = rewriter_.module();
    Builder b(&module, module.AddComputation(module.UniqueComputationName("less")));
    const MetadataScope scope(&b, call_.metadata_id());
    std::vector<Id> parameters;
    for (uint32_t k = 0; k < 4; ++k) {
      parameters.push_back(b.Make(Opcode::kParameter, b.shapes().Scalar(m_.TypeOf(keys)), {}, {}, k));
    }
    b.SetRoot(b.Make(Opcode::kCompare, b.shapes().Scalar(ElementType::kPred), {parameters[0], parameters[1]},
                     {Builder::Enum(Attr::kDirection, ComparisonDirection::kLt),
                      Builder::Enum(Attr::kCompareType, ComparisonType::kTotalOrder)}));
    const AttrValue attrs[] = {rewriter_.List(Attr::kDimensions, {row_dim_ + 1}), Builder::Bool(Attr::kIsStable, true),
                               Builder::Calls(Attr::kToApply, b.computation())};
    const Shape shape = rewriter_.shapes().Tuple({m_.Of(keys), m_.Of(vectors)});
    const Id sorted = rewriter_.Make(Opcode::kSort, shape, {keys, vectors}, attrs);
    const Id row = m_.Slice(rewriter_.MakeElement(sorted, 0), row_dim_, 0, 1);
    return {rewriter_.MakeElement(sorted, 1), m_.Reshape(row, VectorSizes(vectors, n_))};
  }

  PatternRewriter& rewriter_;
  ArrayBuilder m_;
  const Instruction call_;
  const EighConfig config_;
  const int64_t row_dim_, n_;
};

bool ExpandEigh(PatternRewriter& rewriter, Instruction call) {
  if (call.string_attr(Attr::kCustomCallTarget) != "Eigh" || call.operand_count() != 1 ||
      !rewriter.IsReplaceable(call) || !call.shape().IsTuple() || call.shape().tuple_size() != 2) {
    return false;
  }
  const Shape matrix = call.operand(0).shape(), vectors = call.shape().element(0), values = call.shape().element(1);
  const int64_t rank = matrix.rank();
  if (rank < 2 || !IsFloat(matrix.element_type()) || matrix.has_dynamic_dims() || matrix.element_count() == 0 ||
      matrix.dim(rank - 1) != matrix.dim(rank - 2) || matrix.dim(rank - 1) > INT32_MAX ||
      !IsArrayOf(vectors, matrix.element_type(), matrix.dims()) ||
      !IsArrayOf(values, matrix.element_type(), matrix.dims().first(static_cast<size_t>(rank - 1)))) {
    return false;
  }
  const std::optional<EighConfig> config = ParseEighConfig(call.string_attr(Attr::kBackendConfig));
  if (!config) return false;
  ArrayBuilder m(&rewriter);
  const Id a = rewriter.MakeConvert(call.operand(0).id(), WideTypeOf(rewriter, matrix.element_type()));
  const auto [v, w] = Eigendecomposition(rewriter, call, *config).Make(m.InDefaultLayout(a));
  const Id results[] = {m.InLayoutOf(vectors, rewriter.MakeConvert(v, matrix.element_type())),
                        m.InLayoutOf(values, rewriter.MakeConvert(w, matrix.element_type()))};
  return rewriter.Replace(call, rewriter.MakeTuple(results));
}

}  // namespace

void AddEighExpanderRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kCustomCall}, "eigendecompositions expanded", ExpandEigh);
}

HLOKIT_PASS(EighExpander) {
  return {.name = "eigh-expander",
          .category = "expand",
          .summary = "expand eigendecompositions of real symmetric matrices",
          .doc =
              "The custom-call Eigh becomes sweeps of Jacobi rotations, n / 2 at once, as XLA's, with the same "
              "limits from its backend_config. XLA's takes Hermitian matrices too, which stay here. Eigenvectors "
              "of equal eigenvalues, and their signs, are as good as others.",
          .example = R"(ENTRY e {
  a = f32[4,4] parameter(0)
  ROOT vw = (f32[4,4], f32[4]) custom-call(a), custom_call_target="Eigh", backend_config="1,1,100,1e-6", metadata={op_name="f/eigh"}
})",
          .options = {WideOption()},
          .tolerance = 1e-3,
          .create = MakePass<RulesOf<AddEighExpanderRules, RewriteScope::kSequential>>};
}

}  // namespace hlokit
