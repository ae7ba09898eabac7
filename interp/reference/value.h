// SPDX-License-Identifier: Apache-2.0
// Values of the plain evaluator: arrays of elements in row-major order, each in BytesOf(type) bytes as in a Literal.
//
// Elements are read and written as one of three kinds of numbers: double (floats), int64_t (integers and pred; u64 as
// its bits) or complex<double>. Writing rounds to nearest even (for types narrower than f32 first to f32); integers
// wrap. Elements past the end read as zero and are not written, so that unverified programs are safe.
#ifndef HLOKIT_INTERP_REFERENCE_VALUE_H_
#define HLOKIT_INTERP_REFERENCE_VALUE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

// Bytes of live arrays in a run.
struct Memory {
  int64_t max = 0;
  int64_t used = 0;
  int64_t peak = 0;
};

// An array of zeros to be filled, or a view of elements that outlive it (arguments, constants). Other leaves (tokens)
// have no elements.
class Array {
 public:
  // Returns an array of zeros, or null if the memory limit is exceeded.
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

  double Real(int64_t i) const;  // for complex elements the real part
  int64_t Integer(int64_t i) const;
  C128 Complex(int64_t i) const;  // for real elements with imaginary part 0
  void SetReal(int64_t i, double v);
  void SetInteger(int64_t i, int64_t v);
  void SetComplex(int64_t i, C128 v);
  // Copies the bytes of element `j` of an array of the same type.
  void CopyElement(int64_t i, const Array& from, int64_t j);
  // Copies the leading bytes that both arrays have.
  void CopyBytes(const Array& from);

 private:
  const std::byte* At(int64_t i) const;

  const Shape shape_;
  const int64_t count_;
  const int64_t width_;
  Memory* memory_ = nullptr;
  std::unique_ptr<std::byte[], decltype(&std::free)> owned_{nullptr, &std::free};
  const std::byte* data_ = nullptr;
};

using Leaf = std::shared_ptr<const Array>;
// Value of an instruction: its array and token leaves, tuples flattened. Leaves are shared and immutable.
using SlotValue = std::vector<Leaf>;

// Returns the leaves of `shape`. A buffer counts as its array.
std::vector<Shape> LeafShapes(Shape shape);

// Returns element i of an index operand; u64 values above int64_t are clamped to its maximum.
int64_t IndexAt(const Array& indices, int64_t i);
inline bool IsIndexType(ElementType type) { return IsInteger(type) && BitsOf(type) >= 8; }

int64_t ElementCount(Dims dims);
// Returns the row-major position of an index.
int64_t PositionOf(Dims index, Dims dims);
// Advances to the next index in row-major order. Returns false after the last.
bool NextIndex(Dims dims, Index* index);
bool Contains(Dims list, int64_t value);
// Returns the positions of the elements whose index is 0 outside of the dimensions `group`; the last of these varies
// fastest.
std::vector<int64_t> GroupPositions(Dims dims, Dims group);

// Rounds `v` to odd: toward zero, with the last bit set if inexact. A second rounding to a narrower type then equals a
// single rounding of `v`.
float RoundToOdd(long double v);

}  // namespace hlokit::reference

#endif  // HLOKIT_INTERP_REFERENCE_VALUE_H_
