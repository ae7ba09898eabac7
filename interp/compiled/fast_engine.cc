// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/fast_engine.h"

#include <algorithm>
#include <utility>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/compiled/explanation.h"
#include "interp/exact/evaluator.h"
#include "interp/processor/instruction_set.h"
#include "ir/inference/shape_inference.h"

namespace hlokit::interp::compiled {
namespace {

class FastEngine : public Engine, public CodeInspection {
 public:
  FastEngine(const Module& module, std::shared_ptr<CompiledKernels> kernels, std::unique_ptr<Evaluator> evaluator)
      : module_(module), kernels_(std::move(kernels)), evaluator_(std::move(evaluator)) {}

  const std::vector<Shape>& argument_shapes() const override { return evaluator_->argument_shapes(); }
  const std::vector<Shape>& result_shapes() const override { return evaluator_->result_shapes(); }
  DeviceRange devices() const override { return evaluator_->devices(); }
  using Engine::RunPointers;
  std::optional<std::vector<Literal>> RunPointers(absl::Span<const Literal* const> arguments, DiagnosticSink* sink,
                                                  DonatedArguments* donation) override {
    return evaluator_->RunPointers(arguments, sink, donation);
  }
  const RunStatistics& statistics() const override { return evaluator_->statistics(); }
  const CodeInspection* code() const override { return this; }

  std::string Explain() const override { return compiled::Explain(module_, *kernels_, evaluator_->planned_memory()); }
  std::string Plan() const override {
    const std::vector<std::string> texts = KernelTexts(module_, *kernels_);
    return evaluator_->PlanText([&](InstructionId id) { return texts[id.value]; });
  }
  size_t loops() const override { return kernels_->loops().size(); }
  absl::Span<const std::string_view> stage_extensions() const override {
    static constexpr std::string_view kExtensions[] = {".hlo", ".loop", ".ll", ".opt.ll", ".s"};
    return kExtensions;
  }
  std::vector<std::string> StagesOfLoop(size_t loop) const override {
    LoopTexts texts = TextsOf(module_, *kernels_, kernels_->loops()[loop]);
    return {std::move(texts.hlo), std::move(texts.program), std::move(texts.ir), std::move(texts.optimized_ir),
            std::move(texts.assembly)};
  }
  std::map<uint32_t, std::vector<InstructionId>> LoopMembers() const override {
    return compiled::LoopMembers(*kernels_);
  }

 private:
  const Module& module_;
  const std::shared_ptr<CompiledKernels> kernels_;
  const std::unique_ptr<Evaluator> evaluator_;
};

// Returns true if the instruction reads the bytes of operands as elements of another type (mixed_precision.h), which
// passes do not know of.
bool IsReinterpreting(Instruction i) {
  if (i.opcode() == Opcode::kBitcast && i.shape().IsArray() && i.operand(0).shape().IsArray()) {
    const int from = BitsOf(i.operand(0).shape().element_type()), to = BitsOf(i.shape().element_type());
    return from != to && std::min(from, to) < 8;
  }
  if (!HasTrait(i.opcode(), kElementwise) && !HasTrait(i.opcode(), kUniformTypes)) return false;
  std::vector<Shape> operands;
  return !CheckShape(RequestFor(i, &operands), /*mixed_precision=*/false).ok();
}

}  // namespace

std::unique_ptr<Engine> PrepareFastEngine(const Module& module, const EvaluatorOptions& options, DiagnosticSink* sink) {
  if (const std::string error = InstructionSetError(); !error.empty()) {
    sink->Error(DiagnosticKind::kUnsupported, {}, error);
    return nullptr;
  }
  if (!HasEngineModules()) {
    sink->Warning(DiagnosticKind::kUnsupported, {},
                  "neither libhlokit_onednn.so nor libhlokit_llvm.so is in ../lib/hlokit beside the program: the "
                  "fast engine runs products, and loops that are not on disk, as slowly as the exact engine "
                  "(install both modules with the program; to build them: tools/install-deps engine)");
  }
  auto kernels = std::make_shared<CompiledKernels>(options.observation);
  std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(module, options, sink, kernels);
  if (evaluator == nullptr) return nullptr;
  return std::make_unique<FastEngine>(module, std::move(kernels), std::move(evaluator));
}

std::unique_ptr<Engine> PrepareSingleLoops(const Module& module, const EvaluatorOptions& options,
                                           DiagnosticSink* sink) {
  return Evaluator::Prepare(module, options, sink,
                            std::make_shared<CompiledKernels>(ObservationRequest(), GroupOptions::OfAnySize(1)));
}

std::string PassesForFastEngine(const Module& module, MixedPrecisionMode mode) {
  for (Computation computation : module.computations()) {
    for (Instruction i : computation.instructions()) {
      if (i.opcode() == Opcode::kRng || i.opcode() == Opcode::kRngGetAndUpdateState) return "";
      if (mode == MixedPrecisionMode::kReinterpret && IsReinterpreting(i)) return "";
    }
  }
  return "cpu";
}

}  // namespace hlokit::interp::compiled
