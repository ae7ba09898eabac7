// SPDX-License-Identifier: Apache-2.0
#include "ir/types/element_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hlokit {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePages = size_t{4} << 20;  // from this size on

size_t MappedBytes(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

struct Kept {
  std::mutex mutex;
  absl::flat_hash_map<size_t, std::vector<std::byte*>> memory;  // by size
  size_t bytes = 0;
  std::atomic<size_t> reserve{0};

  void Drop() {
    for (const auto& [size, list] : memory) {
      for (std::byte* one : list) munmap(one, size);
    }
    memory.clear();
    bytes = 0;
  }

  static Kept& OfProcess() {
    static auto* const kept = new Kept();
    return *kept;
  }
};

}  // namespace

std::byte* MapElements(size_t bytes) {
  const size_t mapped = MappedBytes(std::max<size_t>(bytes, 1));
  Kept& kept = Kept::OfProcess();
  std::byte* again = nullptr;
  {
    const std::lock_guard<std::mutex> lock(kept.mutex);
    if (const auto it = kept.memory.find(mapped); it != kept.memory.end() && !it->second.empty()) {
      again = it->second.back();
      it->second.pop_back();
      kept.bytes -= mapped;
    }
  }
  if (again != nullptr) {
    std::memset(again, 0, bytes);
    return again;
  }
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (mapped >= kHugePages) madvise(memory, mapped, MADV_HUGEPAGE);  // a hint
  return static_cast<std::byte*>(memory);
}

void UnmapElements(std::byte* memory, size_t bytes) {
  const size_t mapped = MappedBytes(std::max<size_t>(bytes, 1));
  Kept& kept = Kept::OfProcess();
  {
    const std::lock_guard<std::mutex> lock(kept.mutex);
    if (mapped <= kept.reserve) {
      if (kept.bytes > kept.reserve - mapped) kept.Drop();  // sizes of another program
      kept.memory[mapped].push_back(memory);
      kept.bytes += mapped;
      return;
    }
  }
  munmap(memory, mapped);
}

void ReserveElements(size_t bytes) {
  Kept& kept = Kept::OfProcess();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  kept.reserve = std::max(kept.reserve.load(), bytes);
}

bool ElementsAreReserved() { return Kept::OfProcess().reserve.load(std::memory_order_relaxed) > 0; }

}  // namespace hlokit
