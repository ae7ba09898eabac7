// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loop_step.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "interp/compiled/library_step.h"
#include "interp/compiled/loop_builder.h"
#include "interp/exact/kernels/reshape_view.h"
#include "interp/exact/loop_nest.h"
#include "interp/exact/program_builder.h"
#include "interp/exact/run_context.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kMaxElementBytes = 8;

struct LoopPlan : ThunkParams {
  std::shared_ptr<const LoadedCode> code;
  std::vector<ElementOp> functions;
  std::vector<const void*> function_pointers;
  // Arrays: inputs, then outputs.
  size_t inputs = 0;
  size_t outputs = 0;
  std::vector<int64_t> bytes;         // of an element of each
  std::vector<int64_t> row_stride;    // of each, in elements
  std::vector<int64_t> inner_stride;  // of each: 0 or 1
  std::vector<int64_t> sizes;         // of the dimensions that count rows, outermost first
  std::vector<int64_t> strides;       // by dimension and array
  int64_t lines = 1;                  // rows in all
  int64_t rows = 1;                   // of a call, at most
  int64_t columns = 1;
  int64_t chunk = 1;  // columns of a call
  int64_t scratch = 0;
  double cost = 1;  // of an element, in ns

  // Takes the dimensions of the nest but the `inner` last ones.
  void SetRows(const LoopNest& nest, int inner) {
    const int arrays = static_cast<int>(inputs + outputs);
    for (int d = 0; d + inner < nest.rank(); ++d) {
      sizes.push_back(nest.size(d));
      lines *= nest.size(d);
      for (int a = 0; a < arrays; ++a) strides.push_back(nest.stride(d, a));
    }
    row_stride.assign(inputs + outputs, 0);
    if (sizes.empty()) return;
    rows = sizes.back();
    std::copy(strides.end() - arrays, strides.end(), row_stride.begin());
  }
};

void CallElementOp(const void* function, void* result, const void* a, const void* b, const void* c, int64_t n) {
  constexpr int64_t kDense[ElementOp::kMaxOperands] = {1, 1, 1};
  const std::byte* const in[] = {static_cast<const std::byte*>(a), static_cast<const std::byte*>(b),
                                 static_cast<const std::byte*>(c)};
  static_cast<const ElementOp*>(function)->Run(static_cast<std::byte*>(result), in, kDense, n);
}

void RunLoop(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto& p = *static_cast<const LoopPlan*>(plan);
  const LoopFunction function = p.code->function();
  const int64_t chunks = (p.columns + p.chunk - 1) / p.chunk;
  const size_t arrays = p.inputs + p.outputs;
  // Items: the chunks of each row.
  context.ParallelFor(p.lines * chunks, static_cast<double>(p.chunk) * p.cost, [&](int64_t begin, int64_t end) {
    absl::InlinedVector<const std::byte*, 16> from(p.inputs);
    absl::InlinedVector<std::byte*, 8> to(p.outputs);
    LoopArguments arguments = {};
    arguments.in = from.data();
    arguments.out = to.data();
    arguments.in_strides = p.row_stride.data();
    arguments.out_strides = p.row_stride.data() + p.inputs;
    arguments.scratch = p.scratch > 0 ? ThreadScratch(p.scratch) : nullptr;
    if (p.scratch > 0 && arguments.scratch == nullptr) {
      context.Fail("out of memory: no scratch memory for a loop");
      return;
    }
    arguments.scratch_pitch = p.columns * kMaxElementBytes;
    arguments.call = CallElementOp;
    arguments.functions = p.function_pointers.data();
    for (int64_t item = begin; item < end;) {
      const int64_t line = item / chunks;
      const int64_t chunk = item % chunks;
      // Whole rows go together, up to the end of their dimension.
      int64_t rows = 1;
      if (chunks == 1) rows = std::min(end - item, p.rows - line % p.rows);
      for (size_t a = 0; a < arrays; ++a) {
        int64_t offset = chunk * p.chunk * p.inner_stride[a];
        int64_t rest = line;
        for (size_t d = p.sizes.size(); d-- > 0;) {
          offset += rest % p.sizes[d] * p.strides[d * arrays + a];
          rest /= p.sizes[d];
        }
        offset *= p.bytes[a];
        if (a < p.inputs) {
          from[a] = in[a] + offset;
        } else {
          to[a - p.inputs] = out[a - p.inputs] + offset;
        }
      }
      arguments.rows = rows;
      arguments.columns = std::min(p.chunk, p.columns - chunk * p.chunk);
      function(&arguments);
      item += rows;
    }
  });
}

// Returns the same elements in the dimensions of the loop.
View InDims(CompiledComputationBuilder& b, const View& view, Shape loop_shape) {
  const Shape shape = b.program_shapes().Array(view.type(), loop_shape.dims());
  if (view.shape.rank() == 0 && loop_shape.rank() != 0) {
    View scalar = view;
    scalar.shape = shape;
    scalar.strides = b.NewStrides(Dims(static_cast<size_t>(shape.rank()), 0), shape.dims());
    return scalar;
  }
  if (view.dims() == loop_shape.dims()) return view;
  return ReshapeView(b, view, shape);
}

// Returns a view of the same elements whose memory is dense except for repeated ones.
View Compact(CompiledComputationBuilder& b, const View& view) {
  const Dims strides = StridesOf(view);
  Dims dims, kept;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 0) continue;
    dims.push_back(view.dims()[d]);
    kept.push_back(strides[d]);
  }
  View small = view;
  small.shape = b.program_shapes().Array(view.type(), dims);
  small.strides = b.NewStrides(kept, dims);
  small = b.MakeDense(small);
  const Dims dense = DenseStrides(dims);
  Dims again;
  for (size_t d = 0, k = 0; d < strides.size(); ++d) again.push_back(strides[d] == 0 ? 0 : dense[k++]);
  small.shape = view.shape;
  small.strides = b.NewStrides(again, view.dims());
  return small;
}

// Members whose values others use. `stored`: those that the loop writes; `results`: members and what they are views of.
void FindResults(const InstructionGroup& group, const absl::flat_hash_set<uint32_t>& members,
                 std::vector<Instruction>* stored, std::vector<std::pair<Instruction, size_t>>* results) {
  const Instruction root = group.members.front().parent().root();
  for (Instruction member : group.members) {
    const std::vector<Instruction> users = member.users();
    const bool leaves = member == root || std::any_of(users.begin(), users.end(), [&](Instruction user) {
                          return !members.contains(user.id().value);
                        });
    if (!leaves) continue;
    Instruction source = member;
    while ((source.opcode() == Opcode::kReshape || source.opcode() == Opcode::kCopy) &&
           members.contains(source.operand(0).id().value)) {
      source = source.operand(0);
    }
    const auto at = std::find(stored->begin(), stored->end(), source);
    results->emplace_back(member, at - stored->begin());
    if (at == stored->end()) stored->push_back(source);
  }
}

// The loop has the dimensions of the member with the most of them: what is read there has strides in others too.
Shape ShapeOfLoop(const InstructionGroup& group) {
  if (group.row_rank >= 0) return group.shape;
  const auto extent = [](Shape shape) {
    return std::count_if(shape.dims().begin(), shape.dims().end(), [](int64_t d) { return d != 1; });
  };
  Shape loop_shape = group.members.front().shape();
  for (Instruction member : group.members) {
    if (extent(member.shape()) > extent(loop_shape)) loop_shape = member.shape();
  }
  return loop_shape;
}

// The arrays of a loop over rows have one stride in all dimensions of a row: 1, or 0. Returns it, or -1 if there is
// none.
int64_t StrideInRow(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  int64_t dense = 1;
  bool is_dense = true, is_same = true;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    is_dense = is_dense && strides[d] == dense;
    is_same = is_same && strides[d] == 0;
    dense *= dims[d];
  }
  return is_dense ? 1 : is_same ? 0 : -1;
}

// Strides of the arrays and how they divide into rows, with copies of arrays that a loop cannot read.
void LayOut(CompiledComputationBuilder& b, const InstructionGroup& group, Shape loop_shape,
            const std::vector<Instruction>& stored, std::vector<View>* views, LoopPlan* plan) {
  plan->inputs = views->size();
  plan->outputs = stored.size();
  if (group.row_rank < 0) {
    const auto nest_of = [&] {
      std::vector<Dims> strides;
      for (const View& view : *views) strides.push_back(StridesOf(view));
      for (size_t o = 0; o < stored.size(); ++o) strides.push_back(DenseStrides(loop_shape.dims()));
      return LoopNest(loop_shape.dims(), strides);
    };
    LoopNest nest = nest_of();
    std::vector<bool> copy;
    for (size_t i = 0; i < views->size(); ++i) {
      const int64_t stride = nest.inner_strides()[i];
      copy.push_back(nest.inner_size() > 1 && stride != 0 && stride != 1);
    }
    for (size_t i = 0; i < views->size(); ++i) {
      if (copy[i]) (*views)[i] = Compact(b, (*views)[i]);
    }
    nest = nest_of();
    for (size_t a = 0; a < plan->inputs + plan->outputs; ++a) {
      plan->inner_stride.push_back(nest.inner_size() > 1 ? nest.inner_strides()[a] : 1);
    }
    plan->columns = nest.inner_size();
    plan->SetRows(nest, 1);
    constexpr int64_t kLongRow = 32 * 1024;
    constexpr int64_t kChunk = 16 * 1024;
    plan->chunk = plan->columns > kLongRow ? kChunk : plan->columns;
    return;
  }
  const size_t rank = static_cast<size_t>(group.row_rank);
  const absl::Span<const int64_t> rows = loop_shape.dims().subspan(0, rank);
  const absl::Span<const int64_t> row = loop_shape.dims().subspan(rank);
  std::vector<Dims> row_strides;
  for (View& view : *views) {
    Dims strides = StridesOf(view);
    if (view.shape.rank() == static_cast<int64_t>(rank) && view.dims() == rows) {
      plan->inner_stride.push_back(0);
    } else {
      int64_t inner = StrideInRow(row, absl::MakeConstSpan(strides).subspan(rank));
      if (inner < 0) {
        view = Compact(b, view);
        strides = StridesOf(view);
        inner = StrideInRow(row, absl::MakeConstSpan(strides).subspan(rank));
      }
      if (inner < 0) {
        // Repeated along a part of a row.
        view = b.MakeDense(view);
        strides = DenseStrides(view.dims());
        inner = 1;
      }
      plan->inner_stride.push_back(inner);
    }
    row_strides.emplace_back(strides.begin(), strides.begin() + static_cast<int64_t>(rank));
  }
  for (Instruction output : stored) {
    const Dims strides = DenseStrides(output.shape().dims());
    plan->inner_stride.push_back(output.shape().rank() == static_cast<int64_t>(rank) ? 0 : 1);
    row_strides.emplace_back(strides.begin(), strides.begin() + static_cast<int64_t>(rank));
  }
  plan->columns = ElementCount(row);
  plan->chunk = plan->columns;
  plan->SetRows(LoopNest(rows, row_strides), 0);
}

}  // namespace

bool PrepareLoop(CompiledComputationBuilder& b, const InstructionGroup& group, ProgramCode* code, LoopProgram* compiled,
                 std::string* why) {
  const Shape loop_shape = ShapeOfLoop(group);
  if (loop_shape.element_count() == 0) return false;
  const bool has_rows = group.row_rank >= 0;
  absl::flat_hash_set<uint32_t> members;
  for (Instruction member : group.members) members.insert(member.id().value);
  // Operands from outside, with strides in the loop.
  std::vector<Instruction> operands;
  std::vector<View> views;
  absl::flat_hash_set<uint32_t> seen;
  for (Instruction member : group.members) {
    for (Instruction operand : member.operands()) {
      if (members.contains(operand.id().value) || !seen.insert(operand.id().value).second) continue;
      b.set_instruction(member);
      operands.push_back(operand);
      const View view = b.leaves(operand)[0];
      const bool row_value = has_rows && view.shape.rank() == group.row_rank;
      views.push_back(row_value ? view : InDims(b, view, loop_shape));
    }
  }
  std::vector<Instruction> stored;
  std::vector<std::pair<Instruction, size_t>> results;
  FindResults(group, members, &stored, &results);
  auto plan = std::make_unique<LoopPlan>();
  LayOut(b, group, loop_shape, stored, &views, plan.get());
  LoopBuilder builder;
  for (size_t i = 0; i < operands.size(); ++i) builder.Input(operands[i], plan->inner_stride[i] == 0);
  for (Instruction member : group.members) builder.Add(member);
  for (size_t o = 0; o < stored.size(); ++o) {
    builder.AddOutput(stored[o], plan->inner_stride[views.size() + o] != 0);
  }
  LoopProgram& program = builder.program();
  program.form = has_rows ? LoopForm::kRows : LoopForm::kLoop;
  const int64_t max_scratch = MaxThreadScratch(b);
  const auto receive = [plan = plan.get(), max_scratch](std::shared_ptr<const LoadedCode> loaded, std::string* error) {
    plan->scratch = loaded->saved_values() * plan->columns * kMaxElementBytes;
    plan->code = std::move(loaded);
    if (plan->scratch <= max_scratch) return true;
    *error = "memory";
    return false;
  };
  if (!code->Request(program, plan->columns, receive, why)) return false;
  *compiled = program;
  plan->functions = std::move(builder.functions());
  plan->cost = 0.05 * static_cast<double>(program.nodes.size());
  for (const ElementOp& function : plan->functions) {
    plan->function_pointers.push_back(&function);
    plan->cost += function.cost();
  }
  for (const View& view : views) plan->bytes.push_back(BytesOf(view.type()));
  std::vector<Shape> shapes;
  for (Instruction output : stored) {
    shapes.push_back(output.shape());
    plan->bytes.push_back(BytesOf(output.shape().element_type()));
  }
  // A row is read again after a part of the results is written.
  std::vector<InPlaceReuse> reuse;
  for (size_t i = 0; i < views.size() && !has_rows; ++i) {
    for (size_t o = 0; o < shapes.size(); ++o) reuse.push_back({static_cast<uint16_t>(i), static_cast<uint16_t>(o)});
  }
  b.set_instruction(group.members.back());
  const ViewList made = b.EmitTo(RunLoop, std::move(plan), views, shapes, reuse, /*elementwise=*/true);
  for (const auto& [member, at] : results) {
    View view = made[at];
    b.set_instruction(member);
    view.shape = member.shape();
    b.SetResult(view);
  }
  return true;
}

}  // namespace hlokit::interp::compiled
