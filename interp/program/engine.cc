// SPDX-License-Identifier: Apache-2.0
#include "interp/program/engine.h"

#include <string>

#include "interp/compiled/code/engine_modules.h"
#include "interp/processor/instruction_set.h"

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
      if (const std::string error = InstructionSetError(); !error.empty()) {
        sink->Error(DiagnosticKind::kUnsupported, {}, error);
        return nullptr;
      }
      if (!compiled::HasEngineModules()) {
        sink->Warning(DiagnosticKind::kUnsupported, {},
                      "neither libhlokit_onednn.so nor libhlokit_llvm.so is in ../lib/hlokit beside the program: the "
                      "fast engine runs products, and loops that are not on disk, as slowly as the exact engine "
                      "(install both modules with the program; to build them: tools/install-deps engine)");
      }
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

std::optional<std::vector<Literal>> Engine::RunPointers(absl::Span<const Literal* const> arguments,
                                                        DiagnosticSink* sink, DonatedArguments* donation) {
  if (exact_ != nullptr) return exact_->RunPointers(arguments, sink, donation);
  std::vector<Literal> borrowed;
  for (const Literal* argument : arguments) {
    borrowed.push_back(Literal::Borrowed(argument->shape(), const_cast<std::byte*>(argument->data())));
  }
  std::optional<std::vector<Literal>> results = reference_->Run(borrowed, sink);
  if (results && donation != nullptr) donation->aliased_argument.assign(results->size(), -1);
  return results;
}

}  // namespace hlokit::interp
