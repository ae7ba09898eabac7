// SPDX-License-Identifier: Apache-2.0
// A bump allocator: memory that lives as long as the arena and is released at once. Blocks never move, so pointers into
// an arena stay valid. Blocks grow from 4 KiB to 1 MiB, so small modules stay small.
#ifndef HLOKIT_IR_CORE_ARENA_H_
#define HLOKIT_IR_CORE_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hlokit {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Requires: `alignment` is a power of two, at most alignof(max_align_t).
  void* Allocate(size_t bytes, size_t alignment) {
    uintptr_t p = (reinterpret_cast<uintptr_t>(next_) + alignment - 1) & ~(alignment - 1);
    if (next_ == nullptr || bytes > static_cast<size_t>(end_ - reinterpret_cast<char*>(p)) ||
        reinterpret_cast<char*>(p) > end_) {
      Grow(bytes + alignment);
      p = (reinterpret_cast<uintptr_t>(next_) + alignment - 1) & ~(alignment - 1);
    }
    next_ = reinterpret_cast<char*>(p) + bytes;
    return reinterpret_cast<void*>(p);
  }

  // Returns uninitialized memory for `n` trivially destructible objects.
  template <typename T>
  T* AllocateArray(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    return static_cast<T*>(Allocate(n * sizeof(T), alignof(T)));
  }

  template <typename T>
  T* CopyArray(const T* from, size_t n) {
    T* to = AllocateArray<T>(n);
    if (n != 0) std::memcpy(static_cast<void*>(to), from, n * sizeof(T));
    return to;
  }

  std::string_view CopyString(std::string_view s) { return {CopyArray(s.data(), s.size()), s.size()}; }

  // Returns the bytes allocated from the system.
  size_t bytes_reserved() const { return bytes_reserved_; }

 private:
  void Grow(size_t at_least) {
    size_t size = std::max(at_least, block_size_);
    block_size_ = std::min<size_t>(block_size_ * 2, size_t{1} << 18);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    next_ = blocks_.back().get();
    end_ = next_ + size;
    bytes_reserved_ += size;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  size_t block_size_ = 4096;
  size_t bytes_reserved_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_ARENA_H_
