// SPDX-License-Identifier: Apache-2.0
#include "interp/dynamic/sized_engine.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/dynamic/original_observer.h"
#include "interp/dynamic/sized_program.h"

namespace hlokit::interp {
namespace {

class SizedEngine : public Engine {
 public:
  SizedEngine(std::unique_ptr<SizedProgram> program, std::unique_ptr<OriginalObserver> observer,
              std::unique_ptr<Engine> engine, int64_t max_bytes)
      : program_(std::move(program)),
        observer_(std::move(observer)),
        engine_(std::move(engine)),
        max_bytes_(max_bytes) {}

  const std::vector<Shape>& argument_shapes() const override { return program_->argument_shapes(); }
  const std::vector<Shape>& result_shapes() const override { return program_->result_shapes(); }
  DeviceRange devices() const override { return engine_->devices(); }
  using Engine::RunPointers;
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                                  DonatedArguments* donation) override {
    if (!CheckArgumentCount(arguments, sink)) return std::nullopt;
    const absl::StatusOr<std::vector<Literal>> sized = program_->Arguments(arguments, max_bytes_);
    if (!sized.ok()) {
      sink->Error(DiagnosticKind::kEvaluation, {}, std::string(sized.status().message()));
      return std::nullopt;
    }
    std::optional<std::vector<Literal>> results = engine_->Run(*sized, sink);
    if (!results) return std::nullopt;
    std::vector<Literal> own = program_->Results(*std::move(results));
    if (donation != nullptr) donation->aliased_argument.assign(own.size(), -1);
    return own;
  }
  const RunStatistics& statistics() const override { return engine_->statistics(); }
  const CodeInspection* code() const override { return engine_->code(); }

 private:
  const std::unique_ptr<SizedProgram> program_;
  const std::unique_ptr<OriginalObserver> observer_;  // may be null
  const std::unique_ptr<Engine> engine_;
  const int64_t max_bytes_;
};

}  // namespace

std::unique_ptr<Engine> PrepareSized(PrepareFunction prepare, const Module& module, const EvaluatorOptions& options,
                                     DiagnosticSink* sink) {
  std::unique_ptr<SizedProgram> program;
  if (!SizedProgram::Make(module, sink, &program)) return nullptr;
  if (program == nullptr) return prepare(module, options, sink);
  if (options.world != nullptr) {
    sink->Error(DiagnosticKind::kUnsupported, {}, "a program with dynamic dimensions runs in one process");
    return nullptr;
  }
  EvaluatorOptions sized = options;
  sized.observation = WithoutGroups(std::move(sized.observation));
  std::unique_ptr<OriginalObserver> observer;
  if (options.observer != nullptr) {
    observer = std::make_unique<OriginalObserver>(module, program->module(), options.observer);
    sized.observer = observer.get();
  }
  std::unique_ptr<Engine> engine = prepare(program->module(), sized, sink);
  if (engine == nullptr) return nullptr;
  return std::make_unique<SizedEngine>(std::move(program), std::move(observer), std::move(engine),
                                       options.limits.max_bytes);
}

}  // namespace hlokit::interp
