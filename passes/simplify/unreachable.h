#ifndef HLOKIT_PASSES_SIMPLIFY_UNREACHABLE_H_
#define HLOKIT_PASSES_SIMPLIFY_UNREACHABLE_H_

#include <cstdint>
#include <vector>

#include "ir/module.h"

namespace hlokit {

// Erases the computations that cannot be reached from the entry; their number. Linear in the module.
int64_t EraseUnreachable(Module& module);

// For each computation, by id, the first one equal to it instruction by instruction, names and metadata apart.
// Computations with control edges stand for themselves.
std::vector<uint32_t> EqualComputations(const Module& module);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SIMPLIFY_UNREACHABLE_H_
