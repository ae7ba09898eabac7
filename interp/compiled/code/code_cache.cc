// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/code/code_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "interp/compiled/code/code_store.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/code/perf_map.h"
#include "ir/core/str_cat.h"
#include "ir/core/thread_group.h"

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

namespace {

// The code in memory, by key.
class KnownCode {
 public:
  static KnownCode& OfProcess() {
    static auto* const known = new KnownCode();
    return *known;
  }

  std::shared_ptr<const LoadedCode> Find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = code_.find(key);
    return it == code_.end() ? nullptr : it->second.lock();
  }

  void Add(const std::string& key, const std::shared_ptr<const LoadedCode>& code) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Entries of code that was freed go whenever their number may have doubled: a constant number of steps per
    // insertion.
    if (code_.size() >= sweep_at_) {
      absl::erase_if(code_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = std::max(kMinSwept, 2 * code_.size());
    }
    code_[key] = code;
  }

 private:
  static constexpr size_t kMinSwept = 64;
  std::mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<const LoadedCode>> code_;
  size_t sweep_at_ = kMinSwept;
};

std::string WithColumns(const std::string& key, int64_t columns) { return StrCat(key, " columns ", columns); }

}  // namespace

struct ProgramCode::Pending {
  LoopProgram program;
  std::string text;
  std::string key;
  std::shared_ptr<const LoadedCode> code;
  absl::Status error;  // if it is null
  struct Request {
    int64_t columns;
    Receiver receive;
  };
  std::vector<Request> requests;

  void Compile(CodeGenerator* generator, InstructionSet set) {
    const auto generated = generator->Generate(program, set, false);
    if (const GenerationError* const failed = std::get_if<GenerationError>(&generated)) {
      error = absl::UnimplementedError(failed->message);
      return;
    }
    code = LoadedCode::Load(std::get<GeneratedCode>(generated));
    if (code == nullptr) {
      error = absl::ResourceExhaustedError("the system gives no memory for code");
      return;
    }
    AddToPerfMap(program, code->memory(), code->bytes());
    KnownCode::OfProcess().Add(key, code);
    if (CodeStore* const store = ProcessCodeStore()) store->Put(text, set, std::get<GeneratedCode>(generated));
  }
};

ProgramCode::ProgramCode() = default;
ProgramCode::~ProgramCode() = default;

absl::Status ProgramCode::Request(const LoopProgram& program, int64_t columns, Receiver receive) {
  const InstructionSet set = HostInstructionSet();
  std::string text = CanonicalText(program);
  const std::string key = StrCat(text, ToString(set));
  for (const std::string& known : {key, WithColumns(key, columns)}) {
    if (const auto it = failed_.find(known); it != failed_.end()) return it->second;
  }
  std::shared_ptr<const LoadedCode> code = KnownCode::OfProcess().Find(key);
  if (code != nullptr) {
    ++statistics_.found;
  } else if (const auto it = pending_of_.find(key); it != pending_of_.end()) {
    ++statistics_.found;
    pending_[it->second]->requests.push_back({columns, std::move(receive)});
    return absl::OkStatus();
  } else if (CodeStore* const store = HasGeneratorModule() ? ProcessCodeStore() : nullptr) {
    // A build without the generator wrote none of the code that is there.
    if (const std::optional<GeneratedCode> stored = store->Get(text, set)) code = LoadedCode::Load(*stored);
    if (code != nullptr) {
      ++statistics_.loaded;
      AddToPerfMap(program, code->memory(), code->bytes());
      KnownCode::OfProcess().Add(key, code);
    }
  }
  if (code != nullptr) {
    absl::Status received = receive(std::move(code));
    if (!received.ok()) failed_[WithColumns(key, columns)] = received;
    return received;
  }
  if (!Generator().ok()) return Generator().status();
  pending_of_[key] = pending_.size();
  pending_.push_back(std::make_unique<Pending>());
  Pending& pending = *pending_.back();
  pending.program = program;
  pending.text = std::move(text);
  pending.key = key;
  pending.requests.push_back({columns, std::move(receive)});
  return absl::OkStatus();
}

bool ProgramCode::Complete(int num_threads) {
  if (pending_.empty()) return true;
  const auto begin = std::chrono::steady_clock::now();
  CodeGenerator* const generator = *Generator();  // what is pending was requested of it
  const InstructionSet set = HostInstructionSet();
  // A thread has a target machine of its own, which costs less than half a loop.
  std::atomic<size_t> next = 0;
  const auto compile = [&] {
    for (size_t i = next++; i < pending_.size(); i = next++) pending_[i]->Compile(generator, set);
  };
  ThreadGroup threads;
  const size_t useful = std::min(pending_.size() / 2, static_cast<size_t>(std::max(num_threads, 1)));
  for (size_t t = 1; t < useful; ++t) {
    if (!threads.Start(compile)) break;  // those that there are compile all
  }
  compile();
  threads.Join();
  bool all = true;
  for (const std::unique_ptr<Pending>& pending : pending_) {
    if (pending->code != nullptr) ++statistics_.compiled;
    all = Deliver(pending.get()) && all;
  }
  Drop();
  statistics_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return all;
}

void ProgramCode::Drop() {
  pending_.clear();
  pending_of_.clear();
}

bool ProgramCode::Deliver(Pending* pending) {
  if (pending->code == nullptr) {
    failed_[pending->key] = pending->error;
    return false;
  }
  bool all = true;
  for (Pending::Request& request : pending->requests) {
    absl::Status received = request.receive(pending->code);
    if (received.ok()) continue;
    failed_[WithColumns(pending->key, request.columns)] = std::move(received);
    all = false;
  }
  return all;
}

}  // namespace hlokit::interp::compiled
