// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of lines whose length is a power of two, in double, with vectors of the processor.
#ifndef HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_LINE_FFT_H_
#define HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_LINE_FFT_H_

#include <complex>
#include <cstddef>
#include <vector>

namespace hlokit::interp {

// Stockham's algorithm: stages of radix 4, and one of radix 2 if the length asks for it, between two arrays, so that
// the result is in order without a permutation. Real and imaginary parts are in arrays of their own.
class LineFft {
 public:
  // n: a power of two. `root(k, n)` returns e^(-2 pi i k / n).
  LineFft(size_t n, std::complex<double> (*root)(size_t k, size_t n));

  // Transforms `x`, n numbers, in place, with the exponent's sign -1.
  void Run(std::complex<double>* x) { Transform(x, x, 1, 1); }
  // The same from and to floats; `inverse`: with the sign 1, and divided by n.
  void Run(const std::complex<float>* from, std::complex<float>* to, bool inverse) {
    Transform(from, to, inverse ? -1 : 1, inverse ? 1 / static_cast<double>(n_) : 1);
  }

 private:
  // Imaginary parts are multiplied by `sign` before and after, results by `scale`.
  template <typename T>
  void Transform(const std::complex<T>* from, std::complex<T>* to, double sign, double scale);

  size_t n_;
  std::vector<double> roots_;   // of each stage: the real parts of the first quarter's roots, and the imaginary ones
  std::vector<double> memory_;  // real and imaginary parts of both arrays
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_KERNELS_CONTRACTIONS_LINE_FFT_H_
