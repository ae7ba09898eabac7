// SPDX-License-Identifier: Apache-2.0
// Memory between two pages that cannot be accessed: a read or write outside of it ends the program. With the address
// sanitizer, the bytes between it and the other page cannot be accessed either.
#ifndef HLOKIT_TESTS_PROPERTIES_GUARDED_MEMORY_H_
#define HLOKIT_TESTS_PROPERTIES_GUARDED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace hlokit {

class GuardedMemory {
 public:
  enum class Edge { kBegin, kEnd };

  // The memory begins right after a guard page, or ends right before one.
  GuardedMemory(size_t bytes, Edge edge) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t pages = (bytes + page - 1) / page * page;
    mapped_ = pages + 2 * page;
    void* const memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(memory);
    if (pages > 0 && mprotect(base_ + page, pages, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = edge == Edge::kBegin ? base_ + page : base_ + page + pages - bytes;
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(base_, static_cast<size_t>(data_ - base_));
    __asan_poison_memory_region(data_ + bytes, mapped_ - bytes - static_cast<size_t>(data_ - base_));
#endif
  }
  ~GuardedMemory() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(base_, mapped_);
#endif
    munmap(base_, mapped_);
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() { return data_; }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_TESTS_PROPERTIES_GUARDED_MEMORY_H_
