// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/lapack_calls.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/custom_calls/call_arrays.h"
#include "interp/custom_calls/custom_call_device.h"
#include "interp/custom_calls/dense_matrix.h"
#include "interp/custom_calls/eigenvalues.h"
#include "interp/custom_calls/lapack_factorizations.h"
#include "interp/custom_calls/real_values.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// One call: reads matrices of a batch, and writes results.
template <typename T>
class LapackCall {
 public:
  LapackCall(absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
             std::string_view config, bool is_double)
      : operands_(operands), results_(results), config_(config), double_(is_double) {}

  // Returns an error if operands and results are not those of the function.
  absl::Status Run(std::string_view name);

 private:
  using Matrix = DenseMatrix<T>;
  static constexpr bool kComplex = std::is_same_v<T, Complex>;

  // The number of `name = 78 : ui8` in the attributes.
  int64_t Attribute(std::string_view name, int64_t absent) const {
    const std::string key = StrCat(name, " = ");
    for (size_t at = config_.find(key); at != std::string_view::npos; at = config_.find(key, at + 1)) {
      if (at != 0 && config_[at - 1] != ' ' && config_[at - 1] != '{') continue;
      const std::string_view value = config_.substr(at + key.size());
      if (value.starts_with("true")) return 1;
      if (value.starts_with("false")) return 0;
      return std::strtoll(std::string(value.substr(0, 20)).c_str(), nullptr, 10);
    }
    return absent;
  }

  // What an operand or result has to be: the last dimensions after those of the batch, of which kAny may be any size.
  enum class Kind : uint8_t { kNumber, kReal, kComplex, kInteger };
  struct Form {
    Kind kind;
    std::vector<int64_t> dims;
  };
  using Forms = std::vector<Form>;
  static constexpr int64_t kAny = -1;
  static Form Numbers(std::vector<int64_t> dims) { return {Kind::kNumber, std::move(dims)}; }
  static Form Reals(std::vector<int64_t> dims) { return {Kind::kReal, std::move(dims)}; }
  static Form Integers(std::vector<int64_t> dims) { return {Kind::kInteger, std::move(dims)}; }

  static int64_t Dim(Shape shape, int64_t from_end) {
    return shape.rank() >= from_end ? shape.dim(shape.rank() - from_end) : 1;
  }
  // Rows and columns of an operand that is a matrix, or 0.
  int64_t RowsOf(size_t operand) const { return SizeOf(operand, 2); }
  int64_t ColumnsOf(size_t operand) const { return SizeOf(operand, 1); }
  int64_t SizeOf(size_t operand, int64_t from_end) const {
    if (operand >= operands_.size() || !operands_[operand].shape.IsArray()) return 0;
    const Shape shape = operands_[operand].shape;
    return shape.rank() >= from_end ? shape.dim(shape.rank() - from_end) : 0;
  }
  ElementType TypeOf(Kind kind) const {
    const ElementType real = double_ ? ElementType::kF64 : ElementType::kF32;
    const ElementType complex = double_ ? ElementType::kC128 : ElementType::kC64;
    if (kind == Kind::kInteger) return ElementType::kS32;
    return kind == Kind::kComplex || (kind == Kind::kNumber && kComplex) ? complex : real;
  }
  bool IsOf(const Form& form, Shape shape) const {
    const size_t rank = batch_.size() + form.dims.size();
    if (!shape.IsArray() || shape.element_type() != TypeOf(form.kind)) return false;
    if (static_cast<size_t>(shape.rank()) != rank) return false;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t wanted = d < batch_.size() ? batch_[d] : form.dims[d - batch_.size()];
      if (wanted != kAny && shape.dim(static_cast<int64_t>(d)) != wanted) return false;
    }
    return true;
  }
  // Returns true if operands and results are of these forms, and of one batch: only then are they read and written.
  // There may be one result less if it is optional.
  bool Fits(const Forms& operands, Forms results, bool last_is_optional = false) {
    if (last_is_optional && results_.size() + 1 == results.size()) results.pop_back();
    if (operands_.size() != operands.size() || results_.size() != results.size()) return false;
    const Shape first = operands_[0].shape;
    const auto inner = static_cast<int64_t>(operands[0].dims.size());
    if (!first.IsArray() || first.rank() < inner) return false;
    batch_.assign(first.dims().begin(), first.dims().end() - inner);
    batches_ = 1;
    for (int64_t size : batch_) batches_ *= size;
    int64_t elements = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!IsOf(operands[i], operands_[i].shape)) return false;
      elements += ElementsOf(operands_[i].shape);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!IsOf(results[i], results_[i].shape)) return false;
      elements += ElementsOf(results_[i].shape);
    }
    too_large_ = elements > kMaxCopiedElements;
    if (too_large_) return false;
    ZeroResults(operands_, results_);
    return true;
  }
  // Of one matrix.
  int64_t ElementsOf(Shape shape) const { return batches_ == 0 ? 0 : shape.element_count() / batches_; }
  // True after the last batch, and when the run has ended.
  bool Done(int64_t batch) const { return batch >= batches_ || ShouldStopAfter(1000); }

  Matrix Read(size_t operand, int64_t batch) const {
    const CustomCallOperand& from = operands_[operand];
    Matrix made(Dim(from.shape, 2), Dim(from.shape, 1));
    ReadNumbers(from, batch * made.rows() * made.columns(), made.rows() * made.columns(), made.data());
    return made;
  }
  std::vector<T> ReadVector(size_t operand, int64_t batch) const {
    const CustomCallOperand& from = operands_[operand];
    std::vector<T> made(static_cast<size_t>(Dim(from.shape, 1)));
    ReadNumbers(from, batch * static_cast<int64_t>(made.size()), static_cast<int64_t>(made.size()), made.data());
    return made;
  }
  static void ReadNumbers(const CustomCallOperand& from, int64_t first, int64_t count, T* to) {
    if (count == 0) return;
    const ElementType type = from.shape.element_type();
    const std::byte* const data = from.data + first * BytesOf(type);
    if constexpr (kComplex) {
      ReadComplex(type, data, 1, count, to);
    } else {
      ReadReals(type, data, 1, count, to);
    }
  }
  // Returns the place of a batch in a result, or null if it has another number of elements: values of a function that
  // has stopped, or that do not fit.
  std::byte* PlaceOf(int64_t count, size_t result, int64_t batch) {
    const CustomCallResult& to = results_[result];
    if (count == 0 && ElementsOf(to.shape) == 0) return nullptr;
    if (count != ElementsOf(to.shape)) {
      mismatch_ = true;
      return nullptr;
    }
    return to.data + batch * count * BytesOf(to.shape.element_type());
  }
  template <typename U>
  void Write(const U* values, int64_t count, size_t result, int64_t batch) {
    const ElementType type = results_[result].shape.element_type();
    std::byte* const data = PlaceOf(count, result, batch);
    if (data == nullptr) return;
    if constexpr (std::is_same_v<U, Complex>) {
      WriteComplex(type, values, count, data, 1);
    } else if (IsComplex(type)) {
      const std::vector<Complex> copy(values, values + count);
      WriteComplex(type, copy.data(), count, data, 1);
    } else {
      WriteReals(type, values, count, data, 1);
    }
  }
  template <typename U>
  void Write(const DenseMatrix<U>& matrix, size_t result, int64_t batch) {
    Write(matrix.data(), matrix.rows() * matrix.columns(), result, batch);
  }
  template <typename U>
  void Write(const std::vector<U>& values, size_t result, int64_t batch) {
    Write(values.data(), static_cast<int64_t>(values.size()), result, batch);
  }
  void WriteIntegers(const std::vector<int32_t>& values, size_t result, int64_t batch) {
    std::byte* const data = PlaceOf(static_cast<int64_t>(values.size()), result, batch);
    if (data != nullptr) std::memcpy(data, values.data(), values.size() * sizeof(int32_t));
  }
  void WriteInfo(int64_t info, size_t result, int64_t batch) {
    WriteIntegers({static_cast<int32_t>(info)}, result, batch);
  }

  bool Dispatch(std::string_view name);
  bool Cholesky();
  bool TriangularSolve();
  bool Lu();
  bool Qr();
  bool PivotedQr();
  bool ReflectionProduct(bool multiply);
  bool HermitianEigen();
  bool Svd();
  bool Eigen();
  bool Schur();
  bool Hessenberg();
  bool Tridiagonal();
  bool TridiagonalSolve();
  // The Schur form of a matrix that is divided by a power of two, if that is necessary.
  bool SchurOf(const Matrix& a, Matrix* t, Matrix* z, int* exponent) const;

  absl::Span<const CustomCallOperand> operands_;
  absl::Span<const CustomCallResult> results_;
  std::string_view config_;
  const bool double_;
  std::vector<int64_t> batch_;
  int64_t batches_ = 0;
  bool mismatch_ = false, too_large_ = false;
};

constexpr int64_t kLower = 'L', kLeft = 'L', kUnit = 'U', kNoTranspose = 'N', kConjugate = 'C', kVectors = 'V';

template <typename T>
bool LapackCall<T>::Cholesky() {
  const int64_t n = RowsOf(0);
  if (!Fits({Numbers({n, n})}, {Numbers({n, n}), Integers({})})) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix a = Read(0, b);
    const int64_t info = DecomposeCholesky(Attribute("uplo", kLower) == kLower, &a);
    Write(a, 0, b);
    WriteInfo(info, 1, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::TriangularSolve() {
  const int64_t n = RowsOf(0), rows = RowsOf(1), columns = ColumnsOf(1);
  if (!Fits({Numbers({n, n}), Numbers({rows, columns})}, {Numbers({rows, columns})})) return false;
  const int64_t transpose = Attribute("trans_x", kNoTranspose);
  const TriangularSystem system = {Attribute("side", kLeft) == kLeft, Attribute("uplo", kLower) == kLower,
                                   transpose != kNoTranspose, transpose == kConjugate, Attribute("diag", 'N') == kUnit};
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix x = Read(1, b);
    if (!SolveTriangular(system, Read(0, b), &x)) return false;
    Write(x, 0, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Lu() {
  const int64_t m = RowsOf(0), n = ColumnsOf(0), least = std::min(m, n);
  if (!Fits({Numbers({m, n})}, {Numbers({m, n}), Integers({least}), Integers({})})) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix a = Read(0, b);
    std::vector<int32_t> pivots;
    const int64_t info = DecomposeLu(&a, &pivots);
    Write(a, 0, b);
    WriteIntegers(pivots, 1, b);
    WriteInfo(info, 2, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Qr() {
  const int64_t m = RowsOf(0), n = ColumnsOf(0), least = std::min(m, n);
  if (!Fits({Numbers({m, n})}, {Numbers({m, n}), Numbers({least}), Integers({})}, true)) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix a = Read(0, b);
    Write(DecomposeQr(&a), 1, b);
    Write(a, 0, b);
    if (results_.size() > 2) WriteInfo(0, 2, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::PivotedQr() {
  const int64_t m = RowsOf(0), n = ColumnsOf(0), least = std::min(m, n);
  const Forms results = {Numbers({m, n}), Integers({n}), Numbers({least}), Integers({})};
  if (!Fits({Numbers({m, n}), Integers({n})}, results, true)) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix a = Read(0, b);
    std::vector<int32_t> order(static_cast<size_t>(a.columns()));
    if (!order.empty())
      std::memcpy(order.data(), operands_[1].data + static_cast<size_t>(b) * order.size() * sizeof(int32_t),
                  order.size() * sizeof(int32_t));
    Write(DecomposePivotedQr(&a, &order), 2, b);
    Write(a, 0, b);
    WriteIntegers(order, 1, b);
    if (results_.size() > 3) WriteInfo(0, 3, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::ReflectionProduct(bool multiply) {
  const int64_t m = RowsOf(0), n = ColumnsOf(0), taus_count = ColumnsOf(1);
  const int64_t rows = multiply ? RowsOf(2) : m, columns = multiply ? ColumnsOf(2) : n;
  Forms forms = {Numbers({m, n}), Numbers({taus_count})};
  if (multiply) forms.push_back(Numbers({rows, columns}));
  if (!Fits(forms, {Numbers({rows, columns}), Integers({})}, true)) return false;
  const bool left = Attribute("left", 1) != 0, transpose = Attribute("transpose", 0) != 0;
  for (int64_t b = 0; !Done(b); ++b) {
    const Matrix a = Read(0, b);
    const std::vector<T> taus = ReadVector(1, b);
    Matrix c = multiply ? Read(2, b) : Matrix(a.rows(), a.columns());
    for (int64_t i = 0; !multiply && i < std::min(a.rows(), a.columns()); ++i) c(i, i) = 1;
    if (!MultiplyByReflections(a, taus, left || !multiply, transpose && multiply, &c)) return false;
    Write(c, 0, b);
    if (results_.size() > 1) WriteInfo(0, 1, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::HermitianEigen() {
  const int64_t n = RowsOf(0);
  if (!Fits({Numbers({n, n})}, {Numbers({n, n}), Reals({n}), Integers({})})) return false;
  const bool lower = Attribute("uplo", kLower) == kLower;
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix a = Read(0, b), vectors(0, 0);
    for (int64_t r = 0; r < a.rows(); ++r) {
      a(r, r) = std::real(a(r, r));
      for (int64_t c = 0; c < r; ++c) (lower ? a(c, r) : a(r, c)) = Conjugated(lower ? a(r, c) : a(c, r));
    }
    const std::vector<double> values = EigenvaluesOfHermitian(a, &vectors);
    Write(vectors, 0, b);
    Write(values, 1, b);
    WriteInfo(0, 2, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Svd() {
  const int64_t m = RowsOf(0), n = ColumnsOf(0), least = std::min(m, n);
  const Forms results = {Numbers({m, n}), Reals({least}), Numbers({m, kAny}), Numbers({kAny, n}), Integers({})};
  if (!Fits({Numbers({m, n})}, results)) return false;
  const bool no_vectors = Attribute("mode", 'A') == 'N';
  for (int64_t b = 0; !Done(b); ++b) {
    const Matrix a = Read(0, b);
    Matrix u(a.rows(), no_vectors ? least : std::max(least, Dim(results_[2].shape, 1)));
    Matrix vh(no_vectors ? least : std::max(least, Dim(results_[3].shape, 2)), a.columns());
    const int64_t us = Dim(results_[2].shape, 1), vs = Dim(results_[3].shape, 2);
    if (!no_vectors && ((us != m && us != least) || (vs != n && vs != least))) return false;
    const std::vector<double> values = SingularValues(a, &u, &vh);
    Write(a, 0, b);
    Write(values, 1, b);
    if (!no_vectors) {
      Write(u, 2, b);
      Write(vh, 3, b);
    }
    WriteInfo(0, 4, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::SchurOf(const Matrix& a, Matrix* t, Matrix* z, int* exponent) const {
  *t = a;
  for (int64_t i = 0; i < a.rows() * a.columns(); ++i) {
    if (!std::isfinite(std::real(a.data()[i])) || !std::isfinite(std::imag(a.data()[i]))) return false;
  }
  *exponent = ScaleToRange(t);
  ReduceToHessenberg<T>(t, z, nullptr, nullptr);
  return ReduceToSchur(t, z);
}

DenseMatrix<Complex> ToComplex(const DenseMatrix<double>& m) {
  DenseMatrix<Complex> made(m.rows(), m.columns());
  for (int64_t i = 0; i < m.rows() * m.columns(); ++i) made.data()[i] = m.data()[i];
  return made;
}
DenseMatrix<Complex> ToComplex(const DenseMatrix<Complex>& m) { return m; }

template <typename T>
bool LapackCall<T>::Eigen() {
  const size_t values = kComplex ? 1 : 2;
  const int64_t n = RowsOf(0);
  const Form vectors_form = {Kind::kComplex, {n, n}};
  Forms results = {Numbers({n})};
  if (!kComplex) results.push_back(Numbers({n}));
  results.insert(results.end(), {vectors_form, vectors_form, Integers({})});
  if (!Fits({Numbers({n, n})}, results)) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    const Matrix a = Read(0, b);
    Matrix t(0, 0), z(0, 0);
    int exponent = 0;
    const bool found = SchurOf(a, &t, &z, &exponent);
    DenseMatrix<Complex> ct = ToComplex(t), cz = ToComplex(z);
    if (found && !kComplex) SplitPairs(&ct, &cz);
    std::vector<double> real, imaginary;
    std::vector<Complex> all;
    for (int64_t i = 0; i < a.rows(); ++i) {
      const Complex value = found ? ScaledBy(ct(i, i), exponent) : Complex(std::numeric_limits<double>::quiet_NaN());
      const bool single = !kComplex && (i == 0 || t(i, i - 1) == T(0)) && (i + 1 == a.rows() || t(i + 1, i) == T(0));
      all.push_back(value);
      real.push_back(value.real());
      imaginary.push_back(single ? 0 : value.imag());
    }
    if (kComplex) {
      Write(all, 0, b);
    } else {
      Write(real, 0, b);
      Write(imaginary, 1, b);
    }
    for (const bool left : {true, false}) {
      if (!found || Attribute(left ? "compute_left" : "compute_right", 'N') != kVectors) continue;
      DenseMatrix<Complex> vectors = Eigenvectors(ct, cz, left);
      for (int64_t c = 0; !kComplex && c < a.rows(); ++c) {
        const double part = imaginary[static_cast<size_t>(c)];
        for (int64_t r = 0; r < a.rows(); ++r) {
          if (part == 0) vectors(r, c) = vectors(r, c).real();
          if (part < 0 && c > 0) vectors(r, c) = std::conj(vectors(r, c - 1));
        }
      }
      Write(vectors, values + (left ? 0 : 1), b);
    }
    WriteInfo(found ? 0 : 1, values + 2, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Schur() {
  // (a, vectors, eigenvalues, selected, info); eigenvalues of real matrices are two vectors.
  const size_t values = kComplex ? 1 : 2;
  const int64_t n = RowsOf(0);
  Forms results = {Numbers({n, n}), Numbers({n, n}), Numbers({n})};
  if (!kComplex) results.push_back(Numbers({n}));
  results.insert(results.end(), {Integers({}), Integers({})});
  if (!Fits({Numbers({n, n})}, results)) return false;
  if (Attribute("sort", 'N') != 'N') return false;
  for (int64_t b = 0; !Done(b); ++b) {
    const Matrix a = Read(0, b);
    Matrix t(0, 0), z(0, 0);
    int exponent = 0;
    const bool found = SchurOf(a, &t, &z, &exponent);
    if (z.rows() != n) z = Matrix(n, n);
    std::vector<T> first, second;
    for (int64_t i = 0; i < a.rows(); ++i) {
      first.push_back(ScaledBy(t(i, i), exponent));
      T part = 0;
      if (i + 1 < a.rows() && t(i + 1, i) != T(0)) part = std::sqrt(std::abs(t(i, i + 1) * t(i + 1, i)));
      if (i > 0 && t(i, i - 1) != T(0)) part = -std::sqrt(std::abs(t(i - 1, i) * t(i, i - 1)));
      second.push_back(ScaledBy(part, exponent));
    }
    ScaleMatrix(exponent, &t);
    Write(t, 0, b);
    if (Attribute("mode", kVectors) == kVectors) Write(z, 1, b);
    Write(first, 2, b);
    if (!kComplex) Write(second, 3, b);
    WriteInfo(0, values + 2, b);
    WriteInfo(found ? 0 : 1, values + 3, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Hessenberg() {
  const int64_t n = RowsOf(0);
  const int64_t count = std::max<int64_t>(0, n - 1);
  if (!Fits({Numbers({n, n})}, {Numbers({n, n}), Numbers({count}), Integers({})})) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix a = Read(0, b), q(0, 0), reflections(0, 0);
    const bool whole = Attribute("low", 1) == 1 && Attribute("high", a.rows()) == a.rows();
    if (!whole) return false;
    std::vector<T> taus;
    const int exponent = ScaleToRange(&a);
    ReduceToHessenberg(&a, &q, &reflections, &taus);
    UnscaleUpper(exponent, 1, &reflections);
    Write(reflections, 0, b);
    Write(taus, 1, b);
    WriteInfo(0, 2, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Tridiagonal() {
  const int64_t n = RowsOf(0);
  const int64_t count = std::max<int64_t>(0, n - 1);
  const Forms results = {Numbers({n, n}), Reals({n}), Reals({count}), Numbers({count}), Integers({})};
  if (!Fits({Numbers({n, n})}, results) || Attribute("uplo", kLower) != kLower) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    Matrix a = Read(0, b);
    std::vector<double> diagonal, beside;
    std::vector<T> taus;
    ReduceToTridiagonal(&a, &diagonal, &beside, &taus);
    Write(a, 0, b);
    Write(diagonal, 1, b);
    Write(beside, 2, b);
    Write(taus, 3, b);
    WriteInfo(0, 4, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::TridiagonalSolve() {
  const int64_t n = RowsOf(3), columns = ColumnsOf(3);
  const Form row = Numbers({n}), sides = Numbers({n, columns});
  if (!Fits({row, row, row, sides}, {row, row, row, sides, Integers({})})) return false;
  for (int64_t b = 0; !Done(b); ++b) {
    std::vector<T> below = ReadVector(0, b), diagonal = ReadVector(1, b), above = ReadVector(2, b);
    Matrix x = Read(3, b);
    const int64_t info = SolveTridiagonal(&below, &diagonal, &above, &x);
    Write(below, 0, b);
    Write(diagonal, 1, b);
    Write(above, 2, b);
    Write(x, 3, b);
    WriteInfo(info, 4, b);
  }
  return true;
}

template <typename T>
absl::Status LapackCall<T>::Run(std::string_view name) {
  const bool done = Dispatch(name);
  if (done && (!mismatch_ || custom_call_stopped)) return absl::OkStatus();
  if (too_large_) return CopiesTooLarge();
  return absl::InvalidArgumentError(StrCat("operands, results or attributes are not those of LAPACK's ", name,
                                           ", or of a form that has no function"));
}

template <typename T>
bool LapackCall<T>::Dispatch(std::string_view name) {
  if (name == "potrf") return Cholesky();
  if (name == "trsm") return TriangularSolve();
  if (name == "getrf") return Lu();
  if (name == "geqrf") return Qr();
  if (name == "geqp3") return PivotedQr();
  if (name == "orgqr" || name == "ungqr") return ReflectionProduct(false);
  if (name == "ormqr" || name == "unmqr") return ReflectionProduct(true);
  if (name == "syevd" || name == "heevd") return HermitianEigen();
  if (name == "gesdd" || name == "gesvd") return Svd();
  if (name == "geev") return Eigen();
  if (name == "gees") return Schur();
  if (name == "gehrd") return Hessenberg();
  if (name == "sytrd" || name == "hetrd") return Tridiagonal();
  return name == "gtsv" && TridiagonalSolve();
}

constexpr std::string_view kLapackNames[] = {"potrf", "trsm",  "getrf", "geqrf", "geqp3", "orgqr", "ungqr",
                                             "ormqr", "unmqr", "syevd", "heevd", "gesdd", "gesvd", "geev",
                                             "gees",  "gehrd", "sytrd", "hetrd", "gtsv"};

}  // namespace

CustomCallFunction LapackCallFor(std::string_view target) {
  constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi";
  if (!target.starts_with(kPrefix) || !target.ends_with(kSuffix) || target.size() <= kPrefix.size() + kSuffix.size()) {
    return nullptr;
  }
  const char type = target[kPrefix.size()];
  const std::string name(target.substr(kPrefix.size() + 1, target.size() - kPrefix.size() - kSuffix.size() - 1));
  const bool real = type == 's' || type == 'd', complex = type == 'c' || type == 'z';
  if ((!real && !complex) ||
      std::find(std::begin(kLapackNames), std::end(kLapackNames), name) == std::end(kLapackNames))
    return nullptr;
  return [name, complex, is_double = type == 'd' || type == 'z'](absl::Span<const CustomCallOperand> operands,
                                                                 absl::Span<const CustomCallResult> results,
                                                                 std::string_view config) -> absl::Status {
    if (complex) return LapackCall<Complex>(operands, results, config, is_double).Run(name);
    return LapackCall<double>(operands, results, config, is_double).Run(name);
  };
}

}  // namespace hlokit::interp
