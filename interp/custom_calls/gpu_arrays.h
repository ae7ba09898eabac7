// SPDX-License-Identifier: Apache-2.0
// Arrays of numbers of GPU calls, and their products. Internal to this directory.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_GPU_ARRAYS_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_GPU_ARRAYS_H_

#include <complex>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "interp/custom_calls/real_values.h"
#include "interp/interface/custom_call_registry.h"

namespace hlokit::interp {

using Complex = std::complex<double>;

struct NumberArray {
  std::vector<int64_t> dims;
  std::vector<Complex> values;  // row-major

  int64_t dim(int64_t d) const { return dims[static_cast<size_t>(d)]; }
};

// Of an array, which CheckArrays has found it to be.
NumberArray ReadArray(const CustomCallOperand& operand);
// Stores values in a result of as many elements; one of another size becomes zero. f8 results of `saturate` are the
// largest finite numbers where others are out of range.
void WriteArray(const std::vector<Complex>& values, const CustomCallResult& result, bool saturate = false);
void WriteZeros(const CustomCallResult& result);

// The dimensions of a product.
struct ProductDims {
  std::vector<int64_t> lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
};
// Reads dot_dimension_numbers, as XLA writes them in JSON; by default the last dimension of the left side and the one
// before the last of the right side are contracted.
ProductDims ReadProductDims(const nlohmann::json& numbers, const NumberArray& lhs, const NumberArray& rhs);
// The product has the batch dimensions, then the free ones. Returns an error if the dimensions do not fit, or are not
// those of `wanted`, if it is not null.
absl::Status Multiply(const ProductDims& dims, const NumberArray& lhs, const NumberArray& rhs,
                      const std::vector<int64_t>* wanted, NumberArray* product);

// The object of a name in a backend_config, which may be whole; null if there is none.
nlohmann::json ConfigOf(std::string_view backend_config, const char* name);
double NumberOf(const nlohmann::json& object, const char* name, double absent);
std::string TextOf(const nlohmann::json& object, const char* name);

absl::Status MissingForm(std::string_view what);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_GPU_ARRAYS_H_
