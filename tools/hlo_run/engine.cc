// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/engine.h"

namespace hlokit::run {

std::unique_ptr<Engine> Engine::Prepare(EngineKind kind, const Module& module, const interp::EvaluatorOptions& options,
                                        DiagnosticSink* sink) {
  auto engine = std::make_unique<Engine>();
  switch (kind) {
    case EngineKind::kExact:
      engine->exact_ = interp::Evaluator::Prepare(module, options, sink);
      break;
    case EngineKind::kReference:
      engine->reference_ = reference::Evaluator::Prepare(module, options, sink);
      break;
  }
  if (engine->exact_ == nullptr && engine->reference_ == nullptr) return nullptr;
  return engine;
}

}  // namespace hlokit::run
