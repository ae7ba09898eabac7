// SPDX-License-Identifier: Apache-2.0
#include "interp/reference/value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/types/float_types.h"
#include "ir/types/literal.h"

namespace hlokit::reference {

Array::Array(Shape shape, const std::byte* data)
    : shape_(shape),
      count_(shape.IsArray() ? std::max<int64_t>(shape.element_count(), 0) : 0),
      width_(shape.IsArray() ? BytesOf(shape.element_type()) : 0),
      data_(data) {}

Array::~Array() {
  if (memory_ != nullptr) memory_->used -= bytes();
}

std::shared_ptr<Array> Array::Zeros(Shape shape, Memory* memory) {
  auto array = std::make_shared<Array>(shape, nullptr);
  const int64_t bytes = shape.IsArray() ? LiteralBytes(shape) : 0;
  if (bytes < 0 || bytes > memory->max - memory->used) return nullptr;
  array->owned_.reset(static_cast<std::byte*>(std::calloc(static_cast<size_t>(std::max(bytes, int64_t{1})), 1)));
  if (array->owned_ == nullptr) return nullptr;
  array->data_ = array->owned_.get();
  array->memory_ = memory;
  memory->used += bytes;
  memory->peak = std::max(memory->peak, memory->used);
  return array;
}

const std::byte* Array::At(int64_t i) const {
  alignas(16) static constexpr std::byte kZero[16] = {};
  return i >= 0 && i < count_ ? data_ + i * width_ : kZero;
}

double Array::Real(int64_t i) const {
  if (i < 0 || i >= count_) return 0;
  return VisitType(type(), [&]<typename T>(std::type_identity<T>) -> double {
    if constexpr (std::is_same_v<T, bool>) {
      return *At(i) != std::byte{0} ? 1 : 0;
    } else {
      const T v = *reinterpret_cast<const T*>(At(i));
      if constexpr (AnyComplex<T>) {
        return static_cast<double>(v.real());
      } else {
        return static_cast<double>(v);
      }
    }
  });
}

int64_t Array::Integer(int64_t i) const {
  if (i < 0 || i >= count_) return 0;
  return VisitType(type(), [&]<typename T>(std::type_identity<T>) -> int64_t {
    if constexpr (std::is_same_v<T, bool>) {
      return *At(i) != std::byte{0} ? 1 : 0;
    } else if constexpr (AnyInteger<T>) {
      return static_cast<int64_t>(*reinterpret_cast<const T*>(At(i)));
    }
    return 0;
  });
}

C128 Array::Complex(int64_t i) const {
  if (type() == ElementType::kC64) return C128(*reinterpret_cast<const C64*>(At(i)));
  if (type() == ElementType::kC128) return *reinterpret_cast<const C128*>(At(i));
  return Real(i);
}

void Array::SetReal(int64_t i, double v) {
  if (i < 0 || i >= count_) return;
  VisitType(type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, double>) {
      *reinterpret_cast<T*>(owned_.get() + i * width_) = v;
    } else if constexpr (AnyFloat<T>) {
      *reinterpret_cast<T*>(owned_.get() + i * width_) = static_cast<T>(static_cast<float>(v));
    }
  });
}

void Array::SetInteger(int64_t i, int64_t v) {
  if (i < 0 || i >= count_) return;
  VisitType(type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      owned_[static_cast<size_t>(i)] = static_cast<std::byte>(v != 0);
    } else if constexpr (AnyInteger<T>) {
      *reinterpret_cast<T*>(owned_.get() + i * width_) = static_cast<T>(v);
    }
  });
}

void Array::SetComplex(int64_t i, C128 v) {
  if (i < 0 || i >= count_) return;
  if (type() == ElementType::kC64) *reinterpret_cast<C64*>(owned_.get() + i * width_) = C64(v);
  if (type() == ElementType::kC128) *reinterpret_cast<C128*>(owned_.get() + i * width_) = v;
}

void Array::CopyElement(int64_t i, const Array& from, int64_t j) {
  if (i < 0 || i >= count_ || from.width_ != width_) return;
  std::memcpy(owned_.get() + i * width_, from.At(j), static_cast<size_t>(width_));
}

void Array::CopyBytes(const Array& from) {
  if (const int64_t n = std::min(bytes(), from.bytes()); n > 0) {
    std::memcpy(owned_.get(), from.data_, static_cast<size_t>(n));
  }
}

std::vector<Shape> LeafShapes(Shape shape) {
  std::vector<Shape> leaves = Leaves(shape);
  for (Shape& leaf : leaves) {
    while (leaf.IsBuffer()) leaf = leaf.element(0);
  }
  return leaves;
}

int64_t IndexAt(const Array& indices, int64_t i) {
  const int64_t v = indices.Integer(i);
  return indices.type() == ElementType::kU64 && v < 0 ? std::numeric_limits<int64_t>::max() : v;
}

int64_t ElementCount(Dims dims) {
  uint64_t product = 1;  // wraps if a dimension of size 0 is among large ones
  for (int64_t d : dims) product *= static_cast<uint64_t>(d);
  return static_cast<int64_t>(product);
}

int64_t PositionOf(Dims index, Dims dims) {
  int64_t position = 0;
  for (size_t d = 0; d < dims.size(); ++d) position = position * dims[d] + index[d];
  return position;
}

bool NextIndex(Dims dims, Index* index) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++(*index)[d] < dims[d]) return true;
    (*index)[d] = 0;
  }
  return false;
}

bool Contains(Dims list, int64_t value) { return std::find(list.begin(), list.end(), value) != list.end(); }

std::vector<int64_t> GroupPositions(Dims dims, Dims group) {
  std::vector<int64_t> positions = {0};
  for (int64_t g : group) {
    const int64_t stride = ElementCount(dims.subspan(static_cast<size_t>(g) + 1));
    const int64_t size = dims[static_cast<size_t>(g)];
    std::vector<int64_t> longer;
    longer.reserve(positions.size() * static_cast<size_t>(size));
    for (int64_t position : positions) {
      for (int64_t i = 0; i < size; ++i) longer.push_back(position + i * stride);
    }
    positions = std::move(longer);
  }
  return positions;
}

float RoundToOdd(long double v) {
  const float f = static_cast<float>(v);
  if (static_cast<long double>(f) == v || f != f) return f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::fabs(static_cast<long double>(f)) > std::fabs(v)) --bits;
  return std::bit_cast<float>(bits | 1);
}

}  // namespace hlokit::reference
