// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/loop_thunk.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "interp/compiled/loops/inplace_input.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/compiled/loops/loop_params.h"
#include "interp/compiled/loops/norm_thunk.h"
#include "interp/compiled/loops/reduce_thunk.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/program/loop_nest.h"
#include "interp/processor/instruction_set.h"

namespace hlokit::interp::compiled {
namespace {

// Returns the shape of a member's elements.
Shape ValueShape(Instruction member) { return member.shape().IsTuple() ? member.operand(0).shape() : member.shape(); }

// What a group reads and writes.
struct GroupArrays {
  Shape loop_shape;
  std::vector<Instruction> operands;  // from outside, without initial values of reductions of `reduces`
  std::vector<View> views;            // of operands, then coefficients of norms, in the dimensions of the loop
  std::vector<std::pair<Instruction, NormThunk>> norms;
  // Members that the loop reads where their elements come from.
  std::vector<std::pair<Instruction, InplaceInput>> inplace;
  std::vector<Instruction> reduces;  // members that reduce InstructionGroup::reduced
  std::vector<Instruction> stored;   // members that the loop writes for each element
  // Members that others use, and the number of the stored value that they are views of.
  std::vector<std::pair<Instruction, size_t>> results;
};

// Returns true if others use the elements of a member.
bool Leaves(Instruction member, const absl::flat_hash_set<uint32_t>& members) {
  if (member == member.parent().root()) return true;
  for (Instruction user : member.users()) {
    if (members.contains(user.id().value)) continue;
    const bool is_other_result =
        member.shape().IsTuple() && user.opcode() == Opcode::kGetTupleElement && user.int_attr(Attr::kIndex) != 0;
    if (!is_other_result) return true;
  }
  return false;
}

void FindResults(const InstructionGroup& group, const absl::flat_hash_set<uint32_t>& members, GroupArrays* arrays) {
  const bool has_rows = group.row_rank >= 0;
  arrays->reduces.clear();
  arrays->stored.clear();
  arrays->results.clear();
  for (Instruction member : group.members) {
    if (!members.contains(member.id().value)) continue;
    if (member.opcode() == Opcode::kReduce && !has_rows) {
      arrays->reduces.push_back(member);
      continue;
    }
    if (!Leaves(member, members)) continue;
    Instruction source = member;
    while ((HasTrait(source.opcode(), kReinterprets) || HasTrait(source.opcode(), kForwards)) &&
           members.contains(source.operand(0).id().value)) {
      source = source.operand(0);
    }
    const auto at = std::find(arrays->stored.begin(), arrays->stored.end(), source);
    arrays->results.emplace_back(member, at - arrays->stored.begin());
    if (at == arrays->stored.end()) arrays->stored.push_back(source);
  }
}

// The loop has the dimensions of the member with the most of them: what is read there has strides in others too.
Shape ShapeOfLoop(const InstructionGroup& group) {
  if (group.row_rank >= 0 || !group.reduced.empty()) return group.shape;
  const auto extent = [](Shape shape) {
    return std::count_if(shape.dims().begin(), shape.dims().end(), [](int64_t d) { return d != 1; });
  };
  Shape loop_shape = ValueShape(group.members.front());
  for (Instruction member : group.members) {
    if (extent(ValueShape(member)) > extent(loop_shape)) loop_shape = ValueShape(member);
  }
  return loop_shape;
}

// Returns true for a loop over rows whose reductions leave the loop, if its rows are not neighbors in memory, but
// elements of different rows are.
bool HasRowsAcrossMemory(CompiledComputationBuilder& b, const InstructionGroup& group) {
  if (group.row_rank < 0) return false;
  absl::flat_hash_set<uint32_t> reduces;
  std::vector<View> views;
  for (Instruction member : group.members) {
    if (member.opcode() == Opcode::kReduce) {
      reduces.insert(member.id().value);
    } else if (member.opcode() == Opcode::kBroadcast || member.shape().dims() != group.shape.dims()) {
      return false;
    }
  }
  absl::flat_hash_set<uint32_t> members;
  for (Instruction member : group.members) members.insert(member.id().value);
  for (Instruction member : group.members) {
    const int64_t count = member.opcode() == Opcode::kReduce ? 1 : member.operand_count();
    for (int64_t k = 0; k < count; ++k) {
      const Instruction operand = member.operand(k);
      if (reduces.contains(operand.id().value)) return false;
      if (members.contains(operand.id().value)) continue;
      if (operand.shape().dims() == group.shape.dims()) {
        views.push_back(b.leaves(operand)[0]);
      } else if (operand.shape().rank() != 0) {
        return false;
      }
    }
  }
  const MemoryOrder order = ChooseOrder(group.shape.dims(), views);
  for (size_t k = order.size(); k-- > 0;) {
    const int64_t size = group.shape.dim(static_cast<int64_t>(order[k]));
    constexpr int64_t kMinNeighbors = 16;
    if (size != 1) return static_cast<int64_t>(order[k]) < group.row_rank && size >= kMinNeighbors;
  }
  return false;
}

InstructionGroup WithoutRows(InstructionGroup group) {
  for (int64_t d = group.row_rank; d < group.shape.rank(); ++d) group.reduced.push_back(d);
  group.row_rank = -1;
  return group;
}

// Finds the arrays of a group, with the thunks of norms. Returns an error if the code of one of those cannot be
// had.
absl::Status FindArrays(CompiledComputationBuilder& b, const InstructionGroup& group,
                        const absl::flat_hash_set<uint32_t>& members, ProgramCode* code, GroupArrays* arrays) {
  const bool has_rows = group.row_rank >= 0;
  const Shape loop_shape = arrays->loop_shape;
  absl::flat_hash_set<uint32_t> seen;
  for (Instruction member : group.members) {
    if (!members.contains(member.id().value) || IsInplaceInput(member)) continue;
    const bool is_norm = IsLoopNorm(member);
    const bool is_reduce = member.opcode() == Opcode::kReduce && !has_rows;
    if (is_norm) {
      absl::StatusOr<NormThunk> thunk = PrepareNorm(b, member, code);
      if (!thunk.ok()) return thunk.status();
      arrays->norms.emplace_back(member, *std::move(thunk));
    }
    for (int64_t k = 0; k < member.operand_count(); ++k) {
      const Instruction operand = member.operand(k);
      if ((is_reduce && k > 0) || (is_norm && k != 0 && k != NormFormOf(member.opcode())->gradient)) continue;
      if (members.contains(operand.id().value) || !seen.insert(operand.id().value).second) continue;
      b.set_instruction(member);
      arrays->operands.push_back(operand);
      const View view = b.leaves(operand)[0];
      const bool row_value = has_rows && view.shape.rank() == group.row_rank;
      arrays->views.push_back(row_value ? view : InDims(b, view, loop_shape));
    }
  }
  for (const auto& [norm, thunk] : arrays->norms) {
    for (const View& values : thunk.coefficients) {
      arrays->views.push_back(AlongDimension(b, values, loop_shape, norm.int_attr(Attr::kFeatureIndex), 1));
    }
  }
  FindResults(group, members, arrays);
  return absl::OkStatus();
}

// Prepares a member that the loop cannot read in place with its exact kernel: it becomes an operand from outside.
void Materialize(CompiledComputationBuilder& b, Instruction member, absl::flat_hash_set<uint32_t>* members,
                 std::vector<Instruction>* materialized) {
  b.set_instruction(member);
  b.program().CountLeaves(member.shape());
  PrepareFnOf(member.opcode())(b);
  members->erase(member.id().value);
  materialized->push_back(member);
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

// Returns true if the rows of a loop with `rank` dimensions of rows lie one after the other in one array each.
bool HasDenseRows(const InplaceInput& input, absl::Span<const int64_t> dims, size_t rank) {
  if (input.parts.size() != 1 || input.fill || input.parts[0].one_value) return false;
  const InplaceInput::Part& part = input.parts[0];
  if (StrideInRow(dims.subspan(rank), absl::MakeConstSpan(part.strides).subspan(rank)) != 1) return false;
  return std::all_of(input.indices.begin(), input.indices.end(), [&](const InplaceInput::Index& index) {
    return std::all_of(index.strides.begin() + static_cast<int64_t>(rank), index.strides.end(),
                       [](int64_t stride) { return stride == 0; });
  });
}

// Decides for each member that moves elements whether the loop, in this order of memory, reads it in place.
void FindInplaceInputs(CompiledComputationBuilder& b, const InstructionGroup& group, const MemoryOrder& order,
                       int64_t min_run, absl::flat_hash_set<uint32_t>* members, GroupArrays* arrays,
                       std::vector<Instruction>* materialized) {
  std::vector<InplaceInput> inputs;
  std::vector<Instruction> others;
  for (Instruction member : group.members) {
    if (!members->contains(member.id().value) || !IsInplaceInput(member)) continue;
    std::optional<InplaceInput> input = MakeInplaceInput(b, member, order, min_run);
    const bool has_rows = group.row_rank >= 0;
    if (input && (!has_rows || HasDenseRows(*input, group.shape.dims(), static_cast<size_t>(group.row_rank)))) {
      inputs.push_back(*input);
      if (HasFewBoxes(Permuted(arrays->loop_shape.dims(), order), inputs)) {
        arrays->inplace.emplace_back(member, *std::move(input));
        continue;
      }
      inputs.pop_back();
    }
    others.push_back(member);
  }
  for (Instruction member : others) {
    Materialize(b, member, members, materialized);
    // Before the coefficients of norms.
    const View view = InDims(b, b.leaves(member)[0], arrays->loop_shape);
    arrays->views.insert(arrays->views.begin() + static_cast<int64_t>(arrays->operands.size()), view);
    arrays->operands.push_back(member);
  }
  if (!others.empty()) FindResults(group, *members, arrays);
}

// Writes the members as a loop program, without reductions of GroupArrays::reduces. `repeats`: of each view.
void WriteMembers(const InstructionGroup& group, const absl::flat_hash_set<uint32_t>& members,
                  const GroupArrays& arrays, const std::function<LoopBuilder::Repeats(size_t)>& repeats,
                  LoopBuilder* loop) {
  size_t view = 0;
  for (Instruction operand : arrays.operands) {
    loop->Input(operand, repeats(view));
    ++view;
  }
  std::vector<std::vector<uint16_t>> coefficients;
  for (const auto& [norm, thunk] : arrays.norms) {
    coefficients.emplace_back();
    for (const View& coefficient : thunk.coefficients) {
      coefficients.back().push_back(loop->AddInput(coefficient.type(), repeats(view)));
      ++view;
    }
  }
  for (const auto& [member, input] : arrays.inplace) loop->SetNode(member, loop->AddInput(input.type, {}));
  for (Instruction member : group.members) {
    if (!members.contains(member.id().value) || loop->is_member(member)) continue;
    const auto norm =
        std::find_if(arrays.norms.begin(), arrays.norms.end(), [&](const auto& n) { return n.first == member; });
    if (norm != arrays.norms.end()) {
      AddNormElements(*loop, member, coefficients[static_cast<size_t>(norm - arrays.norms.begin())]);
    } else if (member.opcode() != Opcode::kReduce || group.row_rank >= 0) {
      loop->Add(member);
    }
  }
}

// Sets the results of the members that others use. `made`: views of the stored ones, in the order of memory.
void SetGroupResults(CompiledComputationBuilder& b, const GroupArrays& arrays, const MemoryOrder& order,
                     const ViewList& made) {
  const auto view_of = [&](Instruction member, size_t at) {
    const Shape shape = ValueShape(member);
    if (order != DeclaredOrder(order.size())) return InDeclaredOrder(b, made[at], order, shape);
    View view = made[at];
    view.shape = shape;
    return view;
  };
  for (const auto& [norm, thunk] : arrays.norms) {
    if (!norm.shape().IsTuple()) continue;
    b.program().CountLeaves(norm.shape());  // of three leaves
    b.set_instruction(norm);
    const auto at = std::find_if(arrays.results.begin(), arrays.results.end(),
                                 [&](const auto& result) { return result.first == norm; });
    // Elements that are not read are not stored.
    const View elements = at != arrays.results.end() ? view_of(norm, at->second) : b.Zeros(ValueShape(norm));
    const View views[] = {elements, thunk.results[0], thunk.results[1]};
    b.SetResults(views);
  }
  for (const auto& [member, at] : arrays.results) {
    if (member.shape().IsTuple()) continue;
    b.set_instruction(member);
    b.SetResult(view_of(member, at));
  }
}

// Plans a loop over rows, with reductions of them. Returns the operands of the thunk.
std::vector<View> LayOutRows(CompiledComputationBuilder& b, const InstructionGroup& group,
                             const std::vector<InplaceInput>& inplace, const std::vector<Instruction>& stored,
                             std::vector<View>* views, LoopParams* params) {
  params->plain = views->size();
  params->inputs = params->plain + inplace.size();
  params->outputs = stored.size();
  const size_t rank = static_cast<size_t>(group.row_rank);
  const absl::Span<const int64_t> rows = group.shape.dims().subspan(0, rank);
  const absl::Span<const int64_t> row = group.shape.dims().subspan(rank);
  std::vector<Dims> row_strides;
  for (View& view : *views) {
    Dims strides = StridesOf(view);
    if (view.shape.rank() == static_cast<int64_t>(rank) && view.dims() == rows) {
      params->inner_stride.push_back(0);
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
      params->inner_stride.push_back(inner);
    }
    row_strides.emplace_back(strides.begin(), strides.begin() + static_cast<int64_t>(rank));
  }
  std::vector<View> operands = *views;
  std::vector<int64_t> parts;
  const auto add = [&](const View& view, const Dims& strides, int64_t inner) {
    operands.push_back(view);
    params->inner_stride.push_back(inner);
    row_strides.emplace_back(strides.begin(), strides.begin() + static_cast<int64_t>(rank));
    return operands.size() - 1;
  };
  for (size_t i = 0; i < inplace.size(); ++i) {
    parts.push_back(static_cast<int64_t>(add(inplace[i].parts[0].view, inplace[i].parts[0].strides, 1)));
    for (const InplaceInput::Index& index : inplace[i].indices) {
      const size_t operand = add(index.view, index.strides, 0);
      params->indices.push_back(
          {params->plain + i, operand, index.view.type(), index.limit, index.stride * BytesOf(inplace[i].type)});
    }
  }
  params->operands = operands.size();
  for (const View& view : operands) params->bytes.push_back(BytesOf(view.type()));
  for (Instruction output : stored) {
    const Dims strides = DenseStrides(output.shape().dims());
    params->inner_stride.push_back(output.shape().rank() == static_cast<int64_t>(rank) ? 0 : 1);
    row_strides.emplace_back(strides.begin(), strides.begin() + static_cast<int64_t>(rank));
  }
  params->columns = ElementCount(row);
  params->SetRows(LoopNest(rows, row_strides), std::move(parts));
  return operands;
}

// Returns the order of memory of a group's loop.
MemoryOrder OrderOf(CompiledComputationBuilder& b, const InstructionGroup& group, const GroupArrays& arrays) {
  const MemoryOrder declared = DeclaredOrder(static_cast<size_t>(arrays.loop_shape.rank()));
  if (group.row_rank >= 0) return declared;
  for (const auto& [member, at] : arrays.results) {
    // Strides of results in other dimensions might not exist.
    if (ValueShape(member).dims() != arrays.loop_shape.dims()) return declared;
  }
  std::vector<View> views = arrays.views;
  for (Instruction member : group.members) {
    // Operands of concatenations and padding lie in the loop as they are.
    if ((member.opcode() != Opcode::kConcatenate && member.opcode() != Opcode::kPad) || !IsInplaceInput(member) ||
        member.shape().dims() != arrays.loop_shape.dims()) {
      continue;
    }
    const int64_t arrays_moved = member.opcode() == Opcode::kPad ? 1 : member.operand_count();
    for (int64_t k = 0; k < arrays_moved; ++k) views.push_back(b.leaves(member.operand(k))[0]);
  }
  return ChooseOrder(arrays.loop_shape.dims(), views);
}

// Prepares a group with reductions of InstructionGroup::reduced.
PrepareResult PrepareReduceLoop(CompiledComputationBuilder& b, const InstructionGroup& group,
                                const absl::flat_hash_set<uint32_t>& members, GroupArrays arrays, ProgramCode* code,
                                std::vector<LoopProgram>* compiled) {
  const MemoryOrder order = OrderOf(b, group, arrays);
  std::vector<bool> reduced(order.size(), false), reduced_in_order;
  for (int64_t d : group.reduced) reduced[static_cast<size_t>(d)] = true;
  for (size_t d : order) reduced_in_order.push_back(reduced[d]);
  for (View& view : arrays.views) view = InMemoryOrder(b, view, order);
  const Dims dims = Permuted(arrays.loop_shape.dims(), order);
  ReduceThunkBuilder thunk(b, dims, reduced_in_order, arrays.views, arrays.stored.size());
  LoopBuilder loop;
  WriteMembers(
      group, members, arrays, [&](size_t view) { return thunk.RepeatsOf(view); }, &loop);
  std::vector<Shape> shapes;
  for (Instruction member : arrays.stored) {
    loop.AddOutput(member, /*by_element=*/true);
    shapes.push_back(b.program_shapes().Array(ValueShape(member).element_type(), dims));
  }
  std::vector<LoopOp> combiners;
  std::vector<ElementType> types;
  std::vector<View> initial;
  const MemoryOrder kept = WithoutDimensions(order, reduced);
  for (Instruction reduce : arrays.reduces) {
    std::vector<int64_t> ignored;
    combiners.push_back(*ReduceCombiner(reduce, &ignored));
    types.push_back(reduce.shape().element_type());
    thunk.AddReduction(loop, combiners.back(), loop.ValueOf(reduce.operand(0)));
    initial.push_back(b.leaves(reduce.operand(1))[0]);
    shapes.push_back(b.program_shapes().Array(types.back(), Permuted(reduce.shape().dims(), kept)));
  }
  b.set_instruction(group.members.back());
  LoopProgram program;
  const absl::StatusOr<ViewList> made =
      thunk.Emit(loop, initial, shapes, FinishOfReduces(combiners, types), code, &program);
  if (!made.ok()) return PrepareResult::Unsupported(made.status());
  compiled->push_back(std::move(program));
  SetGroupResults(b, arrays, order, *made);
  for (size_t k = 0; k < arrays.reduces.size(); ++k) {
    b.set_instruction(arrays.reduces[k]);
    b.SetResult(InDeclaredOrder(b, (*made)[arrays.stored.size() + k], kept, arrays.reduces[k].shape()));
  }
  return PrepareResult::Prepared();
}

// Returns true if a loop over rows stores this node in its last pass over a row, so that no element of the row is read
// after a result took its place.
bool IsStoredLast(const LoopProgram& program, uint16_t node) {
  // By node: the reductions along the row on the longest path to it, each of which ends a pass.
  std::vector<int> passes(program.nodes.size(), 0);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const LoopNode& n = program.nodes[i];
    for (int k = 0; k < n.operand_count; ++k) {
      const bool ends_pass = n.op == LoopOp::kReduce && k == 0;
      passes[i] = std::max(passes[i], passes[n.operands[k]] + (ends_pass ? 1 : 0));
    }
  }
  return !program.nodes[node].row_value && passes[node] == *std::max_element(passes.begin(), passes.end());
}

}  // namespace

PrepareResult PrepareLoop(CompiledComputationBuilder& b, const InstructionGroup& given, int64_t min_run,
                          ProgramCode* code, std::vector<LoopProgram>* compiled,
                          std::vector<Instruction>* materialized) {
  const InstructionGroup group = HasRowsAcrossMemory(b, given) ? WithoutRows(given) : given;
  GroupArrays arrays;
  arrays.loop_shape = ShapeOfLoop(group);
  if (arrays.loop_shape.element_count() == 0) return PrepareResult::Unsupported();
  const bool has_rows = group.row_rank >= 0;
  absl::flat_hash_set<uint32_t> members;
  for (Instruction member : group.members) members.insert(member.id().value);
  for (Instruction member : group.members) {
    if (!IsInplaceInput(member)) continue;
    const bool may_be_inplace = group.reduced.empty() && member.shape().dims() == arrays.loop_shape.dims();
    if (!may_be_inplace) Materialize(b, member, &members, materialized);
  }
  if (absl::Status status = FindArrays(b, group, members, code, &arrays); !status.ok()) {
    return PrepareResult::Unsupported(status);
  }
  for (const auto& [norm, thunk] : arrays.norms) {
    if (!thunk.program.nodes.empty()) compiled->push_back(thunk.program);
  }
  if (!group.reduced.empty()) return PrepareReduceLoop(b, group, members, std::move(arrays), code, compiled);
  if (arrays.stored.empty()) {
    // Of a norm, only the other results are read.
    SetGroupResults(b, arrays, {}, {});
    return PrepareResult::Prepared();
  }
  const MemoryOrder order = OrderOf(b, group, arrays);
  FindInplaceInputs(b, group, order, min_run, &members, &arrays, materialized);
  const Dims dims = Permuted(arrays.loop_shape.dims(), order);
  auto params = std::make_unique<LoopParams>();
  std::vector<View>& views = arrays.views;
  std::vector<View> operands;
  std::vector<InplaceInput> inplace;
  for (const auto& [member, input] : arrays.inplace) inplace.push_back(input);
  if (has_rows) {
    operands = LayOutRows(b, group, inplace, arrays.stored, &views, params.get());
  } else {
    for (View& view : views) view = InMemoryOrder(b, view, order);
    operands = LayOutElements(b, dims, inplace, arrays.stored.size(), &views, params.get());
  }
  LoopBuilder builder;
  WriteMembers(
      group, members, arrays, [&](size_t view) { return params->RepeatsOf(view); }, &builder);
  for (size_t o = 0; o < arrays.stored.size(); ++o) {
    builder.AddOutput(arrays.stored[o], params->inner_stride[params->operands + o] != 0);
  }
  LoopProgram& program = builder.program();
  program.form = has_rows ? LoopForm::kRows : params->by_columns ? LoopForm::kColumns : LoopForm::kLoop;
  if (FitsInRegisters(program, params->columns, LanesOf(HostInstructionSet()))) program.columns = params->columns;
  const int64_t max_scratch = MaxThreadScratch(b);
  const auto receive = [params = params.get(), max_scratch](std::shared_ptr<const LoadedCode> loaded) {
    params->scratch = loaded->saved_values() * params->columns * kMaxElementBytes;
    params->code = std::move(loaded);
    return params->scratch + params->fill_bytes() <= max_scratch ? absl::OkStatus()
                                                                 : absl::ResourceExhaustedError("memory");
  };
  if (absl::Status status = code->Request(program, params->columns, receive); !status.ok()) {
    return PrepareResult::Unsupported(status);
  }
  compiled->push_back(program);
  params->functions = std::move(builder.functions());
  params->cost = 0.05 * static_cast<double>(program.nodes.size());
  for (const ElementOp& function : params->functions) {
    params->function_pointers.push_back(&function);
    params->cost += function.cost();
  }
  std::vector<Shape> shapes;
  for (Instruction output : arrays.stored) {
    const Shape shape = ValueShape(output);
    const bool declared = order == DeclaredOrder(order.size());
    shapes.push_back(declared ? shape : b.program_shapes().Array(shape.element_type(), dims));
    params->bytes.push_back(BytesOf(shape.element_type()));
  }
  std::vector<InPlaceReuse> reuse;
  for (size_t o = 0; o < shapes.size(); ++o) {
    if (has_rows && !IsStoredLast(program, program.outputs[o])) continue;
    for (size_t i = 0; i < params->plain; ++i) {
      if (has_rows && params->inner_stride[i] == 0) continue;
      // In-place inputs are read elsewhere than where the loop writes.
      const bool is_read_in_place = std::any_of(operands.begin() + static_cast<int64_t>(params->plain), operands.end(),
                                                [&](const View& other) { return other.slot == operands[i].slot; });
      if (is_read_in_place) continue;
      reuse.push_back({static_cast<uint16_t>(i), static_cast<uint16_t>(o)});
    }
  }
  b.set_instruction(group.members.back());
  const ViewList made = b.EmitTo(kKernel<RunLoop>, std::move(params), operands, shapes, reuse, /*elementwise=*/true);
  SetGroupResults(b, arrays, order, made);
  return PrepareResult::Prepared();
}

}  // namespace hlokit::interp::compiled
