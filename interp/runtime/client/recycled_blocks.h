// SPDX-License-Identifier: Apache-2.0
// Memory for objects of one size that come and go by the hundred with every step. A block that a thread keeps is there
// for what that thread makes next; a block that it gives back is there for any thread: for objects that one thread
// makes and another destroys, as the buffers of a step are. New blocks are cut side by side from larger pieces.
#ifndef HLOKIT_INTERP_RUNTIME_CLIENT_RECYCLED_BLOCKS_H_
#define HLOKIT_INTERP_RUNTIME_CLIENT_RECYCLED_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace hlokit::runtime {

// Blocks are never given back to the system; there are about as many as objects lived at once.
template <size_t kBytes>
class RecycledBlocks {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // sanitizers see every object come and go
  static void* Take() { return ::operator new(kBytes); }
  static void Keep(void* p) { ::operator delete(p); }
  static void GiveBack(void* p) { ::operator delete(p); }
#else
  static void* Take() {
    Block* const block = mine_;
    if (block == nullptr) return TakeFurther();
    mine_ = block->next;
    --kept_;
    // The next object will be written in a moment; after a step its memory is in no cache.
    if (mine_ != nullptr) {
      const auto* const next = reinterpret_cast<const std::byte*>(mine_);
      for (size_t at = 0; at < kSize && at < kMostAhead; at += 64) __builtin_prefetch(next + at, 1);
    }
    return block;
  }
  static void Keep(void* p) {
    if (mine_ == nullptr || kept_ >= kMostKept) return KeepFurther(p);
    mine_ = ::new (p) Block{mine_};
    ++kept_;
  }
  static void GiveBack(void* p) {
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
  // A block shares lines of the cache with its neighbours at most.
  static constexpr size_t kAlign = 32;
  static constexpr size_t kSize = (kBytes + kAlign - 1) / kAlign * kAlign;
  static constexpr size_t kBlocksAtOnce = 64;
  static constexpr size_t kMostAhead = 256;
  static constexpr int64_t kMostKept = 8192;

  // Gives the thread's blocks back when it ends.
  struct Keeper {
    ~Keeper() {
      ended_ = true;
      while (Block* const block = mine_) {
        mine_ = block->next;
        GiveBack(block);
      }
    }
    void Watch() {}
  };

  [[gnu::noinline]] static void* TakeFurther() {
    kept_ = 0;
    mine_ = returned_.exchange(nullptr, std::memory_order_acquire);
    if (mine_ == nullptr) {
      auto* const piece = static_cast<std::byte*>(::operator new (kSize* kBlocksAtOnce, std::align_val_t{64}));
      for (size_t i = kBlocksAtOnce; i-- > 0;) mine_ = ::new (piece + i * kSize) Block{mine_};
    }
    Block* const block = mine_;
    mine_ = block->next;
    if (!ended_) keeper_.Watch();
    return block;
  }
  [[gnu::noinline]] static void KeepFurther(void* p) {
    if (ended_ || kept_ >= kMostKept) return GiveBack(p);
    keeper_.Watch();
    mine_ = ::new (p) Block{mine_};
    kept_ = 1;
  }

  static inline std::atomic<Block*> returned_{nullptr};
  static inline constinit thread_local Block* mine_ = nullptr;
  static inline constinit thread_local int64_t kept_ = 0;  // those taken over or cut do not count
  static inline constinit thread_local bool ended_ = false;
  static inline thread_local Keeper keeper_;
};

// For std::allocate_shared.
template <typename T>
struct RecyclingAllocator {
  using value_type = T;
  RecyclingAllocator() = default;
  template <typename U>
  RecyclingAllocator(const RecyclingAllocator<U>&) {}  // NOLINT: as allocators convert

  T* allocate(size_t n) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    return static_cast<T*>(n == 1 ? RecycledBlocks<sizeof(T)>::Take() : ::operator new(n * sizeof(T)));
  }
  void deallocate(T* p, size_t n) { n == 1 ? RecycledBlocks<sizeof(T)>::GiveBack(p) : ::operator delete(p); }

  friend bool operator==(const RecyclingAllocator&, const RecyclingAllocator&) { return true; }
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_CLIENT_RECYCLED_BLOCKS_H_
