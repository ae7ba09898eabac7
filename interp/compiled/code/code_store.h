// SPDX-License-Identifier: Apache-2.0
// Compiled loops on disk, shared by processes: entries of a program cache (io/cache/persistent_cache.h),
// each with the text of its loop program, and the instruction set and build of the generator that it is for.
//
// The environment names the directory:
//   HLOKIT_CODE_CACHE=DIR | off
//   XLA_PERSISTENT_CACHE_PATH=DIR   if it is a directory: that of compiled programs
// else it is hlokit/code in XDG_CACHE_HOME or ~/.cache.
//
// What lies there will be executed. So a directory that another user can change, or replace, is not used, with a
// warning, nor is a file in it that belongs to another (io/stores/private_directory.h).
#ifndef HLOKIT_INTERP_COMPILED_CODE_CODE_STORE_H_
#define HLOKIT_INTERP_COMPILED_CODE_CODE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "interp/compiled/code/code_generator.h"
#include "interp/processor/instruction_set.h"
#include "io/cache/persistent_cache.h"

namespace hlokit::interp::compiled {

struct CodeStoreOptions {
  std::string directory;  // empty: none
  bool quiet = false;     // it was not named for code: errors of reading and writing are not reported
  bool read_only = false;
  int64_t max_bytes = int64_t{256} << 20;

  static CodeStoreOptions FromEnvironment();
};

class CodeStore {
 public:
  explicit CodeStore(const CodeStoreOptions& options);

  // Returns the code of the program with this canonical text. Thread-safe, as Put is.
  std::optional<GeneratedCode> Get(const std::string& program, InstructionSet set);
  void Put(const std::string& program, InstructionSet set, const GeneratedCode& code);

  // Returns the file of an entry.
  std::string PathOf(const std::string& program, InstructionSet set) const;

 private:
  runtime::Metrics metrics_;
  std::unique_ptr<runtime::PersistentCache> cache_;  // null: the directory cannot be used
};

// The store of this process: none, until one is set, before the first program is prepared. interp::Compile sets the one
// that the environment names when a program is for an engine that generates code.
CodeStore* ProcessCodeStore();
void SetProcessCodeStore(const CodeStoreOptions& options);

// Sets the store that the environment names, the first time that it is called, unless there is one. Thread-safe.
void UseCodeStoreOfEnvironment();

// The bytes of an entry. DecodeCode returns nullopt if they are no code.
std::string EncodeCode(const GeneratedCode& code);
std::optional<GeneratedCode> DecodeCode(std::string_view bytes);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CODE_CODE_STORE_H_
