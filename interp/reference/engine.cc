// SPDX-License-Identifier: Apache-2.0
#include "interp/reference/engine.h"

namespace hlokit::interp {

std::unique_ptr<Engine> Engine::Prepare(EngineKind kind, const Module& module, const EvaluatorOptions& options,
                                        DiagnosticSink* sink) {
  auto engine = std::make_unique<Engine>();
  switch (kind) {
    case EngineKind::kExact:
      engine->exact_ = Evaluator::Prepare(module, options, sink);
      break;
    case EngineKind::kReference:
      engine->reference_ = reference::Evaluator::Prepare(module, options, sink);
      break;
  }
  if (engine->exact_ == nullptr && engine->reference_ == nullptr) return nullptr;
  return engine;
}

}  // namespace hlokit::interp
