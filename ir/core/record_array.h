// SPDX-License-Identifier: Apache-2.0
// A vector of trivially copyable records that grows by realloc: for large arrays the system moves pages instead of
// copying them, and shrinks a long array in place.
#ifndef HLOKIT_IR_CORE_RECORD_ARRAY_H_
#define HLOKIT_IR_CORE_RECORD_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

namespace hlokit {

template <typename T>
class RecordArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= alignof(std::max_align_t));

 public:
  RecordArray() = default;
  RecordArray(const RecordArray& other) { *this = other; }
  RecordArray(RecordArray&& other) noexcept { Swap(other); }
  RecordArray& operator=(const RecordArray& other) {
    if (this == &other) return *this;
    size_ = 0;
    reserve(other.size_);
    if (other.size_ != 0) std::memcpy(static_cast<void*>(data_), other.data_, other.size_ * sizeof(T));
    size_ = other.size_;
    return *this;
  }
  RecordArray& operator=(RecordArray&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~RecordArray() { std::free(data_); }

  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }

  T& push_back(const T& value) {
    const T copy = value;  // may be an element of the array
    if (size_ == capacity_) Grow(size_ + 1);
    return *new (data_ + size_++) T(copy);
  }
  // Appends `n` uninitialized records.
  T* Extend(size_t n) {
    if (capacity_ - size_ < n) Grow(size_ + n);
    T* const added = data_ + size_;
    size_ += n;
    return added;
  }

  void reserve(size_t n) {
    if (n > capacity_) Reallocate(n);
  }
  void shrink_to_fit() {
    if (capacity_ != size_) Reallocate(size_);
  }

 private:
  void Swap(RecordArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  void Grow(size_t at_least) { Reallocate(std::max({at_least, capacity_ + capacity_ / 2, size_t{16}})); }
  void Reallocate(size_t capacity) {
    if (capacity == 0) {
      std::free(data_);
      data_ = nullptr;
    } else {
      if (capacity > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_alloc();
      void* const grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
      if (grown == nullptr) throw std::bad_alloc();
      data_ = static_cast<T*>(grown);
    }
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_RECORD_ARRAY_H_
