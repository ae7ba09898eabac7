// SPDX-License-Identifier: Apache-2.0
// oneDNN's own primitives, whole, on any number of threads, in the layouts that the library chooses.
#ifndef HLOKIT_BENCH_ENGINE_LIBRARY_H_
#define HLOKIT_BENCH_ENGINE_LIBRARY_H_

#include <cstdint>
#include <functional>

namespace hlokit::bench {

// batch x (rows x depth) * (depth x columns)
struct ProductSizes {
  int64_t batch = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;

  double flops() const { return 2.0 * static_cast<double>(batch * rows * columns) * static_cast<double>(depth); }
  bool operator==(const ProductSizes&) const = default;
};

struct ConvolutionSizes {
  int64_t batch = 1;
  int64_t inputs = 1;   // channels
  int64_t outputs = 1;  // channels
  int64_t size = 1;     // height and width of the input
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;

  int64_t result_size() const { return (size + 2 * padding - kernel) / stride + 1; }
  double flops() const {
    return 2.0 * static_cast<double>(batch * outputs * result_size() * result_size()) *
           static_cast<double>(inputs * kernel * kernel);
  }
};

enum class Gradient : uint8_t { kNone, kData, kWeights };

// Return a function that runs the primitive, on arrays of its own; null if the program is built without oneDNN, or it
// has no such primitive.
std::function<void()> LibraryProduct(const ProductSizes& sizes, int threads);
std::function<void()> LibraryConvolution(const ConvolutionSizes& sizes, Gradient gradient, int threads);

}  // namespace hlokit::bench

#endif  // HLOKIT_BENCH_ENGINE_LIBRARY_H_
