// SPDX-License-Identifier: Apache-2.0
// Pipelines of passes, parsed from text.
//
//   pipeline := item (',' item)*
//   item     := name options? '*'?            a pass, or a named pipeline, whose options go to every pass in it
//                                             that has an option of that name
//             | name? '(' pipeline ')' '*'?   a group; the name is a label for reports
//   options  := '{' (name ('=' value)? (',' name ('=' value)?)*)? '}'     `name` alone is `name=true`
//
//   algsimp,cse,fusion{max-operands=16},while(licm,dce)*
//
// `*` repeats until an iteration changes nothing. A pass that found nothing to do is not run again until another pass
// changes the module. Whitespace between tokens is ignored.
#ifndef HLOKIT_PASSES_CORE_PIPELINE_H_
#define HLOKIT_PASSES_CORE_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/core/pass.h"
#include "passes/core/pass_instrumentation.h"
#include "passes/core/registry.h"

namespace hlokit {

struct PipelineOptions {
  // Maximum number of iterations of one `*`. Not converging by then is not an error; the result reports it.
  int64_t max_iterations = 30;
  PassContext context;
};

class Pipeline {
 public:
  struct Result {
    bool changed = false;
    // Groups that still changed the module in their last iteration: labels or texts.
    std::vector<std::string> not_converged;
  };

  // Returns an error that names the problem and suggests the likely intent.
  static absl::StatusOr<Pipeline> Parse(std::string_view text, const PassRegistry& registry = PassRegistry::Get());
  Pipeline(Pipeline&&) = default;
  Pipeline& operator=(Pipeline&&) = default;

  // Returns the pipeline in canonical form, which parses to the same pipeline. `expand`: named pipelines as groups with
  // their contents.
  std::string ToString(bool expand = false) const;
  bool empty() const { return nodes_[0].children.empty(); }
  // Returns all passes in pipeline order, repeated ones repeatedly.
  std::vector<const PassInfo*> passes() const;

  // Runs the pipeline on `module`. Returns the error of a pass, with its name, or of an instrumentation; the module
  // must then be discarded.
  absl::StatusOr<Result> Run(Module& module, const PipelineOptions& options = {},
                             absl::Span<PassInstrumentation* const> instruments = {});

 private:
  friend class PipelineParser;

  struct Node {
    std::string label;               // of a group; the name of a named pipeline
    std::string options;             // of a named pipeline, "{name=value}"
    bool named = false;              // a named pipeline, printed as its label
    bool skip_if_scheduled = false;  // skipped for a module with a schedule
    bool skip_if_partitioned = false;
    bool repeat = false;
    const PassInfo* info = nullptr;  // a pass
    std::unique_ptr<Pass> pass;
    uint32_t text = 0;               // of a pass, with its options: index into texts_
    std::vector<uint32_t> children;  // a group: indices into nodes_
  };
  Pipeline() = default;

  std::vector<Node> nodes_;         // 0: the root group
  std::vector<std::string> texts_;  // of passes, distinct
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_PIPELINE_H_
