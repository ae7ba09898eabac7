// SPDX-License-Identifier: Apache-2.0
// Operator new and delete for objects that the tracing thread creates and destroys by the thousand in every step.
#ifndef HLOKIT_TRACER_GRAPH_OBJECT_POOL_H_
#define HLOKIT_TRACER_GRAPH_OBJECT_POOL_H_

#include <cstddef>
#include <new>

#include "runtime/client/block_free_list.h"

namespace hlokit::lazy {

// Base of class T. Larger classes derived from T use the general allocator.
template <typename T>
class Pooled {
 public:
  static void* operator new(size_t size) {
    return size == sizeof(T) ? runtime::BlockFreeList<sizeof(T)>::Allocate() : ::operator new(size);
  }
  static void operator delete(void* p, size_t size) {
    size == sizeof(T) ? runtime::BlockFreeList<sizeof(T)>::FreeLocal(p) : ::operator delete(p);
  }
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_OBJECT_POOL_H_
