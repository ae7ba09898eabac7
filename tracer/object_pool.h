// Memory of objects that come and go by the thousand with every step: blocks of one size, kept by the thread that freed
// them for the next object of the same class.
#ifndef HLOKIT_TRACER_OBJECT_POOL_H_
#define HLOKIT_TRACER_OBJECT_POOL_H_

#include <cstddef>
#include <new>

namespace hlokit::lazy {

// Gives class T (which inherits from it) operator new and delete with such a list. Classes derived from T that are
// larger get ordinary memory.
template <typename T>
class Pooled {
 public:
  static void* operator new(size_t size) {
    if (size == sizeof(T) && free_.first != nullptr) {
      Block* block = free_.first;
      free_.first = block->next;
      --free_.count;
      // The next object will be written in a moment; after a step its memory is in no cache.
      if (free_.first != nullptr) {
        const std::byte* const next = reinterpret_cast<const std::byte*>(free_.first);
        for (size_t at = 0; at < sizeof(T) && at < kAhead; at += 64) __builtin_prefetch(next + at, 1);
      }
      return block;
    }
    return ::operator new(size);
  }
  static void operator delete(void* p, size_t size) {
    if (size == sizeof(T) && free_.count < kMost) {
      Block* block = ::new (p) Block{free_.first};
      free_.first = block;
      ++free_.count;
      return;
    }
    ::operator delete(p);
  }

 private:
  static constexpr size_t kAhead = 256;
  struct Block {
    Block* next;
  };
  struct FreeList {
    Block* first = nullptr;
    size_t count = 0;
    ~FreeList() {
      while (first != nullptr) {
        Block* block = first;
        first = block->next;
        ::operator delete(block);
      }
      count = kMost;  // objects that outlive the thread's list go back at once
    }
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr size_t kMost = 0;  // sanitizers see every object come and go
#else
  static constexpr size_t kMost = 8192;
#endif
  static inline thread_local FreeList free_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_OBJECT_POOL_H_
