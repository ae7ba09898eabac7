// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/lapack_calls.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
             std::string_view config)
      : operands_(operands), results_(results), config_(config) {}

  // Returns false if operands and results are not those of the function.
  bool Run(std::string_view name);

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

  static int64_t Dim(Shape shape, int64_t from_end) {
    return shape.rank() >= from_end ? shape.dim(shape.rank() - from_end) : 1;
  }
  static int64_t BatchesOf(Shape shape, int64_t rank) {
    int64_t count = 1;
    for (int64_t d = 0; d + rank < shape.rank(); ++d) count *= shape.dim(d);
    return count;
  }
  // Returns true if there are as many operands and results, of numbers that this call reads.
  bool Fits(size_t operands, size_t results) const {
    if (operands_.size() != operands || results_.size() != results) return false;
    const auto number = [](Shape s) { return s.IsArray(); };
    return std::all_of(operands_.begin(), operands_.end(), [&](const auto& o) { return number(o.shape); }) &&
           std::all_of(results_.begin(), results_.end(), [&](const auto& r) { return number(r.shape); }) &&
           operands_[0].shape.rank() >= (operands == 4 ? 1 : 2);
  }

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
    const ElementType type = from.shape.element_type();
    const std::byte* const data = from.data + first * BytesOf(type);
    if constexpr (kComplex) {
      ReadComplex(type, data, 1, count, to);
    } else {
      ReadReals(type, data, 1, count, to);
    }
  }
  template <typename U>
  void Write(const U* values, int64_t count, size_t result, int64_t batch) {
    const CustomCallResult& to = results_[result];
    const ElementType type = to.shape.element_type();
    std::byte* const data = to.data + batch * count * BytesOf(type);
    if (count == 0) return;
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
    const size_t bytes = values.size() * sizeof(int32_t);
    if (bytes == 0 || results_[result].shape.element_type() != ElementType::kS32) return;
    std::memcpy(results_[result].data + static_cast<size_t>(batch) * bytes, values.data(), bytes);
  }
  void WriteInfo(int64_t info, size_t result, int64_t batch) {
    WriteIntegers({static_cast<int32_t>(info)}, result, batch);
  }

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
  // The Schur form of a matrix, as a complex one too.
  bool SchurOf(const Matrix& a, Matrix* t, Matrix* z) const;

  absl::Span<const CustomCallOperand> operands_;
  absl::Span<const CustomCallResult> results_;
  std::string_view config_;
};

constexpr int64_t kLower = 'L', kLeft = 'L', kUnit = 'U', kNoTranspose = 'N', kConjugate = 'C', kVectors = 'V';

template <typename T>
bool LapackCall<T>::Cholesky() {
  if (!Fits(1, 2)) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    Matrix a = Read(0, b);
    const int64_t info = DecomposeCholesky(Attribute("uplo", kLower) == kLower, &a);
    Write(a, 0, b);
    WriteInfo(info, 1, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::TriangularSolve() {
  if (!Fits(2, 1) || operands_[1].shape.dims() != results_[0].shape.dims()) return false;
  const int64_t transpose = Attribute("trans_x", kNoTranspose);
  const TriangularSystem system = {Attribute("side", kLeft) == kLeft, Attribute("uplo", kLower) == kLower,
                                   transpose != kNoTranspose, transpose == kConjugate, Attribute("diag", 'N') == kUnit};
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    Matrix x = Read(1, b);
    if (!SolveTriangular(system, Read(0, b), &x)) return false;
    Write(x, 0, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Lu() {
  if (!Fits(1, 3)) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
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
  if (operands_.size() != 1 || results_.size() < 2 || !Fits(1, results_.size())) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    Matrix a = Read(0, b);
    Write(DecomposeQr(&a), 1, b);
    Write(a, 0, b);
    if (results_.size() > 2) WriteInfo(0, 2, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::PivotedQr() {
  if (operands_.size() != 2 || results_.size() < 3 || !Fits(2, results_.size())) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    Matrix a = Read(0, b);
    std::vector<int32_t> order(static_cast<size_t>(a.columns()));
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
  if (results_.empty() || !Fits(multiply ? 3 : 2, results_.size())) return false;
  const bool left = Attribute("left", 1) != 0, transpose = Attribute("transpose", 0) != 0;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
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
  if (!Fits(1, 3)) return false;
  const bool lower = Attribute("uplo", kLower) == kLower;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    Matrix a = Read(0, b), vectors(0, 0);
    if (a.rows() != a.columns()) return false;
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
  if (!Fits(1, 5)) return false;
  const bool no_vectors = Attribute("mode", 'A') == 'N';
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    const Matrix a = Read(0, b);
    const int64_t least = std::min(a.rows(), a.columns());
    Matrix u(a.rows(), no_vectors ? least : std::max(least, Dim(results_[2].shape, 1)));
    Matrix vh(no_vectors ? least : std::max(least, Dim(results_[3].shape, 2)), a.columns());
    if (u.columns() > a.rows() || vh.rows() > a.columns()) return false;
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
bool LapackCall<T>::SchurOf(const Matrix& a, Matrix* t, Matrix* z) const {
  *t = a;
  for (int64_t i = 0; i < a.rows() * a.columns(); ++i) {
    if (!std::isfinite(std::real(a.data()[i])) || !std::isfinite(std::imag(a.data()[i]))) return false;
  }
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
  if (!Fits(1, values + 3)) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    const Matrix a = Read(0, b);
    if (a.rows() != a.columns()) return false;
    Matrix t(0, 0), z(0, 0);
    const bool found = SchurOf(a, &t, &z);
    DenseMatrix<Complex> ct = ToComplex(t), cz = ToComplex(z);
    if (found && !kComplex) SplitPairs(&ct, &cz);
    std::vector<double> real, imaginary;
    std::vector<Complex> all;
    for (int64_t i = 0; i < a.rows(); ++i) {
      const Complex value = found ? ct(i, i) : Complex(std::numeric_limits<double>::quiet_NaN());
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
  if (!Fits(1, values + 4)) return false;
  if (Attribute("sort", 'N') != 'N') return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    const Matrix a = Read(0, b);
    if (a.rows() != a.columns()) return false;
    Matrix t(0, 0), z(0, 0);
    const bool found = SchurOf(a, &t, &z);
    std::vector<T> first, second;
    for (int64_t i = 0; i < a.rows(); ++i) {
      first.push_back(t(i, i));
      T part = 0;
      if (i + 1 < a.rows() && t(i + 1, i) != T(0)) part = std::sqrt(std::abs(t(i, i + 1) * t(i + 1, i)));
      if (i > 0 && t(i, i - 1) != T(0)) part = -std::sqrt(std::abs(t(i - 1, i) * t(i, i - 1)));
      second.push_back(part);
    }
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
  if (!Fits(1, 3)) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    Matrix a = Read(0, b), q(0, 0), reflections(0, 0);
    const bool whole = Attribute("low", 1) == 1 && Attribute("high", a.rows()) == a.rows();
    if (a.rows() != a.columns() || !whole) return false;
    std::vector<T> taus;
    ReduceToHessenberg(&a, &q, &reflections, &taus);
    Write(reflections, 0, b);
    Write(taus, 1, b);
    WriteInfo(0, 2, b);
  }
  return true;
}

template <typename T>
bool LapackCall<T>::Tridiagonal() {
  if (!Fits(1, 5) || Attribute("uplo", kLower) != kLower) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[0].shape, 2); ++b) {
    Matrix a = Read(0, b);
    if (a.rows() != a.columns()) return false;
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
  if (!Fits(4, 5) || operands_[3].shape.rank() < 2) return false;
  for (int64_t b = 0; b < BatchesOf(operands_[3].shape, 2); ++b) {
    std::vector<T> below = ReadVector(0, b), diagonal = ReadVector(1, b), above = ReadVector(2, b);
    Matrix x = Read(3, b);
    if (below.size() != diagonal.size() || above.size() != diagonal.size() ||
        static_cast<int64_t>(diagonal.size()) != x.rows()) {
      return false;
    }
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
bool LapackCall<T>::Run(std::string_view name) {
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
  return [name, complex](absl::Span<const CustomCallOperand> operands, absl::Span<const CustomCallResult> results,
                         std::string_view config) -> absl::Status {
    const bool done = complex ? LapackCall<Complex>(operands, results, config).Run(name)
                              : LapackCall<double>(operands, results, config).Run(name);
    if (done) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("operands, results or attributes are not those of LAPACK's ", name,
                                             ", or of a form that has no function"));
  };
}

}  // namespace hlokit::interp
