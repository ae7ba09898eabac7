// Passes: named transformations of a module, and pipelines of them.
#ifndef HLOKIT_PASSES_PASS_H_
#define HLOKIT_PASSES_PASS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/module.h"

namespace hlokit {

class Pass {
 public:
  virtual ~Pass() = default;
  // As in --passes.
  virtual std::string_view name() const = 0;
  // One line for --list-passes.
  virtual std::string_view summary() const = 0;
  // True if the module changed. A module that verified before verifies afterwards.
  virtual absl::StatusOr<bool> Run(Module& module) = 0;
};

// All passes, sorted by name.
std::vector<std::unique_ptr<Pass>> AllPasses();

// Passes in the order of `text`, "dce,cse". An error names the pass that does not exist and the nearest that does.
absl::StatusOr<std::vector<std::unique_ptr<Pass>>> ParsePipeline(std::string_view text);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_PASS_H_
