// SPDX-License-Identifier: Apache-2.0
// Custom calls: registered functions, built-in ones, markers that return their operand, and calls that do nothing.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interp/exact/compiled_computation_builder.h"
#include "interp/exact/custom_calls.h"
#include "interp/exact/kernels.h"
#include "interp/exact/kernels/emit.h"
#include "interp/exact/matrix_calls.h"
#include "interp/exact/program_builder.h"
#include "interp/exact/run_context.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kMarkers[] = {
    "LayoutConstraint",         "MoveToDevice",         "MoveToHost",           "Pin",      "PinToDevice",
    "PinToDeviceSram",          "SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding", "Unpin",
    "annotate_device_placement"};

// Stand for communication that control-flow-flattening removed: they do nothing.
constexpr std::string_view kNops[] = {"NopCustomCall", "NopReturnToken"};

bool IsNop(std::string_view target) { return target == kNops[0] || target == kNops[1]; }

bool IsAnnotationCustomCall(std::string_view target) {
  return std::find(std::begin(kMarkers), std::end(kMarkers), target) != std::end(kMarkers) ||
         target.starts_with("xla.sdy.");
}

struct FunctionPlan : ThunkParams {
  const CustomCallFunction* registered = nullptr;
  MatrixCall matrix = nullptr;  // else
  std::vector<Shape> operands;
  std::vector<Shape> results;
  std::string config;
};

void RunFunction(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const FunctionPlan*>(plan);
  std::vector<CustomCallOperand> operands;
  for (size_t i = 0; i < p.operands.size(); ++i) operands.push_back({p.operands[i], in[i]});
  std::vector<CustomCallResult> results;
  for (size_t i = 0; i < p.results.size(); ++i) results.push_back({p.results[i], out[i]});
  const absl::Status status = p.registered != nullptr
                                  ? (*p.registered)(operands, results, p.config)
                                  : p.matrix(operands, results, p.config, [&] { return context.ShouldStop(); });
  if (!status.ok()) context.Fail(std::string(status.message()));
}

std::string UnknownTarget(std::string_view target, const CustomCallRegistry* registry) {
  std::string message = StrCat("no function for custom-call target \"", target,
                               "\"; there are Eigh, ProductOfElementaryHouseholderReflectors, Qr, TopK, xla.sdy.*");
  for (std::string_view marker : kMarkers) StrAppend(&message, ", ", marker);
  for (std::string_view nop : kNops) StrAppend(&message, ", ", nop);
  if (registry != nullptr) {
    for (const std::string& registered : registry->Targets()) StrAppend(&message, ", ", registered);
  }
  return message;
}

}  // namespace

void PrepareCustomCall(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const std::string_view target = instruction.string_attr(Attr::kCustomCallTarget);
  const CustomCallRegistry* registry = b.program().options().custom_calls;
  const CustomCallFunction* registered = registry == nullptr ? nullptr : registry->Find(target);
  const MatrixCall matrix = FindMatrixCall(target);
  if (registered != nullptr || matrix != nullptr) {
    auto plan = std::make_unique<FunctionPlan>();
    plan->registered = registered;
    plan->matrix = matrix;
    plan->config = std::string(instruction.string_attr(Attr::kBackendConfig));
    std::vector<View> views;
    for (Instruction operand : instruction.operands()) {
      const std::vector<View> leaves(b.leaves(operand).begin(), b.leaves(operand).end());
      for (const View& v : leaves) {
        views.push_back(b.MakeDense(v));
        plan->operands.push_back(v.shape);
      }
    }
    AppendLeaves(b.shape(), &plan->results);
    b.Emit(RunFunction, std::move(plan), views);
    return;
  }
  if (IsAnnotationCustomCall(target) && instruction.operand_count() >= 1 &&
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
  if (unused || IsNop(target)) {
    // A side effect without values.
    if (!IsNop(target)) {
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
  b.EmitTrap(UnknownTarget(target, registry));
}

}  // namespace hlokit::interp
