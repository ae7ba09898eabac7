// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of one to three dimensions and any length.
//
// Lengths of a power of two use vectors (line_fft.h) or, in long double, the iterative radix-2 algorithm; others
// Bluestein's, which turns them into a convolution of a power of two. c64 and f32 are computed in double, c128 and f64
// in long double, so that what remains of rounding is the one at the end.
//
// kissfft, which Eigen's FFT is too, takes n^2 steps for a prime (10007: 2.6 s, here 1 ms) and 1.3 to 2 times as long
// for powers of two (c64, up to 4096, without vectors here); only lengths like 1000 are faster (4 times). Eigen's roots
// are doubles.
#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <numbers>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/contractions/line_fft.h"
#include "interp/exact/machine/run_context.h"
#include "ir/ops/attribute.h"

namespace hlokit::interp {
namespace {

// Transforms lines of one length. The exponent's sign is -1 (forward); an inverse transform conjugates before and
// after.
template <typename Real>
class LineTransform {
 public:
  using Complex = std::complex<Real>;

  // Building and running end early if the run is to stop.
  LineTransform(size_t n, RunContext& context) : n_(n), size_(n), context_(context) {
    const bool power_of_two = (n & (n - 1)) == 0;
    if (!power_of_two) {
      size_ = 1;
      while (size_ < 2 * n - 1) size_ *= 2;
    }
    // e^(-2 pi i k / size), each computed directly so that errors do not accumulate.
    if constexpr (kVectors) {
      if (size_ <= kMaxVectorLength) vectors_.emplace(size_, Root);
    }
    if (!vectors_) {
      roots_.reserve(size_ / 2);
      for (size_t k = 0; k < size_ / 2 && !StopsAfter(1); ++k) roots_.push_back(Root(k, size_));
    }
    if (power_of_two || stopped_) return;
    // Bluestein: jk = (j^2 + k^2 - (k - j)^2) / 2.
    chirp_.resize(n);
    kernel_.assign(size_, Complex(0));
    for (size_t k = 0; k < n && !StopsAfter(1); ++k) {
      // k^2 modulo 2n, since the chirp has that period.
      const size_t square = static_cast<size_t>(static_cast<unsigned __int128>(k) * k % (2 * n));
      chirp_[k] = Root(square, 2 * n);
      kernel_[k] = std::conj(chirp_[k]);
      if (k != 0) kernel_[size_ - k] = kernel_[k];
    }
    PowerOfTwo(kernel_.data());
  }

  // Returns the transform of lines in vectors; null: there is none for this length.
  LineFft* vectors() { return vectors_ && chirp_.empty() && n_ == size_ ? &*vectors_ : nullptr; }
  // Counts a line of `vectors`; returns true if the run is to stop.
  bool StopsAfterLine() { return StopsAfter(size_); }

  // Transforms `x` in place.
  void Run(Complex* x) {
    if (stopped_) return;
    if (chirp_.empty()) {
      PowerOfTwo(x);
      return;
    }
    work_.assign(size_, Complex(0));
    for (size_t k = 0; k < n_; ++k) work_[k] = Times(x[k], chirp_[k]);
    PowerOfTwo(work_.data());
    if (stopped_) return;
    for (size_t k = 0; k < size_; ++k) work_[k] = std::conj(Times(work_[k], kernel_[k]));
    PowerOfTwo(work_.data());
    if (stopped_) return;
    const Real scale = Real{1} / static_cast<Real>(size_);
    for (size_t k = 0; k < n_; ++k) x[k] = Times(std::conj(work_[k]) * scale, chirp_[k]);
  }

 private:
  // Without the checks for infinities of the library's operator.
  static Complex Times(Complex a, Complex b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

  static Complex Root(size_t k, size_t n) {
    // Angles are reduced to an octant, where sine and cosine are most accurate.
    size_t eighths = 8 * k / n;
    const Real rest = static_cast<Real>(8 * k - eighths * n) / static_cast<Real>(n);  // of an eighth
    Real angle = rest * std::numbers::pi_v<Real> / 4;
    if (eighths % 2 != 0) angle = std::numbers::pi_v<Real> / 4 - angle;
    Real c = std::cos(angle);
    Real s = std::sin(angle);
    if (((eighths + 1) / 2) % 2 != 0) std::swap(c, s);
    if (eighths >= 2 && eighths < 6) c = -c;
    if (eighths >= 4) s = -s;
    return {c, -s};
  }

  // Returns true if the run is to stop, which is checked once in a while.
  bool StopsAfter(size_t steps) {
    constexpr size_t kStepsBetweenChecks = size_t{1} << 16;
    steps_ += steps;
    if (steps_ < kStepsBetweenChecks) return stopped_;
    steps_ = 0;
    return stopped_ = stopped_ || context_.ShouldStop();
  }

  void PowerOfTwo(Complex* x) {
    if (stopped_) return;
    if constexpr (kVectors) {
      if (vectors_) {
        if (!StopsAfter(size_)) vectors_->Run(x);
        return;
      }
    }
    Radix2(x);
  }

  void Radix2(Complex* x) {
    for (size_t i = 1, j = 0; i < size_ && !StopsAfter(1); ++i) {
      size_t bit = size_ >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (size_t half = 1; half < size_; half *= 2) {
      const size_t step = size_ / (2 * half);
      for (size_t begin = 0; begin < size_; begin += 2 * half) {
        constexpr size_t kChunk = size_t{1} << 16;
        for (size_t chunk = 0; chunk < half; chunk += kChunk) {
          const size_t end = std::min(half, chunk + kChunk);
          if (StopsAfter(end - chunk)) return;
          for (size_t k = chunk; k < end; ++k) {
            const Complex odd = Times(x[begin + half + k], roots_[k * step]);
            x[begin + half + k] = x[begin + k] - odd;
            x[begin + k] += odd;
          }
        }
      }
    }
  }

  static constexpr bool kVectors = std::is_same_v<Real, double>;
  static constexpr size_t kMaxVectorLength = size_t{1} << 18;  // of a run without a check whether it is to stop

  size_t n_;
  size_t size_;
  RunContext& context_;
  size_t steps_ = 0;  // since the last check
  bool stopped_ = false;
  std::optional<LineFft> vectors_;
  std::vector<Complex> roots_;
  std::vector<Complex> chirp_, kernel_, work_;
};

struct FftParams : ThunkParams {
  FftType type = FftType::kFft;
  ElementType from = ElementType::kC64;
  ElementType to = ElementType::kC64;
  Dims lengths;  // of the transform, outermost first
  int64_t batches = 0;
  // Sizes of the operand and of the result in the transformed dimensions. Where they differ from the lengths, zeros are
  // added or elements dropped.
  Dims in_dims, out_dims;
};

// Calls body(a, b) with the positions of all elements that arrays of the two sizes have in common.
template <typename Body>
void ForEachCommon(const Dims& a, const Dims& b, Body body) {
  const size_t rank = a.size();
  Dims index(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    if (a[d] == 0 || b[d] == 0) return;
  }
  for (;;) {
    int64_t at_a = 0;
    int64_t at_b = 0;
    for (size_t d = 0; d < rank; ++d) {
      at_a = at_a * a[d] + index[d];
      at_b = at_b * b[d] + index[d];
    }
    const int64_t run = std::min(a[rank - 1], b[rank - 1]);
    for (int64_t i = 0; i < run; ++i) body(at_a + i, at_b + i);
    size_t d = rank - 1;
    for (;; --d) {
      if (d == 0) return;
      if (++index[d - 1] < std::min(a[d - 1], b[d - 1])) break;
      index[d - 1] = 0;
    }
  }
}

// Lines of c64 whose length is a power of two, and not changed.
void RunLines(const FftParams& p, LineTransform<double>* transform, const std::byte* in, std::byte* out, int64_t begin,
              int64_t end) {
  const int64_t n = p.lengths[0];
  const auto* from = reinterpret_cast<const std::complex<float>*>(in);
  auto* to = reinterpret_cast<std::complex<float>*>(out);
  for (int64_t batch = begin; batch < end && !transform->StopsAfterLine(); ++batch) {
    transform->vectors()->Run(from + batch * n, to + batch * n, p.type == FftType::kIfft);
  }
}

template <typename Real, typename Stored>
void RunBatches(const FftParams& p, const std::byte* in, std::byte* out, RunContext& context) {
  using Complex = std::complex<Real>;
  const bool inverse = p.type == FftType::kIfft || p.type == FftType::kIrfft;
  const bool real_in = p.type == FftType::kRfft;
  const bool real_out = p.type == FftType::kIrfft;
  const size_t rank = p.lengths.size();
  const int64_t minor = p.lengths.back();
  // While the other dimensions are transformed, the last one has its complex size. Real values take the full one.
  const int64_t complex_minor = real_in || real_out ? minor / 2 + 1 : minor;
  Dims complex_dims = p.lengths;
  complex_dims.back() = complex_minor;
  const int64_t complex_count = ElementCount(complex_dims);
  const int64_t full_count = ElementCount(p.lengths);
  const int64_t rows = full_count / minor;
  const int64_t in_count = ElementCount(p.in_dims);
  const int64_t out_count = ElementCount(p.out_dims);
  context.ParallelFor(p.batches, static_cast<double>(full_count) * 100, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<Stored, float>) {
      if (rank == 1 && !real_in && !real_out && p.in_dims == p.lengths && p.out_dims == p.lengths) {
        LineTransform<double> transform(static_cast<size_t>(minor), context);
        if (transform.vectors() != nullptr) return RunLines(p, &transform, in, out, begin, end);
      }
    }
    std::vector<Complex> data(static_cast<size_t>(complex_count));
    std::vector<Real> reals(static_cast<size_t>(real_in || real_out ? full_count : 0));
    std::vector<Complex> line(static_cast<size_t>(*std::max_element(p.lengths.begin(), p.lengths.end())));
    std::vector<std::unique_ptr<LineTransform<Real>>> transforms;
    for (int64_t n : p.lengths) {
      transforms.push_back(std::make_unique<LineTransform<Real>>(static_cast<size_t>(n), context));
    }
    for (int64_t batch = begin; batch < end; ++batch) {
      if (context.failed()) return;
      if (real_in) {
        const Stored* x = reinterpret_cast<const Stored*>(in) + batch * in_count;
        std::fill(reals.begin(), reals.end(), Real{0});
        ForEachCommon(p.lengths, p.in_dims, [&](int64_t to, int64_t from) { reals[to] = static_cast<Real>(x[from]); });
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t i = 0; i < minor; ++i) line[i] = Complex(reals[row * minor + i]);
          transforms.back()->Run(line.data());
          std::copy_n(line.begin(), complex_minor, data.begin() + row * complex_minor);
        }
      } else {
        const std::complex<Stored>* x = reinterpret_cast<const std::complex<Stored>*>(in) + batch * in_count;
        std::fill(data.begin(), data.end(), Complex(0));
        ForEachCommon(complex_dims, p.in_dims, [&](int64_t to, int64_t from) {
          // An inverse transform is the conjugate of the forward one of the conjugate.
          const Complex v(static_cast<Real>(x[from].real()), static_cast<Real>(x[from].imag()));
          data[to] = inverse ? std::conj(v) : v;
        });
      }
      // All dimensions that are complex on both sides.
      int64_t stride = complex_count;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t n = complex_dims[d];
        stride /= n;
        if (d + 1 == rank && (real_in || real_out)) break;
        for (int64_t block = 0; block < complex_count; block += n * stride) {
          for (int64_t start = block; start < block + stride && !context.failed(); ++start) {
            if (stride == 1) {
              transforms[d]->Run(data.data() + start);
              continue;
            }
            for (int64_t i = 0; i < n; ++i) line[i] = data[start + i * stride];
            transforms[d]->Run(line.data());
            for (int64_t i = 0; i < n; ++i) data[start + i * stride] = line[i];
          }
        }
      }
      if (context.failed()) return;
      if (real_out) {
        Stored* to = reinterpret_cast<Stored*>(out) + batch * out_count;
        const Real scale = Real{1} / static_cast<Real>(full_count);
        for (int64_t row = 0; row < rows; ++row) {
          // The other half is the complex conjugate.
          for (int64_t i = 0; i < complex_minor; ++i) line[i] = data[row * complex_minor + i];
          line[0] = Complex(line[0].real());
          if (minor % 2 == 0) line[minor / 2] = Complex(line[minor / 2].real());
          for (int64_t i = complex_minor; i < minor; ++i) line[i] = std::conj(line[minor - i]);
          transforms.back()->Run(line.data());
          for (int64_t i = 0; i < minor; ++i) reals[row * minor + i] = line[i].real() * scale;
        }
        std::fill_n(to, out_count, Stored{0});
        ForEachCommon(p.out_dims, p.lengths,
                      [&](int64_t at, int64_t from) { to[at] = static_cast<Stored>(reals[from]); });
        continue;
      }
      std::complex<Stored>* to = reinterpret_cast<std::complex<Stored>*>(out) + batch * out_count;
      const Real scale = inverse ? Real{1} / static_cast<Real>(full_count) : Real{1};
      std::fill_n(to, out_count, std::complex<Stored>(0));
      ForEachCommon(p.out_dims, complex_dims, [&](int64_t at, int64_t from) {
        const Complex v = inverse ? std::conj(data[from]) * scale : data[from];
        to[at] = {static_cast<Stored>(v.real()), static_cast<Stored>(v.imag())};
      });
    }
  });
}

void RunFft(const FftParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  if (p.batches * ElementCount(p.out_dims) == 0) return;
  if (ElementCount(p.lengths) == 0) {
    std::memset(out[0], 0, static_cast<size_t>(p.batches * ElementCount(p.out_dims) * BytesOf(p.to)));
    return;
  }
  if (p.to == ElementType::kC128 || p.to == ElementType::kF64) {
    RunBatches<long double, double>(p, in[0], out[0], context);
  } else {
    RunBatches<double, float>(p, in[0], out[0], context);
  }
}

}  // namespace

void PrepareFft(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  if (b.shape().IsArray() && b.shape().element_count() == 0) {
    b.SetResult(b.Zeros(b.shape()));
    return;
  }
  const View view = b.MakeDense(b.operand(0));
  const Shape shape = b.shape();
  auto params = std::make_unique<FftParams>();
  params->type = instruction.enum_attr(Attr::kFftType, FftType::kFft);
  params->from = view.type();
  params->to = shape.element_type();
  const absl::Span<const int64_t> lengths = instruction.list_attr(Attr::kFftLength);
  params->lengths.assign(lengths.begin(), lengths.end());
  const int64_t rank = static_cast<int64_t>(lengths.size());
  const int64_t offset = shape.rank() - rank;
  bool fits = rank >= 1 && offset >= 0 && view.shape.rank() == shape.rank();
  params->batches = 1;
  for (int64_t d = 0; fits && d < shape.rank(); ++d) {
    if (d < offset) {
      params->batches *= shape.dim(d);
      continue;
    }
    params->in_dims.push_back(view.shape.dim(d));
    params->out_dims.push_back(shape.dim(d));
    const int64_t n = lengths[d - offset];
    fits = n >= 0 && n <= (int64_t{1} << 30);
  }
  // The size of the work array follows the lengths, not the operand.
  int64_t work = 1;
  for (int64_t n : lengths) fits = fits && !__builtin_mul_overflow(work, std::max<int64_t>(n, 1), &work);
  fits = fits && work <= b.program().options().limits.max_bytes / 128;
  const bool real_in = params->type == FftType::kRfft;
  const bool real_out = params->type == FftType::kIrfft;
  fits = fits && (real_in ? IsFloat(params->from) : IsComplex(params->from)) &&
         (real_out ? IsFloat(params->to) : IsComplex(params->to)) &&
         ComponentType(params->from) == ComponentType(params->to) && BitsOf(ComponentType(params->from)) >= 32;
  if (!fits) {
    b.FailMismatch("an operand of f32, f64, c64 or c128 whose last dimensions match fft_length");
    return;
  }
  b.Emit(kKernel<RunFft>, std::move(params), {&view, 1});
}

}  // namespace hlokit::interp
