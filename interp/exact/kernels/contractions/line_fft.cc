// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/contractions/line_fft.h"

#include <cstring>
#include <utility>

#include "interp/processor/instruction_set.h"

namespace hlokit::interp {
namespace {

// Numbers whose parts lie apart.
struct Parts {
  double* re;
  double* im;
};

template <int kWidth>
struct VectorOf {
  typedef double type __attribute__((vector_size(8 * kWidth), aligned(8), may_alias));
};
template <>
struct VectorOf<1> {
  using type = double;
};

#define HLOKIT_INLINE __attribute__((always_inline)) inline

// y[0 .. 3] = the transform of length 4 of x[0], x[m], x[2 m] and x[3 m], times 1, w, w^2 and w^3. `x` and the results
// are vectors of kWidth numbers.
template <typename V>
HLOKIT_INLINE void Butterfly(const V (&xr)[4], const V (&xi)[4], const V& wr, const V& wi, V (&yr)[4], V (&yi)[4]) {
  const V ar = xr[0] + xr[2], ai = xi[0] + xi[2], br = xr[0] - xr[2], bi = xi[0] - xi[2];
  const V cr = xr[1] + xr[3], ci = xi[1] + xi[3], dr = xr[1] - xr[3], di = xi[1] - xi[3];
  const V w2r = wr * wr - wi * wi, w2i = wr * wi + wr * wi;
  const V w3r = wr * w2r - wi * w2i, w3i = wr * w2i + wi * w2r;
  yr[0] = ar + cr;
  yi[0] = ai + ci;
  const V er = br + di, ei = bi - dr;  // b - i d
  yr[1] = er * wr - ei * wi;
  yi[1] = er * wi + ei * wr;
  const V fr = ar - cr, fi = ai - ci;
  yr[2] = fr * w2r - fi * w2i;
  yi[2] = fr * w2i + fi * w2r;
  const V gr = br - di, gi = bi + dr;  // b + i d
  yr[3] = gr * w3r - gi * w3i;
  yi[3] = gr * w3i + gi * w3r;
}

// A stage of radix 4 whose vectors go along `stride` interleaved transforms of length 4 m.
template <int kWidth>
HLOKIT_INLINE void StageAlong(Parts x, Parts y, size_t m, size_t stride, const double* roots) {
  using V = typename VectorOf<kWidth>::type;
  const size_t quarter = m * stride;
  for (size_t p = 0; p < m; ++p) {
    const V wr = V{} + roots[p], wi = V{} + roots[m + p];
    for (size_t q = 0; q < stride; q += kWidth) {
      V xr[4], xi[4], yr[4], yi[4];
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) {
        std::memcpy(&xr[k], x.re + q + stride * p + quarter * k, sizeof(V));
        std::memcpy(&xi[k], x.im + q + stride * p + quarter * k, sizeof(V));
      }
      Butterfly(xr, xi, wr, wi, yr, yi);
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) {
        std::memcpy(y.re + q + stride * (4 * p + k), &yr[k], sizeof(V));
        std::memcpy(y.im + q + stride * (4 * p + k), &yi[k], sizeof(V));
      }
    }
  }
}

// The first stage, of one transform of length 4 m, whose vectors go along it.
template <int kWidth>
HLOKIT_INLINE void FirstStage(Parts x, Parts y, size_t m, const double* roots) {
  using V = typename VectorOf<kWidth>::type;
  for (size_t p = 0; p < m; p += kWidth) {
    V xr[4], xi[4], yr[4], yi[4], wr, wi;
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) {
      std::memcpy(&xr[k], x.re + p + m * k, sizeof(V));
      std::memcpy(&xi[k], x.im + p + m * k, sizeof(V));
    }
    std::memcpy(&wr, roots + p, sizeof(V));
    std::memcpy(&wi, roots + m + p, sizeof(V));
    Butterfly(xr, xi, wr, wi, yr, yi);
    double re[4][kWidth], im[4][kWidth];
    std::memcpy(re, yr, sizeof(re));
    std::memcpy(im, yi, sizeof(im));
#pragma GCC unroll 8
    for (size_t j = 0; j < kWidth; ++j) {
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) {
        y.re[4 * (p + j) + k] = re[k][j];
        y.im[4 * (p + j) + k] = im[k][j];
      }
    }
  }
}

// All stages, from x by way of y; returns the array with the result.
template <int kWidth>
HLOKIT_INLINE Parts Stages(Parts x, Parts y, size_t n, const double* roots) {
  size_t length = n, stride = 1;
  for (; length >= 4; length /= 4, stride *= 4) {
    const size_t m = length / 4;
    if (stride == 1) {
      m >= kWidth ? FirstStage<kWidth>(x, y, m, roots) : FirstStage<1>(x, y, m, roots);
    } else if (stride >= kWidth) {
      StageAlong<kWidth>(x, y, m, stride, roots);
    } else {
      StageAlong < kWidth<4 ? kWidth : 4>(x, y, m, stride, roots);
    }
    roots += 2 * m;
    std::swap(x, y);
  }
  if (length == 1) return x;
  for (size_t q = 0; q < stride; ++q) {
    const double re = x.re[q + stride], im = x.im[q + stride];
    y.re[q] = x.re[q] + re;
    y.im[q] = x.im[q] + im;
    y.re[q + stride] = x.re[q] - re;
    y.im[q + stride] = x.im[q] - im;
  }
  return y;
}

Parts Sse4Stages(Parts x, Parts y, size_t n, const double* roots) { return Stages<2>(x, y, n, roots); }
__attribute__((target("avx2,fma"))) Parts Avx2Stages(Parts x, Parts y, size_t n, const double* roots) {
  return Stages<4>(x, y, n, roots);
}
__attribute__((target("avx512f,avx512dq,avx512vl,fma,prefer-vector-width=512"))) Parts Avx512Stages(
    Parts x, Parts y, size_t n, const double* roots) {
  return Stages<8>(x, y, n, roots);
}

}  // namespace

LineFft::LineFft(size_t n, std::complex<double> (*root)(size_t k, size_t n)) : n_(n), memory_(4 * n) {
  for (size_t length = n; length >= 4; length /= 4) {
    const size_t m = length / 4;
    const size_t begin = roots_.size();
    roots_.resize(begin + 2 * m);
    for (size_t p = 0; p < m; ++p) {
      const std::complex<double> w = root(p, length);
      roots_[begin + p] = w.real();
      roots_[begin + m + p] = w.imag();
    }
  }
}

template <typename T>
void LineFft::Transform(const std::complex<T>* from, std::complex<T>* to, double sign, double scale) {
  const Parts a = {memory_.data(), memory_.data() + n_};
  const Parts b = {memory_.data() + 2 * n_, memory_.data() + 3 * n_};
  for (size_t i = 0; i < n_; ++i) {
    a.re[i] = static_cast<double>(from[i].real());
    a.im[i] = static_cast<double>(from[i].imag()) * sign;
  }
  static const auto stages = ForHost(Sse4Stages, Avx2Stages, Avx512Stages);
  const Parts result = stages(a, b, n_, roots_.data());
  for (size_t i = 0; i < n_; ++i) {
    to[i] = {static_cast<T>(result.re[i] * scale), static_cast<T>(result.im[i] * (sign * scale))};
  }
}
template void LineFft::Transform(const std::complex<double>*, std::complex<double>*, double, double);
template void LineFft::Transform(const std::complex<float>*, std::complex<float>*, double, double);

}  // namespace hlokit::interp
