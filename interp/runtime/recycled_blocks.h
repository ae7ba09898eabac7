// Memory for objects of one size that one thread makes and another destroys by the hundred, as the buffers of a step
// are: what is given back by any thread is taken over, all at once, by the next thread that has no block left. A
// general allocator would have to lock for each.
#ifndef HLOKIT_INTERP_RUNTIME_RECYCLED_BLOCKS_H_
#define HLOKIT_INTERP_RUNTIME_RECYCLED_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <new>

namespace hlokit::runtime {

// Blocks are never given back to the system; there are as many as objects lived at once.
template <size_t kBytes>
class RecycledBlocks {
 public:
  static void* Take() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers see every object come and go
    if (mine_.first == nullptr) mine_.first = returned_.exchange(nullptr, std::memory_order_acquire);
    if (Block* block = mine_.first) {
      mine_.first = block->next;
      return block;
    }
#endif
    return ::operator new(kBytes);
  }
  static void GiveBack(void* p) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    Push(::new (p) Block{nullptr});
#else
    ::operator delete(p);
#endif
  }

 private:
  struct Block {
    Block* next;
  };
  static_assert(kBytes >= sizeof(Block));
  struct List {
    Block* first = nullptr;
    ~List() {
      while (Block* block = first) {
        first = block->next;
        Push(block);
      }
    }
  };

  static void Push(Block* block) {
    block->next = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(block->next, block, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  static inline std::atomic<Block*> returned_{nullptr};
  static inline thread_local List mine_;
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

#endif  // HLOKIT_INTERP_RUNTIME_RECYCLED_BLOCKS_H_
