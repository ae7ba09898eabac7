// SPDX-License-Identifier: Apache-2.0
// Reads and writes arrays as NumPy's .npy files, versions 1 to 3.
//
// Types that NumPy has are written as such (f16 to f64, c64, c128, pred, integers of 8 to 64 bits). Others are written
// like ml_dtypes does, as raw elements: bf16 as V2, types of at most a byte as V1, one byte each. The reader accepts
// both byte orders and both element orders (C and Fortran), raw elements of the right size for any type, and unsigned
// integers of the right size for floats that NumPy lacks.
#ifndef HLOKIT_IO_ARRAYS_NPY_H_
#define HLOKIT_IO_ARRAYS_NPY_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/arrays/stored_array.h"
#include "io/files/byte_source.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// Reads the header of a file that is `bytes` long and begins at `begin`, and no elements. Returns an error if the
// header is not valid, or has a type that no element type corresponds to.
absl::StatusOr<StoredArray> OpenNpy(std::shared_ptr<const ByteSource> source, uint64_t begin, uint64_t bytes);

// Reads the array in `bytes`. Returns an error unless it has `shape`, ignoring layouts.
absl::StatusOr<Literal> ReadNpy(std::string_view bytes, Shape shape);

// Returns the header for an array of `shape`. The elements follow in the order of a Literal.
std::string NpyHeader(Shape shape);

}  // namespace hlokit::interp

#endif  // HLOKIT_IO_ARRAYS_NPY_H_
