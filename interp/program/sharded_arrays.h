// SPDX-License-Identifier: Apache-2.0
// Arrays of a whole program as the parts that the devices of a partitioned program hold, and back. A dimension of n
// elements in p tiles has parts of ceil(n / p) elements; the last ones end in padding, or consist of it.
#ifndef HLOKIT_INTERP_PROGRAM_SHARDED_ARRAYS_H_
#define HLOKIT_INTERP_PROGRAM_SHARDED_ARRAYS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

// What padding holds, and the arrays of devices that have no part (maximal shardings).
enum class PaddingFill : uint8_t {
  kZero,
  kNan,      // NaN; of types without it the lowest value
  kLargest,  // the largest finite value
};
inline constexpr PaddingFill kPaddingFills[] = {PaddingFill::kZero, PaddingFill::kNan, PaddingFill::kLargest};
std::string_view ToString(PaddingFill fill);

// The arrays of the entry's parameters, or of its result, tuples flattened in order.
class ShardedArrays {
 public:
  struct Leaf {
    Shape whole;
    Shape part;     // on each device
    Tiling tiling;  // replicated, maximal or tiled
  };

  // Reads shapes and shardings of a program before partitioning. Instructions without a sharding are replicated.
  // Returns Unimplemented if parts do not determine the whole: manual and unreduced shardings; and InvalidArgument for
  // shardings that are not of `partitions` devices.
  static absl::StatusOr<ShardedArrays> OfParameters(const Module& whole, int64_t partitions);
  static absl::StatusOr<ShardedArrays> OfResult(const Module& whole, int64_t partitions);

  const std::vector<Leaf>& leaves() const { return leaves_; }
  int64_t partitions() const { return partitions_; }
  std::vector<Shape> whole_shapes() const;
  // Returns true if a device has a part that is smaller than the whole.
  bool IsDivided() const;

  // Returns the parts of all arrays on device `first`, then those on the next one, ... of `count` devices. Devices from
  // partitions() on are further replicas. Requires: literals of the whole shapes.
  std::vector<Literal> Divide(absl::Span<const Literal> arrays, PaddingFill fill, int64_t first, int64_t count) const;
  std::vector<Literal> Divide(absl::Span<const Literal> arrays, PaddingFill fill) const {
    return Divide(arrays, fill, 0, partitions_);
  }
  // Returns the elements of an array that a device has, which are no padding; nullopt if none.
  std::optional<TileBounds> ElementsOf(size_t leaf, int64_t device) const;
  // Returns the shape of the box of these elements, and the part with them, of which `box` is a literal.
  Shape BoxShape(size_t leaf, const TileBounds& elements) const;
  Literal PartOf(size_t leaf, Literal box, PaddingFill fill) const;
  // Returns a part without elements.
  Literal EmptyPart(size_t leaf, PaddingFill fill) const;
  // The inverse; ignores padding. Returns FailedPrecondition if devices that have the same element differ in it (NaNs
  // are equal). `what`: "result", for errors. Requires: literals of the part shapes.
  absl::StatusOr<std::vector<Literal>> Assemble(absl::Span<const Literal> parts, std::string_view what) const;

  // Returns an error that names the leaf unless a partitioned program has arrays of the part shapes.
  absl::Status CheckPartShapes(absl::Span<const Shape> shapes, std::string_view what) const;

 private:
  absl::Status Add(Instruction instruction, std::string_view what);

  std::shared_ptr<Context> context_;  // of the part shapes
  int64_t partitions_ = 1;
  std::vector<Leaf> leaves_;
};

// The arrays that go into a program and those that come out of it.
struct ArrayDivision {
  ShardedArrays parameters, result;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_SHARDED_ARRAYS_H_
