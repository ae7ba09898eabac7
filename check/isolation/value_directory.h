// SPDX-License-Identifier: Apache-2.0
// Values of instructions in a directory of .npy files:
//
//   module.hlo        the module that ran
//   index.json        "values": for each array its instruction, execution (from 1), leaf, shape and file
//   dot.7.npy         the value of an instruction
//   add.3#2.npy       of its second execution
//   sort.9.1.npy      leaf 1 of a tuple
//
// Results of `tuple` have no files: their elements have. Characters of names that not all file systems have are `_`.
#ifndef HLOKIT_CHECK_ISOLATION_VALUE_DIRECTORY_H_
#define HLOKIT_CHECK_ISOLATION_VALUE_DIRECTORY_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "check/isolation/recorded_values.h"
#include "interp/interface/execution_observer.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

struct ValueDirectoryOptions {
  std::vector<bool> instructions;  // by instruction id: those whose values are written, if they have files
  int64_t max_executions = std::numeric_limits<int64_t>::max();  // of each instruction: the first ones
  int64_t max_bytes = int64_t{4} << 30;                          // of all files; more is an error
};

// Writes values into a directory, which appears when all are written.
class ValueDirectoryWriter : public ExecutionObserver {
 public:
  // Creates the files next to `path`. Returns an error if it cannot be created, or is not empty.
  static absl::StatusOr<std::unique_ptr<ValueDirectoryWriter>> Create(const std::string& path, const Module& module,
                                                                      const ValueDirectoryOptions& options);
  ~ValueDirectoryWriter() override;
  ValueDirectoryWriter(const ValueDirectoryWriter&) = delete;
  ValueDirectoryWriter& operator=(const ValueDirectoryWriter&) = delete;

  // Returns true for instructions whose values have files: those with arrays, except tuples.
  static bool HasFiles(Instruction instruction);

  absl::Status OnValue(InstructionId id, absl::Span<const std::byte* const> values,
                       absl::Span<const std::byte* const> operands) override;
  // Writes the index and the module and makes the directory visible. Called once.
  absl::Status Commit();

 private:
  ValueDirectoryWriter(const Module& module, const ValueDirectoryOptions& options)
      : module_(module), options_(options), executions_(module.instruction_id_bound()) {}

  std::string FileName(Instruction instruction, int64_t execution, int64_t leaf, bool is_tuple);
  absl::Status WriteFile(const std::string& name, absl::Span<const std::string_view> parts);

  struct Entry {
    InstructionId instruction;
    int64_t execution, leaf;
    std::string file;
  };

  const Module& module_;
  const ValueDirectoryOptions options_;
  std::string path_, temporary_;
  std::vector<int64_t> executions_;  // by instruction id
  int64_t bytes_ = 0;
  std::vector<Entry> entries_;
  absl::flat_hash_set<std::string> names_;
};

// A directory that was written.
class ValueDirectory : public RecordedValues {
 public:
  // Reads the index. Values are read on demand. Returns an error, which begins with the file, if one is not readable.
  // `context`: of the module, which a module to compare with may share.
  static absl::StatusOr<std::unique_ptr<ValueDirectory>> Open(const std::string& path,
                                                              std::shared_ptr<Context> context);

  const Module& module() const { return *module_; }
  int64_t Executions(InstructionId instruction) const override;
  absl::StatusOr<std::vector<Literal>> Value(InstructionId instruction, int64_t execution) const override;

 private:
  ValueDirectory() = default;

  std::string path_;
  std::unique_ptr<Module> module_;
  // By instruction id: files by execution, then leaf; "" if there is none.
  absl::flat_hash_map<uint32_t, std::vector<std::vector<std::string>>> files_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_VALUE_DIRECTORY_H_
