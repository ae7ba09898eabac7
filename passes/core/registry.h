// SPDX-License-Identifier: Apache-2.0
// Registry of passes and named pipelines.
//
// Each pass has a row in its source (pass_row.h). A registry of a program of its own may hold further ones:
//
//   hlokit::PassRegistry registry;
//   hlokit::RegisterPasses(&registry);
//   registry.Add({.name = "my-pass", .category = "mine", .summary = "…", .create = MakePass<MyPass>});
#ifndef HLOKIT_PASSES_CORE_REGISTRY_H_
#define HLOKIT_PASSES_CORE_REGISTRY_H_

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "passes/core/pass.h"

namespace hlokit {

template <typename P>
std::unique_ptr<Pass> MakePass() {
  return std::make_unique<P>();
}

// Returns true if two names of passes, pipelines or options are equal: `-` and `_` count as one character.
bool SamePassName(std::string_view a, std::string_view b);

// A pipeline with a name, usable in other pipelines like a pass.
struct NamedPipeline {
  std::string_view name;
  std::string_view summary;
  std::string_view text;           // may use named pipelines registered before
  bool skip_if_scheduled = false;  // ends in a schedule: skipped for a module that has one
  // Partitions: skipped for a module that does not await it (AwaitsPartitioning).
  bool skip_if_partitioned = false;
};

class PassRegistry {
 public:
  // Returns the registry of all passes of the library. Built once and immutable.
  static const PassRegistry& Get();

  void Add(PassInfo info);
  void AddPipeline(NamedPipeline pipeline);

  // Returns null if there is no such pass. Accepts names of other compilers (see AliasesOf), and `_` for `-`.
  const PassInfo* Find(std::string_view name) const;
  const NamedPipeline* FindPipeline(std::string_view name) const;
  // Returns other names of a pass or pipeline: those of XLA and LLVM, of passes and
  // of their classes, that differ in more than `-` and `_`.
  static std::vector<std::string_view> AliasesOf(std::string_view name);
  // Creates a pass with these options, which must be those of `info`.
  static std::unique_ptr<Pass> Make(const PassInfo& info, PassOptions options);

  // Sorted by name.
  const std::vector<const PassInfo*>& passes() const { return passes_; }
  // In registration order.
  const std::vector<NamedPipeline>& pipelines() const { return pipelines_; }

 private:
  std::deque<PassInfo> infos_;
  std::vector<const PassInfo*> passes_;
  std::vector<NamedPipeline> pipelines_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_REGISTRY_H_
