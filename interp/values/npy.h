// SPDX-License-Identifier: Apache-2.0
// Arrays as NumPy's .npy files, versions 1 to 3.
//
// Types that NumPy has are written as such (f16 to f64, c64, c128, pred, integers of 8 to 64 bits). The others are
// written as ml_dtypes writes them, as raw elements: bf16 as V2, the types of a byte and less as V1, a whole byte each.
// Reading takes either byte order and either element order (C or Fortran), raw elements of the right size for any type,
// and unsigned integers of the right size for floats that NumPy lacks.
#ifndef HLOKIT_INTERP_VALUES_NPY_H_
#define HLOKIT_INTERP_VALUES_NPY_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// The array in `bytes`, which must be of `shape`, layouts aside.
absl::StatusOr<Literal> ReadNpy(std::string_view bytes, Shape shape);

// The header that goes before the bytes of an array of `shape`. The elements follow as they are in a Literal.
std::string NpyHeader(Shape shape);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_VALUES_NPY_H_
