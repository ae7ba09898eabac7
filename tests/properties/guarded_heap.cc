// SPDX-License-Identifier: Apache-2.0
// Linked into a test, replaces the heap by one that shows wrong accesses: fresh and freed memory holds patterns, so
// that what is read without having been written gives odd values, and bytes around each block are checked when it is
// freed. With the address sanitizer there is nothing to do.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {
// The allocator of the C library.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void __libc_free(void* block);
}

namespace {

constexpr size_t kGuardBytes = 32;
constexpr int kGuard = 0x5a, kFresh = 0xa5, kFreed = 0xdb;
constexpr size_t kFilled = size_t{1} << 16;  // at both ends of a block

// Before the first guard.
struct Header {
  void* base;
  size_t bytes;
};
constexpr size_t kBefore = sizeof(Header) + kGuardBytes;

Header* HeaderOf(void* block) { return reinterpret_cast<Header*>(static_cast<char*>(block) - kBefore); }

void Fill(void* block, size_t bytes, int pattern) {
  char* const begin = static_cast<char*>(block);
  std::memset(begin, pattern, std::min(bytes, kFilled));
  if (bytes > kFilled)
    std::memset(begin + std::max(kFilled, bytes - kFilled), pattern, bytes - std::max(kFilled, bytes - kFilled));
}

void* Allocate(size_t bytes, size_t alignment, bool zero) {
  alignment = std::max(alignment, alignof(max_align_t));
  const size_t around = kBefore + alignment + kGuardBytes;
  if (bytes > PTRDIFF_MAX - around) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const base = zero ? __libc_calloc(1, bytes + around) : __libc_malloc(bytes + around);
  if (base == nullptr) return nullptr;
  const uintptr_t first = reinterpret_cast<uintptr_t>(base) + kBefore;
  char* const block = reinterpret_cast<char*>((first + alignment - 1) / alignment * alignment);
  *HeaderOf(block) = {base, bytes};
  std::memset(block - kGuardBytes, kGuard, kGuardBytes);
  std::memset(block + bytes, kGuard, kGuardBytes);
  if (!zero) Fill(block, bytes, kFresh);
  return block;
}

bool IsIntact(const char* guard) {
  return std::all_of(guard, guard + kGuardBytes, [](char c) { return c == static_cast<char>(kGuard); });
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) { return Allocate(bytes, 1, false); }
void* calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    errno = ENOMEM;
    return nullptr;
  }
  return Allocate(total, 1, true);
}
void free(void* block) {
  if (block == nullptr) return;
  const Header header = *HeaderOf(block);
  char* const begin = static_cast<char*>(block);
  if (!IsIntact(begin - kGuardBytes) || !IsIntact(begin + header.bytes)) {
    constexpr char kMessage[] = "memory was written outside of a block of the heap\n";
    if (write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) >= 0) std::abort();
    std::abort();
  }
  Fill(block, header.bytes, kFreed);
  __libc_free(header.base);
}
void* realloc(void* block, size_t bytes) {
  void* const moved = Allocate(bytes, 1, false);
  if (moved == nullptr || block == nullptr) return moved;
  std::memcpy(moved, block, std::min(bytes, HeaderOf(block)->bytes));
  free(block);
  return moved;
}
void* aligned_alloc(size_t alignment, size_t bytes) { return Allocate(bytes, alignment, false); }
void* memalign(size_t alignment, size_t bytes) { return Allocate(bytes, alignment, false); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = Allocate(bytes, alignment, false);
  return *block == nullptr ? ENOMEM : 0;
}
size_t malloc_usable_size(void* block) { return block == nullptr ? 0 : HeaderOf(block)->bytes; }

}  // extern "C"

#endif
