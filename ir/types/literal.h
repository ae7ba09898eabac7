// SPDX-License-Identifier: Apache-2.0
// Values. A Literal owns its bytes (arguments, results, intermediate values); a stored literal belongs to a Context
// (constants of a module) and is identified by a LiteralId.
//
// Elements are in row-major order of the logical dimensions, whatever the layout of the shape, little endian, each in
// BytesOf(type) bytes: types narrower than a byte take a whole byte (values of s4 sign-extended, u4 and f4 in the low
// bits). PackSubByte/UnpackSubByte convert to and from the dense form. NaN payloads are preserved.
#ifndef HLOKIT_IR_TYPES_LITERAL_H_
#define HLOKIT_IR_TYPES_LITERAL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "ir/core/arena.h"
#include "ir/core/hashing.h"
#include "ir/core/ids.h"
#include "ir/core/intern_index.h"
#include "ir/types/shape.h"

namespace hlokit {

// Large arrays are mapped, so that the system zeroes their pages on first use, in large pages.
struct FreeElements {
  static constexpr size_t kBorrowed = ~size_t{0};
  size_t mapped_bytes = 0;  // 0: from malloc; kBorrowed: the caller's
  void operator()(std::byte* data) const;
};

class Literal {
 public:
  Literal() = default;
  // Returns an array with zeroed elements, or a tuple of such. Large ones take memory as they are written. Requires:
  // the shape's context outlives the literal, and its arrays have element counts (no unbounded dimensions).
  static Literal Zeros(Shape shape);
  static Literal Tuple(Shape shape, std::vector<Literal> elements);
  // Returns an array with elements that the caller owns, which outlive it; a copy of it owns its own.
  static Literal Borrowed(Shape shape, std::byte* elements);

  Literal(Literal&&) = default;
  Literal& operator=(Literal&&) = default;
  Literal(const Literal& other) { *this = other; }
  Literal& operator=(const Literal& other);
  ~Literal();

  Shape shape() const { return shape_; }
  bool elided() const { return elided_; }
  void set_elided() { elided_ = true; }

  // For arrays.
  int64_t element_count() const { return shape_.element_count(); }
  size_t size_bytes() const { return size_bytes_; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  template <typename T>
  absl::Span<T> values() {
    return absl::Span<T>(reinterpret_cast<T*>(data_.get()), size_bytes_ / sizeof(T));
  }
  template <typename T>
  absl::Span<const T> values() const {
    return absl::Span<const T>(reinterpret_cast<const T*>(data_.get()), size_bytes_ / sizeof(T));
  }

  // For tuples.
  std::vector<Literal>& elements() { return elements_; }
  const std::vector<Literal>& elements() const { return elements_; }

 private:
  Shape shape_;
  bool elided_ = false;
  size_t size_bytes_ = 0;
  static std::unique_ptr<std::byte[], FreeElements> AllocateZeros(size_t bytes);
  std::unique_ptr<std::byte[], FreeElements> data_;
  std::vector<Literal> elements_;
};

// Returns the bytes of a Literal of an array of this shape; -1 if they overflow.
int64_t LiteralBytes(Shape array);

struct LiteralRecord {
  Shape shape;
  const std::byte* data;  // arrays; null when elided
  size_t size_bytes;
  const LiteralId* elements;  // tuples: shape.tuple_size() of them
  bool elided;                // `{...}` in the text: an unknown value
};

// Interned values of a Context.
class LiteralPool {
 public:
  explicit LiteralPool(Arena* arena) : arena_(arena) {}

  LiteralId AddArray(Shape shape, const std::byte* data, size_t size_bytes);
  LiteralId AddElided(Shape shape);
  LiteralId AddTuple(Shape shape, absl::Span<const LiteralId> elements);
  LiteralId Add(const Literal& literal);

  const LiteralRecord& operator[](LiteralId id) const { return records_[id.value]; }
  // Returns a copy that is independent of the pool.
  Literal ToLiteral(LiteralId id) const;
  size_t size() const { return records_.size(); }

 private:
  LiteralId Intern(const LiteralRecord& proto);

  Arena* arena_;
  std::vector<LiteralRecord> records_;
  InternIndex index_;
};

// Convert `count` elements of a type of `bits` < 8 between one byte each and dense (first element in the low bits).
std::vector<std::byte> PackSubByte(absl::Span<const std::byte> unpacked, int bits);
std::vector<std::byte> UnpackSubByte(absl::Span<const std::byte> packed, int bits, int64_t count, bool sign_extend);

}  // namespace hlokit

#endif  // HLOKIT_IR_TYPES_LITERAL_H_
