// SPDX-License-Identifier: Apache-2.0
// Compiled loops, kept in memory and on disk (code_store.h) by the text of their programs. Memory of code is either
// writable or executable, never both.
#ifndef HLOKIT_INTERP_COMPILED_CODE_CODE_CACHE_H_
#define HLOKIT_INTERP_COMPILED_CODE_CODE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "interp/compiled/code/code_generator.h"
#include "interp/compiled/programs/loop_program.h"
#include "interp/processor/instruction_set.h"

namespace hlokit::interp::compiled {

// Code in executable memory.
class LoadedCode {
 public:
  // Returns null if the system gives no memory.
  static std::unique_ptr<LoadedCode> Load(const GeneratedCode& code);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  LoopFunction function() const { return function_; }
  const void* memory() const { return memory_; }
  size_t bytes() const { return bytes_; }
  int64_t saved_values() const { return saved_values_; }

 private:
  LoadedCode() = default;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  LoopFunction function_ = nullptr;
  int64_t saved_values_ = 0;
};

struct CodeStatistics {
  int64_t compiled = 0;
  int64_t found = 0;   // in memory
  int64_t loaded = 0;  // from disk
  double seconds = 0;  // of compilation
};

// The code of the loops of one program. What neither the process nor the disk has is compiled together, on several
// threads. Code is shared by programs of the process and freed with the last of them.
class ProgramCode {
 public:
  ProgramCode();
  ~ProgramCode();
  ProgramCode(const ProgramCode&) = delete;
  ProgramCode& operator=(const ProgramCode&) = delete;

  // Takes the code; returns an error if it cannot be used.
  using Receiver = std::function<absl::Status(std::shared_ptr<const LoadedCode> code)>;

  // Calls `receive` with the code of a loop for rows of `columns` elements, now or in Complete. Returns an error if it
  // is known that there is none.
  absl::Status Request(const LoopProgram& program, int64_t columns, Receiver receive);
  // Compiles what was requested. Returns false if some of it cannot be had: the next Request for it returns the error.
  bool Complete(int num_threads);
  // Forgets the requests.
  void Drop();

  const CodeStatistics& statistics() const { return statistics_; }

 private:
  struct Pending;
  // Calls the receivers. Returns false if one does not take the code.
  bool Deliver(Pending* pending);

  CodeStatistics statistics_;
  std::vector<std::unique_ptr<Pending>> pending_;
  absl::flat_hash_map<std::string, size_t> pending_of_;    // by key
  absl::flat_hash_map<std::string, absl::Status> failed_;  // by key, or by key and columns
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_CODE_CACHE_H_
