// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/windows/window_thunk.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/compiled/windows/window_layout.h"
#include "interp/compiled/windows/window_run.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/machine/run_context.h"
#include "interp/processor/instruction_set.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kMaxScratch = int64_t{64} << 20;  // of a thread, in bytes

std::optional<WindowType> WindowTypeOf(ElementType type) {
  if (type == ElementType::kF32) return WindowType::kF32;
  if (type == ElementType::kBF16) return WindowType::kBF16;
  if (type == ElementType::kF16 && HostInstructionSet() != InstructionSet::kSse4) return WindowType::kF16;
  return std::nullopt;
}

// Returns the axes of the window of an instruction; nullopt if it has none.
std::optional<std::vector<WindowDimension>> AxesOf(Instruction i, absl::Span<const int64_t> input,
                                                   absl::Span<const int64_t> output) {
  const WindowView window = WindowView::Of(i);
  if (!window.ok() || window.rank() != static_cast<int64_t>(input.size()) || output.size() != input.size() ||
      input.empty()) {
    return std::nullopt;
  }
  std::vector<WindowDimension> axes(input.size());
  for (size_t d = 0; d < input.size(); ++d) {
    axes[d].window = window[static_cast<int64_t>(d)];
    axes[d].input = input[d];
    axes[d].output = output[d];
  }
  return axes;
}

bool HasType(const ScalarFunction* function, ElementType type) {
  return function != nullptr && function->parameter_count() == 2 && function->parameter_type(0) == type &&
         function->parameter_type(1) == type;
}

// Returns the view in an order of memory, dense.
View DenseInOrder(CompiledComputationBuilder& b, const View& view, const MemoryOrder& order) {
  return b.MakeDense(InMemoryOrder(b, view, order));
}

// A scalar by which all elements are multiplied or divided.
struct Scale {
  WindowScale::Op op = WindowScale::Op::kNone;
  Instruction scalar;
  Instruction operand;
};

// Returns the scale that an instruction is; nullopt for others.
std::optional<Scale> ScaleOf(Instruction i) {
  const bool divides = i.opcode() == Opcode::kDivide;
  if ((!divides && i.opcode() != Opcode::kMultiply) || i.operand_count() != 2) return std::nullopt;
  for (const int k : {1, 0}) {
    if (k == 0 && divides) break;
    const Instruction wide = i.operand(k), other = i.operand(1 - k);
    if (wide.opcode() != Opcode::kBroadcast || wide == other) continue;
    const Instruction scalar = wide.operand(0);
    if (!scalar.shape().IsArray() || scalar.shape().rank() != 0 || !other.shape().IsArray() ||
        other.shape().dims() != i.shape().dims() || other.shape().element_type() != i.shape().element_type() ||
        scalar.shape().element_type() != i.shape().element_type()) {
      continue;
    }
    return Scale{divides ? WindowScale::Op::kDivide : WindowScale::Op::kMultiply, scalar, other};
  }
  return std::nullopt;
}

bool IsPositiveZero(Instruction i) {
  if (i.opcode() != Opcode::kConstant || !i.shape().IsArray() || i.shape().rank() != 0) return false;
  const LiteralRecord& literal = i.literal();
  return !literal.elided && literal.data != nullptr &&
         std::all_of(literal.data, literal.data + literal.size_bytes, [](std::byte b) { return b == std::byte{0}; });
}

// Returns true if a pad adds zeros and takes nothing away.
bool IsPadOfZeros(Instruction i) {
  if (i.opcode() != Opcode::kPad || i.operand_count() != 2 || !IsPositiveZero(i.operand(1)) || !i.shape().IsArray() ||
      !i.operand(0).shape().IsArray() || i.operand(0).shape().element_type() != i.shape().element_type()) {
    return false;
  }
  const PaddingView padding = PaddingView::Of(i);
  if (!padding.ok() || padding.rank() != i.shape().rank()) return false;
  for (int64_t d = 0; d < padding.rank(); ++d) {
    constexpr int64_t kMax = int64_t{1} << 20;
    if (padding.low(d) < 0 || padding.high(d) < 0 || padding.interior(d) < 0 || padding.low(d) > kMax ||
        padding.interior(d) > kMax) {
      return false;
    }
  }
  return true;
}

bool IsSum(Instruction window) {
  const Computation function = window.computation_attr(Attr::kToApply);
  if (!function.valid() || function.parameter_count() != 2) return false;
  const Instruction root = function.root();
  return root.opcode() == Opcode::kAdd && root.operand(0) != root.operand(1);
}

// A pool with what surrounds it.
struct Pool {
  Instruction window, pad;
  Scale before, after;
  Instruction result;  // the last instruction
};

// Returns the pool of a group.
Pool PoolOf(absl::Span<const Instruction> members) {
  Pool pool;
  bool done = false;
  for (Instruction member : members) {
    if (member.opcode() == Opcode::kReduceWindow) {
      pool.window = member;
      done = true;
    } else if (member.opcode() == Opcode::kPad) {
      pool.pad = member;
    } else {
      (done ? pool.after : pool.before) = *ScaleOf(member);
    }
  }
  pool.result = members.back();
  return pool;
}

PrepareResult Prepare(CompiledComputationBuilder& b, const Pool& pool, int64_t min_elements) {
  const Instruction i = pool.window;
  if (i.operand_count() != 2 || !i.shape().IsArray()) return PrepareResult::Unsupported();
  const ElementType type = i.shape().element_type();
  const std::optional<WindowType> window_type = WindowTypeOf(type);
  if (!window_type) return PrepareResult::Unsupported();
  Instruction source = i.operand(0);
  if (pool.pad.valid()) source = pool.pad.operand(0);
  if (pool.before.op != WindowScale::Op::kNone) source = pool.before.operand;
  const View operand = b.leaves(source)[0], initial = b.leaves(i.operand(1))[0];
  if (operand.type() != type || initial.type() != type || initial.shape.rank() != 0) {
    return PrepareResult::Unsupported();
  }
  const ScalarFunction* const function = b.program().FunctionOf(i.computation_attr(Attr::kToApply));
  if (!HasType(function, type)) return PrepareResult::Unsupported();
  using Op = ScalarFunction::RecognizedOp;
  const Op op = function->recognized_op();
  if (op != Op::kMaximum && op != Op::kMinimum && op != Op::kAdd) return PrepareResult::Unsupported("the function");
  std::optional<std::vector<WindowDimension>> axes = AxesOf(i, operand.dims(), i.shape().dims());
  if (!axes) return PrepareResult::Unsupported("no window");
  for (size_t d = 0; pool.pad.valid() && d < axes->size(); ++d) {
    const PaddingView padding = PaddingView::Of(pool.pad);
    WindowDim& window = (*axes)[d].window;
    // Of a pad without elements between, the window may have a dilation of its own.
    if (window.base_dilation != 1) return PrepareResult::Unsupported("a dilated operand");
    window.base_dilation = padding.interior(static_cast<int64_t>(d)) + 1;
    window.padding_low += padding.low(static_cast<int64_t>(d));
  }
  auto params = std::make_unique<WindowParams>();
  params->type = *window_type;
  params->op = op == Op::kMaximum ? PoolOp::kMaximum : op == Op::kMinimum ? PoolOp::kMinimum : PoolOp::kSum;
  params->before = pool.before.op;
  params->after = pool.after.op;
  const View views[] = {operand};
  absl::StatusOr<WindowLayout> layout =
      LayoutOf(*axes, ChooseOrder(operand.dims(), views), /*gradient=*/false, min_elements);
  if (!layout.ok()) return PrepareResult::Unsupported(layout.status());
  params->layout = *std::move(layout);
  if (params->PoolScratch() > kMaxScratch || !HasThreadScratch(b, params->PoolScratch())) {
    return PrepareResult::Unsupported("memory");
  }
  params->kernels = &WindowKernelsOf(HostInstructionSet());
  const MemoryOrder order = params->layout.order;
  std::vector<View> operands = {DenseInOrder(b, operand, order), initial};
  for (const Scale* scale : {&pool.before, &pool.after}) {
    if (scale->op != WindowScale::Op::kNone) operands.push_back(b.leaves(scale->scalar)[0]);
  }
  const Shape result = b.program_shapes().Array(type, Permuted(i.shape().dims(), order));
  const View made = b.EmitTo(kKernel<RunPool>, std::move(params), operands, {&result, 1})[0];
  b.SetResult(InDeclaredOrder(b, made, order, i.shape()));
  return PrepareResult::Prepared();
}

}  // namespace

PrepareResult PreparePool(CompiledComputationBuilder& b, int64_t min_elements) {
  Pool pool;
  pool.window = pool.result = b.instruction();
  // The types must be those of the computation; others are converted by the exact engine.
  for (int64_t k = 0; k < pool.window.operand_count(); ++k) {
    if (!pool.window.operand(k).shape().IsArray() ||
        b.operand(k).type() != b.leaves(pool.window.operand(k))[0].type() || b.shape() != pool.window.shape()) {
      return PrepareResult::Unsupported();
    }
  }
  return Prepare(b, pool, min_elements);
}

void AddPoolGroups(Computation computation, const std::function<bool(Instruction)>& may_join,
                   std::vector<InstructionGroup>* groups) {
  absl::flat_hash_map<uint32_t, size_t> group_of;  // by instruction id
  for (size_t g = 0; g < groups->size(); ++g) {
    for (Instruction member : (*groups)[g].members) group_of[member.id().value] = g;
  }
  const auto may_be_member = [&](Instruction i) { return may_join(i) && !i.has(Attr::kControlPredecessors); };
  const auto has_one_user = [](Instruction i) { return i.users().size() == 1 && i != i.parent().root(); };
  // Returns true if no group is divided.
  const auto takes_whole_groups = [&](const std::vector<Instruction>& members) {
    return std::all_of(members.begin(), members.end(), [&](Instruction member) {
      const auto it = group_of.find(member.id().value);
      if (it == group_of.end()) return true;
      if (it->second >= groups->size()) return false;  // part of another pool
      const std::vector<Instruction>& others = (*groups)[it->second].members;
      return std::all_of(others.begin(), others.end(), [&](Instruction other) {
        return std::find(members.begin(), members.end(), other) != members.end();
      });
    });
  };
  std::vector<InstructionGroup> pools;
  for (Instruction window : computation.instructions()) {
    if (window.opcode() != Opcode::kReduceWindow || window.operand_count() != 2 || !window.shape().IsArray() ||
        !window.operand(0).shape().IsArray() || !WindowTypeOf(window.shape().element_type()) || !IsSum(window) ||
        window.operand(0).shape().element_type() != window.shape().element_type() || !may_be_member(window)) {
      continue;
    }
    std::vector<Instruction> before, after;
    // Zeros change no sum that does not begin with -0.
    Instruction source = window.operand(0);
    if (IsPadOfZeros(source) && IsPositiveZero(window.operand(1)) && has_one_user(source) && may_be_member(source)) {
      before.push_back(source);
      source = source.operand(0);
    }
    if (ScaleOf(source) && has_one_user(source) && may_be_member(source)) before.insert(before.begin(), source);
    if (has_one_user(window)) {
      const Instruction user = window.users()[0];
      const std::optional<Scale> scale = ScaleOf(user);
      if (scale && scale->operand == window && may_be_member(user)) after.push_back(user);
    }
    InstructionGroup group;
    for (const auto& [with_before, with_after] : {std::pair(true, true), {true, false}, {false, true}}) {
      group.members.clear();
      if (with_before) group.members = before;
      group.members.push_back(window);
      if (with_after) group.members.insert(group.members.end(), after.begin(), after.end());
      if (group.members.size() > 1 && takes_whole_groups(group.members)) break;
      group.members.clear();
    }
    if (group.members.empty()) continue;
    group.shape = group.members.back().shape();
    for (Instruction member : group.members) {
      const auto it = group_of.find(member.id().value);
      if (it != group_of.end()) (*groups)[it->second].members.clear();
      group_of[member.id().value] = groups->size() + pools.size();
    }
    pools.push_back(std::move(group));
  }
  for (InstructionGroup& pool : pools) groups->push_back(std::move(pool));
  std::erase_if(*groups, [](const InstructionGroup& group) { return group.members.empty(); });
}

bool IsPoolGroup(const InstructionGroup& group) {
  return std::any_of(group.members.begin(), group.members.end(),
                     [](Instruction i) { return i.opcode() == Opcode::kReduceWindow; });
}

PrepareResult PreparePoolGroup(CompiledComputationBuilder& b, const InstructionGroup& group, int64_t min_elements) {
  const Pool pool = PoolOf(group.members);
  b.set_instruction(pool.result);
  return Prepare(b, pool, min_elements);
}

PrepareResult PrepareSelectAndScatterThunk(CompiledComputationBuilder& b, int64_t min_elements) {
  const Instruction i = b.instruction();
  if (i.operand_count() != 3 || !i.shape().IsArray()) return PrepareResult::Unsupported();
  const ElementType type = b.shape().element_type();
  const std::optional<WindowType> window_type = WindowTypeOf(type);
  if (!window_type) return PrepareResult::Unsupported();
  for (int64_t k = 0; k < 3; ++k) {
    if (b.operand(k).type() != type) return PrepareResult::Unsupported();
  }
  const View operand = b.operand(0), source = b.operand(1);
  if (operand.dims() != b.shape().dims() || source.shape.rank() != operand.shape.rank() ||
      b.operand(2).shape.rank() != 0) {
    return PrepareResult::Unsupported();
  }
  const Computation select = i.computation_attr(Attr::kSelect);
  const ScalarFunction* const scatter = b.program().FunctionOf(i.computation_attr(Attr::kScatter));
  if (!HasType(scatter, type) || scatter->recognized_op() != ScalarFunction::RecognizedOp::kAdd || !select.valid() ||
      select.parameter_count() != 2) {
    return PrepareResult::Unsupported("the functions");
  }
  const Instruction root = select.root();
  const Shape scalar = b.operand(2).shape;
  if (root.opcode() != Opcode::kCompare || root.operand(0) != select.parameter(0) ||
      root.operand(1) != select.parameter(1) || root.operand(0).shape().dims() != scalar.dims() ||
      root.operand(0).shape().element_type() != type || root.operand(1).shape().element_type() != type ||
      root.has(Attr::kControlPredecessors) ||
      root.enum_attr(Attr::kCompareType, ComparisonType::kFloat) != ComparisonType::kFloat) {
    return PrepareResult::Unsupported("the functions");
  }
  auto params = std::make_unique<WindowParams>();
  params->type = *window_type;
  switch (root.enum_attr(Attr::kDirection, ComparisonDirection::kEq)) {
    case ComparisonDirection::kGe:
      break;
    case ComparisonDirection::kGt:
      params->equal = false;
      break;
    case ComparisonDirection::kLe:
      params->greater = false;
      break;
    case ComparisonDirection::kLt:
      params->greater = params->equal = false;
      break;
    case ComparisonDirection::kEq:
    case ComparisonDirection::kNe:
      return PrepareResult::Unsupported("the functions");
  }
  const std::optional<std::vector<WindowDimension>> axes = AxesOf(i, operand.dims(), source.dims());
  if (!axes) return PrepareResult::Unsupported("no window");
  const View views[] = {operand};
  absl::StatusOr<WindowLayout> layout =
      LayoutOf(*axes, ChooseOrder(operand.dims(), views), /*gradient=*/true, min_elements);
  if (!layout.ok()) return PrepareResult::Unsupported(layout.status());
  params->layout = *std::move(layout);
  if (params->GradientScratch() > kMaxScratch || !HasThreadScratch(b, params->GradientScratch())) {
    return PrepareResult::Unsupported("memory");
  }
  params->kernels = &WindowKernelsOf(HostInstructionSet());
  const MemoryOrder order = params->layout.order;
  const View operands[] = {DenseInOrder(b, operand, order), DenseInOrder(b, source, order), b.operand(2)};
  const Shape result = b.program_shapes().Array(type, Permuted(b.shape().dims(), order));
  const View made = b.EmitTo(kKernel<RunPoolGradient>, std::move(params), operands, {&result, 1})[0];
  b.SetResult(InDeclaredOrder(b, made, order, b.shape()));
  return PrepareResult::Prepared();
}

}  // namespace hlokit::interp::compiled
