// SPDX-License-Identifier: Apache-2.0
// One of the engines: the exact one, the fast one, which is exact with compiled kernels, or the plain evaluator that
// defines the values.
#ifndef HLOKIT_INTERP_PROGRAM_ENGINE_H_
#define HLOKIT_INTERP_PROGRAM_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "interp/reference/evaluator.h"
#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

enum class EngineKind : uint8_t { kExact, kReference, kFast };

// Returns the kind named "exact", "reference" or "fast".
std::optional<EngineKind> EngineKindOf(std::string_view name);

class Engine {
 public:
  // Returns null after an error.
  static std::unique_ptr<Engine> Prepare(EngineKind kind, const Module& module, const EvaluatorOptions& options,
                                         DiagnosticSink* sink);

  const std::vector<Shape>& argument_shapes() const {
    return exact_ != nullptr ? exact_->argument_shapes() : reference_->argument_shapes();
  }
  const std::vector<Shape>& result_shapes() const {
    return exact_ != nullptr ? exact_->result_shapes() : reference_->result_shapes();
  }
  int64_t num_devices() const { return exact_ != nullptr ? exact_->num_devices() : reference_->num_devices(); }
  std::optional<std::vector<Literal>> Run(absl::Span<const Literal> arguments, DiagnosticSink* sink) {
    return exact_ != nullptr ? exact_->Run(arguments, sink) : reference_->Run(arguments, sink);
  }
  // Runs the module with arguments that are not contiguous. The plain evaluator takes no donations.
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                                  DonatedArguments* donation = nullptr);
  // The exact or the fast engine. Null: the plain evaluator was chosen.
  const Evaluator* exact() const { return exact_.get(); }
  // The kernels of the fast engine; null for others.
  const compiled::CompiledKernels* compiled() const { return compiled_.get(); }
  const RunStatistics& statistics() const {
    return exact_ != nullptr ? exact_->statistics() : reference_->statistics();
  }

 private:
  std::shared_ptr<compiled::CompiledKernels> compiled_;
  std::unique_ptr<Evaluator> exact_;  // either this one is set, or the next
  std::unique_ptr<reference::Evaluator> reference_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_PROGRAM_ENGINE_H_
