// SPDX-License-Identifier: Apache-2.0
#include "interp/reference/engine.h"

namespace hlokit::interp {

std::optional<EngineKind> EngineKindOf(std::string_view name) {
  if (name == "exact") return EngineKind::kExact;
  if (name == "fast") return EngineKind::kFast;
  if (name == "reference") return EngineKind::kReference;
  return std::nullopt;
}

std::unique_ptr<Engine> Engine::Prepare(EngineKind kind, const Module& module, const EvaluatorOptions& options,
                                        DiagnosticSink* sink) {
  auto engine = std::make_unique<Engine>();
  switch (kind) {
    case EngineKind::kExact:
      engine->exact_ = Evaluator::Prepare(module, options, sink);
      break;
    case EngineKind::kFast: {
      EvaluatorOptions fast = options;
      engine->compiled_ = std::make_shared<compiled::CompiledKernels>(options.observation);
      fast.kernels = engine->compiled_;
      engine->exact_ = Evaluator::Prepare(module, fast, sink);
      break;
    }
    case EngineKind::kReference:
      engine->reference_ = reference::Evaluator::Prepare(module, options, sink);
      break;
  }
  if (engine->exact_ == nullptr && engine->reference_ == nullptr) return nullptr;
  return engine;
}

}  // namespace hlokit::interp
