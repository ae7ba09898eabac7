// SPDX-License-Identifier: Apache-2.0
// An array in a file: its type, dimensions and position. Elements are read on demand, and of large arrays only the rows
// that are needed.
#ifndef HLOKIT_IO_ARRAYS_STORED_ARRAY_H_
#define HLOKIT_IO_ARRAYS_STORED_ARRAY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/files/byte_source.h"
#include "ir/types/literal.h"
#include "ir/types/shape.h"

namespace hlokit::interp {

struct StoredArray {
  std::string type_name;            // as the file spells it: "<f4", "BF16"
  std::optional<ElementType> type;  // none: elements without a type, of element_bytes
  int64_t element_bytes = 1;
  std::vector<int64_t> dims;
  bool big_endian = false;
  bool fortran_order = false;  // the first dimension varies fastest
  bool strict_bools = false;   // bools other than 0 and 1 are errors
  std::shared_ptr<const ByteSource> source;
  uint64_t begin = 0;  // of the elements
  uint64_t bytes = 0;  // that follow it
};

// Returns true if the array's elements can be read as `type`: its own type; any type of the same size if it has none;
// for types that NumPy lacks, unsigned integers of the same size.
bool CanReadAs(const StoredArray& array, ElementType type);

// Reads the array. Returns an error unless it has `shape`, ignoring layouts. Allocates no more than the source has.
absl::StatusOr<Literal> ReadArray(const StoredArray& array, Shape shape);
// The same; if `shape`, of this table, is dynamic, the array may be smaller (sized_shape.h).
absl::StatusOr<Literal> ReadSizedArray(const StoredArray& array, Shape shape, ShapeTable* table);
// Reads rows (indices of dimension 0) from `first` on into `out`, an array of those rows with a type that CanReadAs
// accepts. Requires: the array has these rows, in C order or of rank 1, and as many bytes as its dimensions need.
absl::Status ReadRows(const StoredArray& array, int64_t first, Literal* out);

// Reads the box of elements that begins at `begin` and has the dimensions of `out` into it. Returns an error unless the
// array has the shape `whole`, ignoring layouts. Reads little more than the box: of an array in Fortran order all.
// Requires: the box is in the array and has the rank and the type of `whole`.
absl::Status ReadBox(const StoredArray& array, Shape whole, absl::Span<const int64_t> begin, Literal* out);

// Returns the bytes of the elements, of `element_bytes` each; nullopt if they overflow.
std::optional<uint64_t> BytesOfDims(absl::Span<const int64_t> dims, int64_t element_bytes);
// Returns "[2,3]".
std::string DimsToString(absl::Span<const int64_t> dims);

}  // namespace hlokit::interp

#endif  // HLOKIT_IO_ARRAYS_STORED_ARRAY_H_
