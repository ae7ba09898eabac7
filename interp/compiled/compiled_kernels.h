// SPDX-License-Identifier: Apache-2.0
// The kernels of the fast engine: an exact program in which products and convolutions are primitives of oneDNN, and
// elementwise instructions one generated loop where they belong together. What has neither keeps its exact kernel.
//
//   auto kernels = std::make_shared<compiled::CompiledKernels>(options.observation);
//   std::unique_ptr<Evaluator> evaluator = Evaluator::Prepare(module, options, &sink, kernels);
#ifndef HLOKIT_INTERP_COMPILED_COMPILED_KERNELS_H_
#define HLOKIT_INTERP_COMPILED_COMPILED_KERNELS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "interp/compiled/code/code_cache.h"
#include "interp/compiled/loops/group_planner.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/loop_program.h"
#include "interp/exact/builder/kernel_provider.h"
#include "interp/interface/execution_observer.h"
#include "ir/graph/module.h"

namespace hlokit::interp::compiled {

// What became of an instruction, for reports.
struct KernelChoice {
  InstructionId instruction;
  enum class Kind : uint8_t { kLoop, kProduct, kConvolution, kWindow, kExact } kind = Kind::kExact;
  // Of kLoop: the last instruction of the loop. Of kExact: why it is not compiled, empty if it never is.
  InstructionId loop;
  std::string reason;
};

// A generated loop, for reports.
struct CompiledLoop {
  InstructionId root;  // the last instruction
  LoopProgram program;
};

class CompiledKernels : public KernelProvider {
 public:
  explicit CompiledKernels(ObservationRequest observation, const GroupOptions& groups = GroupOptions());
  ~CompiledKernels() override;

  std::vector<InstructionGroup> Group(Computation computation,
                                      const std::function<bool(Instruction)>& is_live) override;
  bool PrepareGroup(CompiledComputationBuilder& builder, const InstructionGroup& group) override;
  bool Prepare(CompiledComputationBuilder& builder) override;
  bool Complete(bool prepared) override;

  // Of the programs prepared so far.
  const CodeStatistics& statistics() const { return code_.statistics(); }
  const std::vector<KernelChoice>& choices() const { return choices_; }
  const std::vector<CompiledLoop>& loops() const { return loops_; }

 private:
  bool PrepareWhile(CompiledComputationBuilder& builder);

  const ObservationRequest observation_;
  const GroupOptions group_options_;
  ProgramCode code_;
  int num_threads_ = 1;
  PackedWeights packed_weights_;
  std::vector<KernelChoice> choices_;
  std::vector<CompiledLoop> loops_;
  size_t complete_choices_ = 0, complete_loops_ = 0;  // of programs before the current one
};

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_COMPILED_KERNELS_H_
