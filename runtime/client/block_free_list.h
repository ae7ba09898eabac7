// SPDX-License-Identifier: Apache-2.0
// Free list for objects of one size that are created and destroyed by the hundred in every step. FreeLocal keeps a
// block for the same thread; FreeShared returns it to all threads, for objects that one thread creates and another
// destroys, such as the buffers of a step. New blocks are carved from larger chunks.
#ifndef HLOKIT_RUNTIME_CLIENT_BLOCK_FREE_LIST_H_
#define HLOKIT_RUNTIME_CLIENT_BLOCK_FREE_LIST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace hlokit::runtime {

// Blocks are never returned to the system; their number follows the maximal number of live objects.
template <size_t kBytes>
class BlockFreeList {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // sanitizers track every object
  static void* Allocate() { return ::operator new(kBytes); }
  static void FreeLocal(void* p) { ::operator delete(p); }
  static void FreeShared(void* p) { ::operator delete(p); }
#else
  static void* Allocate() {
    Block* const block = cached_;
    if (block == nullptr) return AllocateSlow();
    cached_ = block->next;
    --cached_count_;
    // Prefetches the next block, which is written soon and has left the cache since the last step.
    if (cached_ != nullptr) {
      const auto* const next = reinterpret_cast<const std::byte*>(cached_);
      for (size_t at = 0; at < kSize && at < kMaxPrefetchBytes; at += 64) __builtin_prefetch(next + at, 1);
    }
    return block;
  }
  static void FreeLocal(void* p) {
    if (cached_ == nullptr || cached_count_ >= kMaxCachedBlocks) return FreeLocalSlow(p);
    cached_ = ::new (p) Block{cached_};
    ++cached_count_;
  }
  static void FreeShared(void* p) {
    Block* const block = ::new (p) Block{returned_.load(std::memory_order_relaxed)};
    while (!returned_.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
#endif

 private:
  struct Block {
    Block* next;
  };
  static_assert(kBytes >= sizeof(Block));
  // Limits cache lines that a block shares to those of its neighbors.
  static constexpr size_t kAlign = 32;
  static constexpr size_t kSize = (kBytes + kAlign - 1) / kAlign * kAlign;
  static constexpr size_t kBlocksAtOnce = 64;
  static constexpr size_t kMaxPrefetchBytes = 256;
  static constexpr int64_t kMaxCachedBlocks = 8192;

  // Returns the thread's blocks at its end.
  struct ThreadCacheGuard {
    ~ThreadCacheGuard() {
      ended_ = true;
      while (Block* const block = cached_) {
        cached_ = block->next;
        FreeShared(block);
      }
    }
    void Watch() {}
  };

  [[gnu::noinline]] static void* AllocateSlow() {
    cached_count_ = 0;
    cached_ = returned_.exchange(nullptr, std::memory_order_acquire);
    if (cached_ == nullptr) {
      auto* const piece = static_cast<std::byte*>(::operator new (kSize* kBlocksAtOnce, std::align_val_t{64}));
      for (size_t i = kBlocksAtOnce; i-- > 0;) cached_ = ::new (piece + i * kSize) Block{cached_};
    }
    Block* const block = cached_;
    cached_ = block->next;
    if (!ended_) guard_.Watch();
    return block;
  }
  [[gnu::noinline]] static void FreeLocalSlow(void* p) {
    if (ended_ || cached_count_ >= kMaxCachedBlocks) return FreeShared(p);
    guard_.Watch();
    cached_ = ::new (p) Block{cached_};
    cached_count_ = 1;
  }

  static inline std::atomic<Block*> returned_{nullptr};
  static inline constinit thread_local Block* cached_ = nullptr;
  static inline constinit thread_local int64_t cached_count_ = 0;  // without blocks taken over or newly carved
  static inline constinit thread_local bool ended_ = false;
  static inline thread_local ThreadCacheGuard guard_;
};

// Allocator for std::allocate_shared.
template <typename T>
struct FreeListAllocator {
  using value_type = T;
  FreeListAllocator() = default;
  template <typename U>
  FreeListAllocator(const FreeListAllocator<U>&) {}  // NOLINT: as allocators convert

  T* allocate(size_t n) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    return static_cast<T*>(n == 1 ? BlockFreeList<sizeof(T)>::Allocate() : ::operator new(n * sizeof(T)));
  }
  void deallocate(T* p, size_t n) { n == 1 ? BlockFreeList<sizeof(T)>::FreeShared(p) : ::operator delete(p); }

  friend bool operator==(const FreeListAllocator&, const FreeListAllocator&) { return true; }
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_BLOCK_FREE_LIST_H_
