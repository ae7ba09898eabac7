// SPDX-License-Identifier: Apache-2.0
// Custom calls: registered functions, built-in ones, markers that return their operand, and calls that do nothing.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/custom_calls/custom_call_device.h"
#include "interp/custom_calls/custom_calls.h"
#include "interp/custom_calls/layout_constraints.h"
#include "interp/custom_calls/matrix_calls.h"
#include "interp/custom_calls/operand_aliases.h"
#include "interp/custom_calls/process_calls.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

struct FunctionParams : ThunkParams {
  const CustomCallFunction* registered = nullptr;
  MatrixCall matrix = nullptr;  // else
  CustomCallFunction built_in;  // `registered` if nobody has registered another
  std::vector<Shape> operands;
  std::vector<Shape> results;
  OperandAliases aliases;
  std::string config;
};

void RunFunction(const FunctionParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  std::vector<CustomCallOperand> operands;
  for (size_t i = 0; i < p.operands.size(); ++i) operands.push_back({p.operands[i], in[i]});
  std::vector<CustomCallResult> results;
  for (size_t i = 0; i < p.results.size(); ++i) results.push_back({p.results[i], out[i]});
  MakeAliases(p.aliases, absl::MakeSpan(operands), results);
  std::optional<Scratch> scratch;
  const auto allocate = [&](int64_t count) {
    scratch.emplace(context, SaturatingMultiply(count, int64_t{sizeof(double)}));
    return scratch->as<double>();
  };
  const MatrixCallRun run = {[&] { return context.ShouldStop(); }, allocate};
  const CustomCallStop stop(&run.should_stop);
  device_of_custom_call = context.device.replica * context.num_partitions + context.device.partition;
  const absl::Status status = p.registered != nullptr ? (*p.registered)(operands, results, p.config)
                                                      : p.matrix(operands, results, p.config, run);
  if (!status.ok()) context.Fail(std::string(status.message()));
}

}  // namespace

void PrepareCustomCall(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const std::string_view target = instruction.string_attr(Attr::kCustomCallTarget);
  const CustomCallRegistry* registry = b.program().options().custom_calls;
  const CustomCallFunction* registered = registry == nullptr ? nullptr : registry->Find(target);
  const MatrixCall matrix = FindMatrixCall(target);
  CustomCallFunction built_in = registered == nullptr ? FunctionFor(instruction) : CustomCallFunction();
  if (registered != nullptr || matrix != nullptr || built_in != nullptr) {
    auto params = std::make_unique<FunctionParams>();
    params->built_in = std::move(built_in);
    params->registered = params->built_in != nullptr ? &params->built_in : registered;
    params->matrix = matrix;
    params->config = std::string(instruction.string_attr(Attr::kBackendConfig));
    std::vector<View> views;
    for (Instruction operand : instruction.operands()) {
      const std::vector<View> leaves(b.leaves(operand).begin(), b.leaves(operand).end());
      for (const View& v : leaves) {
        views.push_back(b.MakeDense(v));
        params->operands.push_back(v.shape);
      }
    }
    SetLayoutConstraints(instruction, &params->operands);
    if (params->registered != nullptr) params->aliases = OperandAliasesOf(instruction);
    AppendLeaves(b.shape(), &params->results);
    b.Emit(kKernel<RunFunction>, std::move(params), views);
    return;
  }
  if (IsMarkerTarget(target) && instruction.operand_count() >= 1 &&
      SameShape(instruction.operand(0).shape(), b.shape(), /*ignore_layout=*/true)) {
    b.SetResults(b.leaves(instruction.operand(0)));
    return;
  }
  if (target == "TopK" && instruction.operand_count() == 1 && b.shape().IsTuple() && b.shape().tuple_size() == 2 &&
      b.shape().element(0).rank() >= 1) {
    const Shape values = b.shape().element(0);
    EmitTopK(b, values.dim(values.rank() - 1), /*largest=*/true);
    return;
  }
  const bool unused = !instruction.has_users() && instruction.parent().root() != instruction;
  if (unused || IsNopTarget(target)) {
    // A side effect without values.
    if (!IsNopTarget(target)) {
      b.Warn(
          StrCat("custom-call target \"", target, "\" is not known: the call is left out, nothing reads its result"));
    }
    std::vector<Shape> results;
    AppendLeaves(b.shape(), &results);
    std::vector<View> views;
    for (Shape leaf : results) views.push_back(b.Zeros(leaf));
    b.SetResults(views);
    return;
  }
  b.EmitTrap(UnknownTargetMessage(target, registry));
}

}  // namespace hlokit::interp
