// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/code_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "interp/compiled/engine_modules.h"

namespace hlokit::interp::compiled {

std::unique_ptr<LoadedCode> LoadedCode::Load(const GeneratedCode& code) {
  if (code.entry < 0 || code.entry >= static_cast<int64_t>(code.image.size())) return nullptr;
  std::unique_ptr<LoadedCode> loaded(new LoadedCode());
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  loaded->bytes_ = (code.image.size() + page - 1) / page * page;
  void* const memory = mmap(nullptr, loaded->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  loaded->memory_ = memory;
  std::memcpy(memory, code.image.data(), code.image.size());
  if (mprotect(memory, loaded->bytes_, PROT_READ | PROT_EXEC) != 0) return nullptr;
  loaded->saved_values_ = code.saved_values;
  loaded->function_ = reinterpret_cast<LoopFunction>(static_cast<std::byte*>(memory) + code.entry);
  return loaded;
}

LoadedCode::~LoadedCode() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

std::shared_ptr<const LoadedCode> CodeOf(const LoopProgram& program, CodeStatistics* statistics, std::string* error) {
  static std::mutex* const mutex = new std::mutex();
  static auto* const known = new absl::flat_hash_map<std::string, std::weak_ptr<const LoadedCode>>();
  constexpr size_t kMinSwept = 64;
  static size_t sweep_at = kMinSwept;
  const InstructionSet set = HostInstructionSet();
  std::string key = CanonicalText(program);
  key += ToString(set);
  {
    const std::lock_guard<std::mutex> lock(*mutex);
    if (const auto it = known->find(key); it != known->end()) {
      if (std::shared_ptr<const LoadedCode> code = it->second.lock()) {
        ++statistics->found;
        return code;
      }
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  CodeGenerator* const generator = Generator(error);
  if (generator == nullptr) return nullptr;
  GeneratedCode generated;
  if (!generator->Generate(program, set, false, &generated, error)) return nullptr;
  std::shared_ptr<const LoadedCode> code = LoadedCode::Load(generated);
  if (code == nullptr) {
    *error = "the system gives no memory for code";
    return nullptr;
  }
  ++statistics->compiled;
  statistics->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::lock_guard<std::mutex> lock(*mutex);
  // Entries of code that was freed go whenever their number may have doubled: a constant number of steps per insertion.
  if (known->size() >= sweep_at) {
    absl::erase_if(*known, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = std::max(kMinSwept, 2 * known->size());
  }
  (*known)[std::move(key)] = code;
  return code;
}

}  // namespace hlokit::interp::compiled
