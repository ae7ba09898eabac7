// SPDX-License-Identifier: Apache-2.0
// Warnings of the partitioner: arrays that every device holds whole for a moment although they are divided before and
// after (what XLA calls an involuntary full rematerialization), and operations that cannot be divided. Equal ones, as
// of the layers of a model, are one warning, at the place of the first.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_PARTITION_WARNINGS_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_PARTITION_WARNINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"

namespace hlokit::spmd {

class PartitionWarnings {
 public:
  explicit PartitionWarnings(const Module* module) : module_(*module) {}

  // `user` needs an array under `to`, which has `from`. `producer`: the operand that it is; invalid: its own result.
  void AddFullGather(Instruction user, Instruction producer, Shape array, const Tiling& from, const Tiling& to);
  // `user` is computed whole on every device, and its operand, or a leaf of it, is divided.
  void AddUndivided(Instruction user, Instruction operand, Shape array, const Tiling& tiling);
  // Reports them in the order in which they were added.
  void Report(DiagnosticSink* sink) const;

 private:
  struct Warning {
    SourceRange range;
    std::string message, hint;
    int64_t count = 0;
  };
  void Add(Instruction user, std::string key, std::string message, std::string hint);

  const Module& module_;
  std::vector<Warning> warnings_;
  std::map<std::string, size_t> known_;  // by what equal warnings have in common
};

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_PARTITION_WARNINGS_H_
