// SPDX-License-Identifier: Apache-2.0
// Values of the plain evaluator: arrays of elements in row-major order, each in BytesOf(type) bytes as in a Literal.
//
// An element is read and written as a number of one of three kinds, whatever its type: a double (floats), an int64_t
// (integers and pred; u64 as its bits) or a complex<double>. Writing rounds: to the nearest float, ties to even, for
// types narrower than f32 first to f32 and then to the type; integers wrap. Elements beyond the end read as zero and
// are not written, so a program that was not verified does no harm.
#ifndef HLOKIT_INTERP_REFERENCE_VALUE_H_
#define HLOKIT_INTERP_REFERENCE_VALUE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/types/shape.h"

namespace hlokit::reference {

using C64 = std::complex<float>;
using C128 = std::complex<double>;
using Index = absl::InlinedVector<int64_t, 6>;
using Dims = absl::Span<const int64_t>;

// Bytes of the arrays alive in a run.
struct Memory {
  int64_t max = 0;
  int64_t used = 0;
  int64_t peak = 0;
};

// An array of zeros, to be filled; or elements that lie elsewhere and outlive it (arguments, constants). Leaves of
// other kinds (tokens) have no elements.
class Array {
 public:
  // Null if the memory does not allow it.
  static std::shared_ptr<Array> Zeros(Shape shape, Memory* memory);
  Array(Shape shape, const std::byte* data);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  Shape shape() const { return shape_; }
  ElementType type() const { return shape_.element_type(); }
  Dims dims() const { return shape_.dims(); }
  int64_t dim(int64_t d) const { return shape_.dim(d); }
  int64_t rank() const { return shape_.rank(); }
  int64_t count() const { return count_; }
  int64_t width() const { return width_; }  // bytes of an element
  int64_t bytes() const { return count_ * width_; }
  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return owned_.get(); }

  double Real(int64_t i) const;  // of complex elements the real part
  int64_t Integer(int64_t i) const;
  C128 Complex(int64_t i) const;  // of other elements with imaginary part 0
  void SetReal(int64_t i, double v);
  void SetInteger(int64_t i, int64_t v);
  void SetComplex(int64_t i, C128 v);
  // The bytes of element `j` of an array of the same type.
  void CopyElement(int64_t i, const Array& from, int64_t j);
  // As many leading bytes as both have.
  void CopyBytes(const Array& from);

 private:
  const std::byte* At(int64_t i) const;

  const Shape shape_;
  const int64_t count_;
  const int64_t width_;
  Memory* memory_ = nullptr;
  std::unique_ptr<std::byte[]> owned_;
  const std::byte* data_ = nullptr;
};

using Leaf = std::shared_ptr<const Array>;
// What an instruction gives: its array and token leaves, tuples flattened. Leaves are shared and never change.
using SlotValue = std::vector<Leaf>;

// Leaves of `shape`; buffers count as the array they hold.
std::vector<Shape> LeafShapes(Shape shape);

// The integer that element i of an index operand holds; a u64 beyond int64_t counts as the largest int64_t.
int64_t IndexAt(const Array& indices, int64_t i);
inline bool IsIndexType(ElementType type) { return IsInteger(type) && BitsOf(type) >= 8; }

int64_t MatmulShapeOf(Dims dims);
// Row-major position of an index.
int64_t PositionOf(Dims index, Dims dims);
// The next index in row-major order; false after the last.
bool NextIndex(Dims dims, Index* index);
bool Contains(Dims list, int64_t value);
// Positions of the elements whose index is 0 outside of the dimensions `group`, the last of which varies fastest.
std::vector<int64_t> GroupPositions(Dims dims, Dims group);

// `v` as the float that a rounding to a narrower type brings where one rounding of `v` would: towards zero, the last
// bit set if anything was lost.
float RoundToOdd(long double v);

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_VALUE_H_
