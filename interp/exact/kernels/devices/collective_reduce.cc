// SPDX-License-Identifier: Apache-2.0
// All-reduce, reduce-scatter and collective-reduce: f(f(x0, x1), x2)... over the members of a group in order, element
// by element.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/builder/scalar_function.h"
#include "interp/exact/kernels/devices/collective_groups.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

struct CollectiveReduceParams : CollectiveParams {
  CollectiveReduction reduce;

  const CollectiveReduction* reduction() const override { return &reduce; }

  void Run(absl::Span<const CollectiveMember> members, RunContext& context) const override {
    const int64_t n = static_cast<int64_t>(members.size());
    std::vector<const std::byte*> inputs(members.size());
    for (size_t k = 0; k < reduce.parts.size() && !context.failed(); ++k) {
      const CollectiveReduction::Part& part = reduce.parts[k];
      const size_t bytes = static_cast<size_t>(part.count * part.bytes);
      const Scratch scratch(context, reduce.scatters ? part.count * part.bytes : 0);
      std::byte* total = reduce.scatters ? scratch.data() : members[0].results[k];
      if (total == nullptr) return;
      for (size_t m = 0; m < members.size(); ++m) inputs[m] = members[m].operands[k];
      reduce.Reduce(inputs, part.count, total, context);
      for (int64_t m = 0; m < n; ++m) {
        if (!reduce.scatters) {
          if (m > 0) std::memcpy(members[m].results[k], total, bytes);
          continue;
        }
        const size_t piece = bytes / static_cast<size_t>(part.outer * n);
        for (int64_t row = 0; row < part.outer; ++row) {
          std::memcpy(members[m].results[k] + static_cast<size_t>(row) * piece,
                      total + static_cast<size_t>(row * n + m) * piece, piece);
        }
      }
    }
  }
};

// Keeps what all members of a group have at the roots: for each operand the first member or, with a dynamic root, the
// one that the last operand says. The other devices get zeros.
struct KeepAtRootParams : ThunkParams {
  struct Member {
    int64_t position = -1;  // in the group; -1: in none
    int64_t members = 0;    // of the group
  };
  std::vector<Member> members;  // by device
  std::vector<int64_t> bytes;   // of each operand but the roots
  bool dynamic_root = false;
};

void RunKeepAtRoot(const KeepAtRootParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const KeepAtRootParams::Member self =
      p.members[static_cast<size_t>(context.device.replica * context.num_partitions + context.device.partition)];
  const auto* const roots = p.dynamic_root ? reinterpret_cast<const int32_t*>(in[p.bytes.size()]) : nullptr;
  for (size_t k = 0; k < p.bytes.size(); ++k) {
    const int64_t root = roots != nullptr ? roots[k] : 0;
    if (self.position >= 0 && (root < 0 || root >= self.members)) {
      return context.Fail(
          StrCat("the root of operand ", k, " is ", root, "; the group has ", self.members, " devices"));
    }
    const auto bytes = static_cast<size_t>(p.bytes[k]);
    if (self.position < 0 || self.position != root) {
      std::memset(out[k], 0, bytes);
    } else if (out[k] != in[k]) {
      std::memcpy(out[k], in[k], bytes);
    }
  }
}

// Emits the reduction of the operands, of which the last one holds the roots if they are dynamic. Returns the results;
// nullopt after an error. `members`: filled by device if it is given; then groups may omit devices.
std::optional<ViewList> EmitReduction(CompiledComputationBuilder& b, bool scatters,
                                      std::vector<KeepAtRootParams::Member>* members) {
  const Instruction instruction = b.instruction();
  auto params = std::make_unique<CollectiveReduceParams>();
  CollectiveReduction& reduce = params->reduce;
  reduce.scatters = scatters;
  reduce.function = b.program().FunctionOf(instruction.computation_attr(Attr::kToApply));
  const ScalarFunction* function = reduce.function;
  if (function == nullptr || function->parameter_count() != 2 || function->result_count() != 1 ||
      function->parameter_type(0) != function->result_type(0) ||
      function->parameter_type(1) != function->result_type(0)) {
    b.Fail("expected a reducer of two scalars of the type that it returns");
    return std::nullopt;
  }
  std::vector<bool> absent;
  if (!InitGroups(b, params.get(), members != nullptr ? &absent : nullptr)) return std::nullopt;
  if (members != nullptr) {
    members->resize(absent.size());
    for (const std::vector<int64_t>& group : params->groups) {
      const auto size = static_cast<int64_t>(group.size());
      for (int64_t i = 0; i < size; ++i) {
        const auto device = static_cast<size_t>(group[static_cast<size_t>(i)]);
        if (!absent[device]) (*members)[device] = {i, size};
      }
    }
  }
  const ElementType type = function->result_type(0);
  reduce.type = type;
  std::vector<Shape> declared;
  AppendLeaves(b.shape(), &declared);
  const int64_t roots = instruction.bool_attr(Attr::kHasDynamicRoot) ? 1 : 0;
  if (static_cast<int64_t>(declared.size()) + roots != instruction.operand_count()) {
    b.FailMismatch("a result for each operand");
    return std::nullopt;
  }
  // If the function's precision differs from the operands', reduces in that of the function.
  std::vector<View> views;
  std::vector<Shape> results;
  for (size_t k = 0; k < declared.size(); ++k) {
    View view = b.operand(static_cast<int64_t>(k));
    if (view.type() != type) {
      const Shape shape = b.program_shapes().Array(type, view.dims());
      const std::optional<View> converted = EmitElementwise(b, Opcode::kConvert, instruction, {&view, 1}, shape);
      if (!converted) return std::nullopt;
      view = *converted;
    }
    views.push_back(b.MakeDense(view));
    results.push_back(b.program_shapes().Array(type, declared[k].dims()));
    CollectiveReduction::Part part;
    part.count = view.count();
    part.bytes = BytesOf(type);
    if (scatters) {
      const absl::Span<const int64_t> dims = instruction.list_attr(Attr::kDimensions);
      if (dims.size() != 1 || dims[0] < 0 || dims[0] >= view.shape.rank()) {
        b.FailMismatch("one dimension in range of each operand");
        return std::nullopt;
      }
      const int64_t whole = view.shape.dim(dims[0]);
      const int64_t piece = declared[k].dim(dims[0]);
      if (piece != 0 && !GroupsHaveSize(b, *params, whole / piece)) return std::nullopt;
      for (int64_t d = 0; d < dims[0]; ++d) part.outer *= view.shape.dim(d);
      if (part.count == 0) part.outer = 1;
    }
    reduce.parts.push_back(part);
  }
  // A start that converts its results has them before its done.
  params->starts = HasTrait(instruction.opcode(), kStartsAsync) && b.program().options().among_processes() &&
                   std::all_of(declared.begin(), declared.end(), [&](Shape s) { return s.element_type() == type; });
  ViewList reduced = b.EmitCollective(std::move(params), views, results);
  for (size_t k = 0; k < reduced.size(); ++k) {
    if (reduced[k].type() == declared[k].element_type()) continue;
    const std::optional<View> converted =
        EmitElementwise(b, Opcode::kConvert, instruction, {&reduced[k], 1}, declared[k]);
    if (!converted) return std::nullopt;
    reduced[k] = *converted;
  }
  return reduced;
}

}  // namespace

void CollectiveReduction::Reduce(absl::Span<const std::byte* const> inputs, int64_t count, std::byte* total,
                                 RunContext& context) const {
  const int64_t bytes = BytesOf(type);
  const auto run = [&](int64_t begin, int64_t end) {
    constexpr int64_t kStrides[] = {1, 1};
    const int64_t at = begin * bytes;
    std::byte* results[] = {total + at};
    if (total != inputs[0]) std::memcpy(results[0], inputs[0] + at, static_cast<size_t>((end - begin) * bytes));
    ScalarFunction::BlockScratch scratch(*function, end - begin);
    for (size_t m = 1; m < inputs.size(); ++m) {
      const std::byte* parameters[] = {results[0], inputs[m] + at};
      function->Run(parameters, kStrides, results, end - begin, scratch, context);
    }
  };
  function->ParallelFor(context, count, function->cost() * static_cast<double>(inputs.size()), run);
}

void PrepareAllReduce(CompiledComputationBuilder& b) {
  if (const std::optional<ViewList> results = EmitReduction(b, /*scatters=*/false, nullptr)) b.SetResults(*results);
}

void PrepareReduceScatter(CompiledComputationBuilder& b) {
  if (const std::optional<ViewList> results = EmitReduction(b, /*scatters=*/true, nullptr)) b.SetResults(*results);
}

void PrepareCollectiveReduce(CompiledComputationBuilder& b) {
  auto params = std::make_unique<KeepAtRootParams>();
  const std::optional<ViewList> reduced = EmitReduction(b, /*scatters=*/false, &params->members);
  if (!reduced) return;
  std::vector<View> views;
  for (const View& view : *reduced) {
    views.push_back(b.MakeDense(view));
    params->bytes.push_back(view.count() * BytesOf(view.type()));
  }
  params->dynamic_root = b.instruction().bool_attr(Attr::kHasDynamicRoot);
  if (params->dynamic_root) {
    views.push_back(b.MakeDense(b.operand(b.instruction().operand_count() - 1)));
    if (!HoldsRoots(b, views.back(), reduced->size())) return;
  }
  b.EmitInPlace(kKernel<RunKeepAtRoot>, std::move(params), views, reduced->size());
}

}  // namespace hlokit::interp
