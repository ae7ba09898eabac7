// SPDX-License-Identifier: Apache-2.0
#include "interp/program/sharded_arrays.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "ir/core/str_cat.h"
#include "ir/graph/context.h"
#include "ir/sharding/sharding.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

bool IsEmpty(const TileBounds& bounds) {
  for (size_t d = 0; d < bounds.offset.size(); ++d) {
    if (bounds.offset[d] >= bounds.limit[d]) return true;
  }
  return false;
}

// Calls rows(whole, part, count) for each contiguous row of elements: its first element in the whole array and in a
// part that begins at `bounds.offset`.
template <typename Rows>
void ForEachRow(absl::Span<const int64_t> whole, absl::Span<const int64_t> part, const TileBounds& bounds,
                const Rows& rows) {
  const size_t rank = whole.size();
  if (IsEmpty(bounds)) return;
  std::vector<int64_t> at = bounds.offset;
  while (true) {
    int64_t in_whole = 0, in_part = 0;
    for (size_t d = 0; d < rank; ++d) {
      in_whole = in_whole * whole[d] + at[d];
      in_part = in_part * part[d] + at[d] - bounds.offset[d];
    }
    rows(in_whole, in_part, rank == 0 ? 1 : bounds.limit[rank - 1] - bounds.offset[rank - 1]);
    size_t d = rank == 0 ? 0 : rank - 1;
    while (d > 0 && ++at[d - 1] == bounds.limit[d - 1]) {
      at[d - 1] = bounds.offset[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

void Fill(PaddingFill fill, Literal* array) {
  if (fill == PaddingFill::kZero) return;
  VisitType(array->shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    T value = T();
    if constexpr (AnyComplex<T>) {
      using Part = typename T::value_type;
      using Limits = std::numeric_limits<Part>;
      value = fill == PaddingFill::kNan ? T(Limits::quiet_NaN(), Limits::quiet_NaN()) : T(Limits::max(), Limits::max());
    } else if constexpr (AnyFloat<T>) {
      using Limits = std::numeric_limits<T>;
      value = fill == PaddingFill::kNan && Limits::has_quiet_NaN ? Limits::quiet_NaN() : Limits::max();
    } else {
      using Limits = std::numeric_limits<T>;
      value = fill == PaddingFill::kNan ? Limits::lowest() : Limits::max();
    }
    for (T& element : array->values<T>()) element = value;
  });
}

template <typename T>
bool Same(const T& a, const T& b) {
  if (std::memcmp(&a, &b, sizeof(T)) == 0) return true;
  if constexpr (AnyComplex<T>) {
    return Same(a.real(), b.real()) && Same(a.imag(), b.imag());
  } else if constexpr (AnyFloat<T>) {
    return a != a && b != b;
  }
  return false;
}

// Returns the first of `count` elements that differs, or `count`.
int64_t FirstDifference(const Literal& a, int64_t a_begin, const Literal& b, int64_t b_begin, int64_t count) {
  const size_t width = static_cast<size_t>(BytesOf(a.shape().element_type()));
  const std::byte* const in_a = a.data() + static_cast<size_t>(a_begin) * width;
  const std::byte* const in_b = b.data() + static_cast<size_t>(b_begin) * width;
  if (std::memcmp(in_a, in_b, static_cast<size_t>(count) * width) == 0) return count;
  return VisitType(a.shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    const T* const values = reinterpret_cast<const T*>(in_a);
    const T* const others = reinterpret_cast<const T*>(in_b);
    int64_t k = 0;
    while (k < count && Same(values[k], others[k])) ++k;
    return k;
  });
}

std::string IndexText(int64_t element, absl::Span<const int64_t> dims) {
  std::string text;
  for (size_t d = dims.size(); d-- > 0;) {
    text = StrCat(element % dims[d], text.empty() ? "" : ",", text);
    element /= dims[d];
  }
  return StrCat("{", text, "}");
}

std::optional<std::string> WhyNotDetermined(const Tiling& tiling) {
  if (tiling.kind == ShardingKind::kManual || !tiling.manual.empty()) return "manual";
  if (tiling.kind == ShardingKind::kUnreduced || !tiling.unreduced.empty()) return "unreduced";
  return std::nullopt;
}

}  // namespace

std::string_view ToString(PaddingFill fill) {
  switch (fill) {
    case PaddingFill::kZero:
      return "zero";
    case PaddingFill::kNan:
      return "nan";
    case PaddingFill::kLargest:
      return "largest";
  }
  return "";
}

absl::Status ShardedArrays::Add(Instruction instruction, std::string_view what) {
  const std::vector<Shape> shapes = Leaves(instruction.shape());
  std::vector<ShardingLeaf> shardings;
  if (instruction.has(Attr::kSharding)) {
    const Sharding sharding = DecodeSharding(*context_, ListId(*instruction.payload(Attr::kSharding)));
    if (std::optional<std::string> error = Validate(sharding, instruction.shape(), partitions_)) {
      return absl::InvalidArgumentError(StrCat(what, " `", instruction.name(), "`: ", *error));
    }
    for (const Sharding::Run& run : sharding.runs) {
      const size_t count = sharding.is_tuple ? static_cast<size_t>(run.count) : shapes.size();
      shardings.insert(shardings.end(), std::min(count, shapes.size() - shardings.size()), run.leaf);
    }
  }
  shardings.resize(shapes.size());
  for (size_t n = 0; n < shapes.size(); ++n) {
    Leaf leaf{shapes[n], shapes[n], Tiling::Of(ShardingKind::kReplicated)};
    if (shapes[n].IsArray()) {
      if (shapes[n].has_dynamic_dims()) return absl::UnimplementedError(StrCat(what, " with dynamic dimensions"));
      std::optional<Tiling> tiling = TilingOf(shardings[n], shapes[n].rank());
      if (!tiling) return absl::UnimplementedError(StrCat(what, " `", instruction.name(), "`: too many devices"));
      if (const std::optional<std::string> why = WhyNotDetermined(*tiling)) {
        return absl::UnimplementedError(
            StrCat(what, " `", instruction.name(), "` is ", *why, ": the parts do not determine a whole array"));
      }
      leaf.tiling = *std::move(tiling);
      leaf.part = context_->shapes.Array(shapes[n].element_type(), TileSizes(leaf.tiling, shapes[n].dims()));
    }
    leaves_.push_back(std::move(leaf));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardedArrays> ShardedArrays::OfParameters(const Module& whole, int64_t partitions) {
  ShardedArrays arrays;
  arrays.context_ = whole.shared_context();
  arrays.partitions_ = partitions;
  const Computation entry = whole.entry();
  for (int64_t k = 0; k < entry.parameter_count(); ++k) {
    if (absl::Status status = arrays.Add(entry.parameter(k), "parameter"); !status.ok()) return status;
  }
  return arrays;
}

absl::StatusOr<ShardedArrays> ShardedArrays::OfResult(const Module& whole, int64_t partitions) {
  ShardedArrays arrays;
  arrays.context_ = whole.shared_context();
  arrays.partitions_ = partitions;
  if (absl::Status status = arrays.Add(whole.entry().root(), "result"); !status.ok()) return status;
  return arrays;
}

std::vector<Shape> ShardedArrays::whole_shapes() const {
  std::vector<Shape> shapes;
  for (const Leaf& leaf : leaves_) shapes.push_back(leaf.whole);
  return shapes;
}

bool ShardedArrays::IsDivided() const {
  return std::any_of(leaves_.begin(), leaves_.end(), [](const Leaf& leaf) {
    return leaf.whole.IsArray() && !SameShape(leaf.whole, leaf.part, /*ignore_layout=*/true);
  });
}

absl::Status ShardedArrays::CheckPartShapes(absl::Span<const Shape> shapes, std::string_view what) const {
  if (shapes.size() != leaves_.size()) {
    return absl::FailedPreconditionError(
        StrCat("the partitioned program has ", shapes.size(), " arrays of ", what, "s, expected ", leaves_.size()));
  }
  for (size_t n = 0; n < shapes.size(); ++n) {
    if (SameShape(shapes[n], leaves_[n].part, /*ignore_layout=*/true)) continue;
    return absl::FailedPreconditionError(StrCat(what, " ", n, " of the partitioned program is ",
                                                hlokit::ToString(shapes[n], false), ", expected ",
                                                hlokit::ToString(leaves_[n].part, false)));
  }
  return absl::OkStatus();
}

std::vector<Literal> ShardedArrays::Divide(absl::Span<const Literal> arrays, PaddingFill fill, int64_t first,
                                           int64_t count) const {
  std::vector<Literal> parts;
  parts.reserve(leaves_.size() * static_cast<size_t>(count));
  for (int64_t device = first; device < first + count; ++device) {
    for (size_t n = 0; n < leaves_.size(); ++n) {
      const Leaf& leaf = leaves_[n];
      if (leaf.tiling.replicated_everywhere()) {
        parts.push_back(arrays[n]);
        continue;
      }
      Literal part = EmptyPart(n, fill);
      const size_t width = static_cast<size_t>(BytesOf(leaf.whole.element_type()));
      if (const std::optional<TileBounds> bounds = ElementsOf(n, device)) {
        ForEachRow(leaf.whole.dims(), leaf.part.dims(), *bounds, [&](int64_t whole, int64_t at, int64_t row) {
          std::memcpy(part.data() + static_cast<size_t>(at) * width,
                      arrays[n].data() + static_cast<size_t>(whole) * width, static_cast<size_t>(row) * width);
        });
      }
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::optional<TileBounds> ShardedArrays::ElementsOf(size_t leaf, int64_t device) const {
  std::optional<TileBounds> bounds = BoundsOf(leaves_[leaf].tiling, leaves_[leaf].whole.dims(), device % partitions_);
  if (bounds && IsEmpty(*bounds)) bounds.reset();
  return bounds;
}

Shape ShardedArrays::BoxShape(size_t leaf, const TileBounds& elements) const {
  std::vector<int64_t> dims;
  for (size_t d = 0; d < elements.offset.size(); ++d) dims.push_back(elements.limit[d] - elements.offset[d]);
  return context_->shapes.Array(leaves_[leaf].whole.element_type(), dims);
}

Literal ShardedArrays::EmptyPart(size_t leaf, PaddingFill fill) const {
  Literal part = Literal::Zeros(leaves_[leaf].part);
  Fill(fill, &part);
  return part;
}

Literal ShardedArrays::PartOf(size_t leaf, Literal box, PaddingFill fill) const {
  const Shape shape = leaves_[leaf].part;
  if (SameShape(box.shape(), shape, /*ignore_layout=*/true)) return box;
  Literal part = EmptyPart(leaf, fill);
  const absl::Span<const int64_t> dims = box.shape().dims();
  const TileBounds bounds = {std::vector<int64_t>(dims.size(), 0), std::vector<int64_t>(dims.begin(), dims.end())};
  const size_t width = static_cast<size_t>(BytesOf(shape.element_type()));
  ForEachRow(dims, shape.dims(), bounds, [&](int64_t from, int64_t to, int64_t row) {
    std::memcpy(part.data() + static_cast<size_t>(to) * width, box.data() + static_cast<size_t>(from) * width,
                static_cast<size_t>(row) * width);
  });
  return part;
}

absl::StatusOr<std::vector<Literal>> ShardedArrays::Assemble(absl::Span<const Literal> parts,
                                                             std::string_view what) const {
  std::vector<Literal> arrays;
  for (size_t n = 0; n < leaves_.size(); ++n) {
    const Leaf& leaf = leaves_[n];
    if (!leaf.whole.IsArray()) {
      arrays.push_back(parts[n]);
      continue;
    }
    Literal array = Literal::Zeros(leaf.whole);
    const size_t width = static_cast<size_t>(BytesOf(leaf.whole.element_type()));
    // The first device that has each tile, by row-major number of the tile.
    std::vector<int64_t> first(static_cast<size_t>(leaf.tiling.tiles()), -1);
    for (int64_t device = 0; device < partitions_; ++device) {
      const std::optional<TileBounds> bounds = BoundsOf(leaf.tiling, leaf.whole.dims(), device);
      if (!bounds || IsEmpty(*bounds)) continue;
      const Literal& part = parts[static_cast<size_t>(device) * leaves_.size() + n];
      int64_t tile = 0;
      for (size_t d = 0; d < bounds->offset.size(); ++d) {
        const int64_t dim = static_cast<int64_t>(d);
        tile = tile * leaf.tiling.tiles(dim) + bounds->offset[d] / leaf.part.dim(dim);
      }
      int64_t& owner = first[static_cast<size_t>(tile)];
      int64_t different = -1;
      ForEachRow(leaf.whole.dims(), leaf.part.dims(), *bounds, [&](int64_t whole, int64_t at, int64_t count) {
        if (owner < 0) {
          std::memcpy(array.data() + static_cast<size_t>(whole) * width, part.data() + static_cast<size_t>(at) * width,
                      static_cast<size_t>(count) * width);
        } else if (different < 0) {
          const int64_t k = FirstDifference(array, whole, part, at, count);
          if (k < count) different = whole + k;
        }
      });
      if (different >= 0) {
        return absl::FailedPreconditionError(StrCat("devices ", owner, " and ", device, " differ in element ",
                                                    IndexText(different, leaf.whole.dims()), " of ", what, " ", n, " (",
                                                    hlokit::ToString(leaf.whole, false), "), which both have"));
      }
      if (owner < 0) owner = device;
    }
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace hlokit::interp
