// SPDX-License-Identifier: Apache-2.0
#include "io/arrays/stored_array.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "ir/core/str_cat.h"
#include "ir/types/element_type.h"
#include "ir/types/sized_shape.h"

namespace hlokit::interp {
namespace {

void SwapBytes(std::byte* data, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

// Copies from column-major to row-major order.
void CopyTransposed(std::byte* to, const std::byte* from, absl::Span<const int64_t> dims, size_t element_bytes) {
  const size_t rank = dims.size();
  std::vector<int64_t> strides(rank), index(rank, 0);
  int64_t count = 1;
  for (size_t d = 0; d < rank; ++d) {
    strides[d] = count;
    count *= dims[d];
  }
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * element_bytes, from + static_cast<size_t>(at) * element_bytes,
                element_bytes);
    for (size_t d = rank; d-- > 0;) {
      at += strides[d];
      if (++index[d] < dims[d]) break;
      at -= strides[d] * dims[d];
      index[d] = 0;
    }
  }
}

// Returns true for types that NumPy has no name for.
bool LacksName(ElementType type) {
  if (IsInteger(type)) return BitsOf(type) < 8;
  if (IsFloat(type)) return type != ElementType::kF16 && type != ElementType::kF32 && type != ElementType::kF64;
  return type != ElementType::kPred && !IsComplex(type);
}

// Converts the elements that were read to the form of literals.
absl::Status Finish(const StoredArray& array, Literal* literal) {
  const ElementType type = literal->shape().element_type();
  std::byte* const data = literal->data();
  const size_t count = static_cast<size_t>(literal->element_count());
  if (array.big_endian && IsComplex(type)) {
    SwapBytes(data, count * 2, static_cast<size_t>(array.element_bytes) / 2);
  } else if (array.big_endian) {
    SwapBytes(data, count, static_cast<size_t>(array.element_bytes));
  }
  if (type == ElementType::kPred) {
    for (size_t i = 0; i < count; ++i) {
      if (array.strict_bools && data[i] > std::byte{1}) {
        return absl::InvalidArgumentError("the array has a bool that is neither 0 nor 1");
      }
      data[i] = data[i] == std::byte{0} ? std::byte{0} : std::byte{1};
    }
  }
  // Values of narrow types are bytes in files.
  const int bits = BitsOf(type);
  if (bits >= 8 || type == ElementType::kPred) return absl::OkStatus();
  for (size_t i = 0; i < count; ++i) {
    const uint8_t shifted = static_cast<uint8_t>(static_cast<uint8_t>(data[i]) << (8 - bits));
    data[i] =
        static_cast<std::byte>(IsSigned(type) ? static_cast<int8_t>(shifted) >> (8 - bits) : shifted >> (8 - bits));
  }
  return absl::OkStatus();
}

}  // namespace

std::string DimsToString(absl::Span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) StrAppend(&text, i == 0 ? "" : ",", dims[i]);
  return text + "]";
}

std::optional<uint64_t> BytesOfDims(absl::Span<const int64_t> dims, int64_t element_bytes) {
  auto bytes = static_cast<uint64_t>(element_bytes);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  for (int64_t size : dims) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) return std::nullopt;
  }
  return bytes;
}

bool CanReadAs(const StoredArray& array, ElementType type) {
  if (!IsArrayType(type) || array.element_bytes != BytesOf(type)) return false;
  if (!array.type || *array.type == type) return true;
  return LacksName(type) && IsInteger(*array.type) && !IsSigned(*array.type);
}

namespace {

// Returns an error unless the array can be read as one of this shape.
absl::Status CheckShape(const StoredArray& array, Shape shape) {
  if (!CanReadAs(array, shape.element_type())) {
    return absl::InvalidArgumentError(
        StrCat("the array has type `", array.type_name, "`, expected ", ToString(shape.element_type())));
  }
  if (absl::Span<const int64_t>(array.dims) != shape.dims()) {
    return absl::InvalidArgumentError(
        StrCat("the array has dimensions ", DimsToString(array.dims), ", expected ", DimsToString(shape.dims())));
  }
  const std::optional<uint64_t> size = BytesOfDims(array.dims, array.element_bytes);
  if (!size) return absl::InvalidArgumentError("the array is larger than any memory");
  if (*size != array.bytes) {
    return absl::InvalidArgumentError(StrCat("the file has ", array.bytes, " bytes of elements, expected ", *size));
  }
  if (array.begin > array.source->size() || *size > array.source->size() - array.begin) {
    return absl::DataLossError("the file ends early");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Literal> ReadArray(const StoredArray& array, Shape shape) {
  if (absl::Status s = CheckShape(array, shape); !s.ok()) return s;
  Literal literal = Literal::Zeros(shape);
  const size_t size = literal.size_bytes();
  if (size == 0) return literal;
  if (!array.fortran_order || array.dims.size() < 2) {
    if (absl::Status s = array.source->Read(array.begin, literal.data(), size); !s.ok()) return s;
  } else {
    std::vector<std::byte> elements(size);
    if (absl::Status s = array.source->Read(array.begin, elements.data(), size); !s.ok()) return s;
    CopyTransposed(literal.data(), elements.data(), shape.dims(), static_cast<size_t>(array.element_bytes));
  }
  if (absl::Status s = Finish(array, &literal); !s.ok()) return s;
  return literal;
}

absl::StatusOr<Literal> ReadSizedArray(const StoredArray& array, Shape shape, ShapeTable* table) {
  if (!shape.has_dynamic_dims() || !FitsWithin(array.dims, shape)) return ReadArray(array, shape);
  return ReadArray(array, SizedShape(table, shape, array.dims));
}

absl::Status ReadBox(const StoredArray& array, Shape whole, absl::Span<const int64_t> begin, Literal* out) {
  if (absl::Status s = CheckShape(array, whole); !s.ok()) return s;
  if (out->size_bytes() == 0) return absl::OkStatus();
  const absl::Span<const int64_t> dims = whole.dims(), box = out->shape().dims();
  const size_t rank = dims.size(), width = static_cast<size_t>(array.element_bytes);
  // Elements of a run are contiguous: those of the last dimensions, of which all but the first are whole.
  size_t outer = rank;
  int64_t run = 1;
  while (outer > 0) {
    run *= box[--outer];
    if (box[outer] != dims[outer]) break;
  }
  // Short runs are read with what is between them.
  constexpr uint64_t kShort = 4096, kBlock = uint64_t{1} << 20;
  const uint64_t run_bytes = static_cast<uint64_t>(run) * width;
  const bool together = run_bytes < kShort;
  std::optional<Literal> all;
  if (array.fortran_order && rank >= 2) {
    absl::StatusOr<Literal> read = ReadArray(array, whole);
    if (!read.ok()) return read.status();
    all = *std::move(read);
  }
  const auto offset_of = [&](absl::Span<const int64_t> at) {
    int64_t element = 0;
    for (size_t d = 0; d < rank; ++d) element = element * dims[d] + at[d];
    return static_cast<uint64_t>(element) * width;
  };
  std::vector<int64_t> at(begin.begin(), begin.end()), last = at;
  for (size_t d = 0; d < outer; ++d) last[d] += box[d] - 1;
  const uint64_t end = offset_of(last) + run_bytes;  // of the last run
  std::vector<std::byte> block;
  uint64_t block_begin = 0;
  for (std::byte* to = out->data();; to += run_bytes) {
    const uint64_t from = offset_of(at);
    if (all) {
      std::memcpy(to, all->data() + from, run_bytes);
    } else if (!together) {
      if (absl::Status s = array.source->Read(array.begin + from, to, run_bytes); !s.ok()) return s;
    } else {
      if (block.empty() || from + run_bytes > block_begin + block.size()) {
        block_begin = from;
        block.resize(std::min(kBlock, end - from));
        if (absl::Status s = array.source->Read(array.begin + from, block.data(), block.size()); !s.ok()) return s;
      }
      std::memcpy(to, block.data() + (from - block_begin), run_bytes);
    }
    size_t d = outer;
    while (d > 0 && ++at[d - 1] == begin[d - 1] + box[d - 1]) {
      at[d - 1] = begin[d - 1];
      --d;
    }
    if (d == 0) break;
  }
  return all ? absl::OkStatus() : Finish(array, out);
}

absl::Status ReadRows(const StoredArray& array, int64_t first, Literal* out) {
  const size_t bytes = out->size_bytes();
  if (bytes == 0) return absl::OkStatus();
  const uint64_t row = bytes / static_cast<size_t>(out->shape().dims()[0]);
  const uint64_t begin = array.begin + static_cast<uint64_t>(first) * row;
  if (absl::Status s = array.source->Read(begin, out->data(), bytes); !s.ok()) return s;
  return Finish(array, out);
}

}  // namespace hlokit::interp
