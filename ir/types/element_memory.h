// SPDX-License-Identifier: Apache-2.0
// Mapped memory of large literals. What is freed is kept for later ones of the same size, up to a reserve that programs
// which run again and again ask for: fresh pages take longer to be touched first than most kernels take to write them.
#ifndef HLOKIT_IR_TYPES_ELEMENT_MEMORY_H_
#define HLOKIT_IR_TYPES_ELEMENT_MEMORY_H_

#include <cstddef>

namespace hlokit {

// Returns zeroed memory, aligned to a page; null if the system has none. Thread-safe, as the others.
std::byte* MapElements(size_t bytes);
// Frees memory of MapElements; `bytes` as there.
void UnmapElements(std::byte* memory, size_t bytes);

// Keeps up to `bytes` of freed memory, or what was asked for before if that is more.
void ReserveElements(size_t bytes);
bool ElementsAreReserved();

}  // namespace hlokit

#endif  // HLOKIT_IR_TYPES_ELEMENT_MEMORY_H_
