// SPDX-License-Identifier: Apache-2.0
// Idea: a walk in post-order gives each live instruction the views of its result: views of values that are there
// already (a transpose is other strides), or of slots that a new thunk writes. Then thunks that give the same in each
// iteration leave loops, and last uses tell when memory is free and what may be computed in place. Invariant: when an
// instruction is prepared its operands have views; a thunk reads slots that are constants, parameters or written by
// earlier thunks, and each slot is written by one thunk. Cost: linear in instructions and leaves; the number of views
// is bounded (ProgramBuilder::CountViews), since tuples may share leaves.
#include "interp/exact/builder/compiled_computation_builder.h"

#include <algorithm>
#include <cstring>

#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/machine/strided_copy.h"
#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"

namespace hlokit::interp {

void AppendLeaves(Shape shape, std::vector<Shape>* leaves) {
  const auto append = [&](Shape leaf) {
    while (leaf.IsBuffer()) leaf = leaf.element(0);
    leaves->push_back(leaf);
  };
  if (!shape.IsTuple()) return append(shape);
  for (Shape leaf : Leaves(shape)) append(leaf);
}

int64_t BytesOfLeaf(Shape leaf) {
  if (!leaf.IsArray()) return 0;
  int64_t bytes;
  if (leaf.element_count() < 0 || __builtin_mul_overflow(leaf.element_count(), BytesOf(leaf.element_type()), &bytes)) {
    return -1;
  }
  return bytes;
}

namespace {

// States of first_view of an instruction without views: not reached; live; on the stack of Visit.
constexpr uint32_t kNoView = 0xffffffffu;
constexpr uint32_t kLive = kNoView - 1;
constexpr uint32_t kOpen = kNoView - 2;

}  // namespace

CompiledComputationBuilder::CompiledComputationBuilder(ProgramBuilder& program, CompiledComputation* compiled)
    : program_(program), compiled_(compiled) {}

absl::Span<const View> CompiledComputationBuilder::leaves(Instruction instruction) const {
  const uint32_t first = program_.first_view()[instruction.id().value];
  return {views_.data() + first, static_cast<size_t>(program_.LeafCount(instruction.shape()))};
}

void CompiledComputationBuilder::Fail(std::string message) {
  failed_ = true;
  program_.Error(DiagnosticKind::kUnsupported, current_, std::move(message));
}

void CompiledComputationBuilder::FailMismatch(std::string_view expected) {
  constexpr int64_t kMaxOperands = 8;
  constexpr int64_t kMaxLeavesInText = 100;
  const auto text = [](Shape shape) {
    return shape.leaf_count() > kMaxLeavesInText ? StrCat("a tuple of ", shape.tuple_size(), " elements")
                                                 : ToString(shape, /*with_layout=*/false);
  };
  std::string operands;
  for (int64_t i = 0; i < current_.operand_count() && i < kMaxOperands; ++i) {
    StrAppend(&operands, i == 0 ? "" : ", ", text(current_.operand(i).shape()));
  }
  if (current_.operand_count() > kMaxOperands) StrAppend(&operands, ", ...");
  Fail(StrCat("expected ", expected, "; found ", current_.opcode_text(), " of (", operands, ") with result ",
              text(current_.shape())));
}

void CompiledComputationBuilder::Warn(std::string message) {
  program_.sink().Warning(DiagnosticKind::kUnsupported, NameRange(current_), std::move(message));
}

void CompiledComputationBuilder::EmitTrap(std::string message) {
  struct FailParams : ThunkParams {
    std::string message;
  };
  auto params = std::make_unique<FailParams>();
  params->message = std::move(message);
  Thunk& thunk = Emit([](const ThunkParams* p, const std::byte* const*, std::byte* const*,
                         RunContext& context) { context.Fail(static_cast<const FailParams*>(p)->message); },
                      std::move(params), {});
  thunk.pure = false;
}

const int64_t* CompiledComputationBuilder::NewStrides(absl::Span<const int64_t> strides,
                                                      absl::Span<const int64_t> dims) {
  if (AreDense(dims, strides)) return nullptr;
  // Equal strides have one address, so that MakeDense finds copies of equal views.
  const int64_t*& known = strides_[Dims(strides.begin(), strides.end())];
  if (known == nullptr) known = program_.program().arena.CopyArray(strides.data(), strides.size());
  return known;
}

View CompiledComputationBuilder::MakeDense(const View& view) {
  if (view.dense()) return view;
  const auto key = std::make_tuple(view.slot, view.strides, view.offset, view.shape.record());
  if (const auto it = dense_copies_.find(key); it != dense_copies_.end()) return it->second;
  std::unique_ptr<ThunkParams> params = StridedCopyParams(view);
  const View copy = EmitTo(RunStridedCopy, std::move(params), {&view, 1}, {&view.shape, 1})[0];
  dense_copies_.emplace(key, copy);
  return copy;
}

void CompiledComputationBuilder::AppendDense(Instruction operand, std::vector<View>* views) {
  // MakeDense may add views, so copy the leaves first.
  const ViewList copied(leaves(operand).begin(), leaves(operand).end());
  for (const View& v : copied) views->push_back(MakeDense(v));
}

void CompiledComputationBuilder::SetResults(absl::Span<const View> views) {
  const ViewList copy = AsDeclared(views);  // copied because `views` may point into views_
  if (!program_.CountViews(static_cast<int64_t>(copy.size()))) {
    Fail("the tuples of this program have too many leaves");
    return;
  }
  program_.first_view()[current_.id().value] = static_cast<uint32_t>(views_.size());
  views_.insert(views_.end(), copy.begin(), copy.end());
}

void CompiledComputationBuilder::AliasResult(Instruction tuple, int64_t index) {
  // Offsets are cached per shape, so that reading all elements of a wide tuple takes linear time.
  std::vector<uint32_t>& begins = element_begins_[tuple.shape().record()];
  if (begins.empty()) {
    uint32_t begin = 0;
    for (Shape element : tuple.shape().elements()) {
      begins.push_back(begin);
      begin += static_cast<uint32_t>(program_.LeafCount(element));
    }
  }
  const uint32_t first = program_.first_view()[tuple.id().value] + begins[static_cast<size_t>(index)];
  program_.first_view()[current_.id().value] = first;
}

ShapeTable& CompiledComputationBuilder::program_shapes() { return program_.module().context().shapes; }

uint32_t CompiledComputationBuilder::NewSlots(absl::Span<const Shape> leaves) {
  const uint32_t first = static_cast<uint32_t>(compiled_->slots.size());
  for (Shape leaf : leaves) {
    SlotInfo info;
    info.bytes = BytesOfLeaf(leaf);
    if (info.bytes < 0 || info.bytes > program_.options().limits.max_bytes) {
      Fail(StrCat("a value of shape ", ToString(leaf, /*with_layout=*/false), " takes ",
                  info.bytes < 0 ? "more than 2^63" : StrCat(info.bytes), " bytes; ",
                  program_.options().limits.BytesText()));
      info.bytes = 0;
    }
    compiled_->slots.push_back(info);
  }
  return first;
}

Thunk& CompiledComputationBuilder::AddThunk(absl::Span<const View> operands) {
  Thunk thunk;
  thunk.operand_begin = static_cast<uint32_t>(compiled_->operands.size());
  thunk.operand_count = static_cast<uint32_t>(operands.size());
  thunk.instruction = current_.id();
  for (const View& v : operands) compiled_->operands.push_back({v.slot, v.offset});
  compiled_->thunks.push_back(thunk);
  return compiled_->thunks.back();
}

ViewList CompiledComputationBuilder::EmitTo(Kernel kernel, std::unique_ptr<ThunkParams> params,
                                            absl::Span<const View> operands, absl::Span<const Shape> results,
                                            absl::Span<const InPlaceReuse> reuse, bool elementwise) {
  Thunk& thunk = AddThunk(operands);
  thunk.kernel = kernel;
  thunk.params = params.get();
  if (params != nullptr) compiled_->thunk_params.push_back(std::move(params));
  thunk.result_begin = NewSlots(results);
  thunk.result_count = static_cast<uint32_t>(results.size());
  for (const InPlaceReuse& r : reuse) {
    if (r.operand >= operands.size()) continue;
    const View& from = operands[r.operand];
    const uint32_t to = thunk.result_begin + r.result;
    if (!from.dense() || from.offset != 0 || compiled_->slots[from.slot].constant != nullptr ||
        BytesOfLeaf(from.shape) != compiled_->slots[to].bytes ||
        compiled_->slots[from.slot].bytes != compiled_->slots[to].bytes) {
      continue;
    }
    // Other operands in the same slot must be read in step with this one.
    bool shared = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i == r.operand || operands[i].slot != from.slot) continue;
      shared = shared || !elementwise || !operands[i].dense() || operands[i].offset != 0 ||
               BytesOfLeaf(operands[i].shape) != BytesOfLeaf(from.shape);
    }
    if (!shared) reuses_.push_back({static_cast<uint32_t>(compiled_->thunks.size() - 1), r});
  }
  ViewList views;
  for (size_t i = 0; i < results.size(); ++i) {
    views.push_back({results[i], thunk.result_begin + static_cast<uint32_t>(i), nullptr, 0});
  }
  return views;
}

Thunk& CompiledComputationBuilder::Emit(Kernel kernel, std::unique_ptr<ThunkParams> params,
                                        absl::Span<const View> operands, absl::Span<const InPlaceReuse> reuse,
                                        bool elementwise) {
  if (const Shape result = shape(); result.IsArray()) {
    SetResults(EmitTo(kernel, std::move(params), operands, {&result, 1}, reuse, elementwise));
  } else {
    std::vector<Shape> results;
    AppendLeaves(result, &results);
    SetResults(EmitTo(kernel, std::move(params), operands, results, reuse, elementwise));
  }
  return compiled_->thunks.back();
}

Thunk& CompiledComputationBuilder::EmitInPlace(Kernel kernel, std::unique_ptr<ThunkParams> params,
                                               absl::Span<const View> operands, size_t count) {
  std::vector<InPlaceReuse> reuse;
  for (size_t i = 0; i < std::min<size_t>(count, 0xffff); ++i)
    reuse.push_back({static_cast<uint16_t>(i), static_cast<uint16_t>(i)});
  return Emit(kernel, std::move(params), operands, reuse);
}

ViewList CompiledComputationBuilder::EmitCall(CompiledComputation* callee, absl::Span<const View> operands,
                                              absl::Span<const Shape> results) {
  auto params = std::make_unique<CallParams>();
  params->callee = callee;
  ViewList views = EmitTo(nullptr, std::move(params), operands, results);
  compiled_->thunks.back().kind = ThunkKind::kCall;
  return views;
}

ViewList CompiledComputationBuilder::EmitCollective(std::unique_ptr<CollectiveParams> params,
                                                    absl::Span<const View> operands, absl::Span<const Shape> results) {
  if (const absl::Span<const int64_t> numbers = program_.options().collective_numbers; !numbers.empty()) {
    params->number = numbers[instruction().id().value];
  }
  ViewList views = EmitTo(nullptr, std::move(params), operands, results);
  compiled_->thunks.back().kind = ThunkKind::kCollective;
  return views;
}

Thunk& CompiledComputationBuilder::EmitControl(ThunkKind kind, std::unique_ptr<ThunkParams> params,
                                               absl::Span<const View> operands, absl::Span<const Shape> more) {
  std::vector<Shape> results;
  AppendLeaves(shape(), &results);
  results.insert(results.end(), more.begin(), more.end());
  ViewList views = EmitTo(nullptr, std::move(params), operands, results);
  views.resize(views.size() - more.size());
  compiled_->thunks.back().kind = kind;
  SetResults(views);
  return compiled_->thunks.back();
}

View CompiledComputationBuilder::EmitMoved(const MovedThunk& moved, View leaf) {
  leaf.offset += moved.offset;
  const Shape bytes = program_shapes().Array(ElementType::kU8, {moved.bytes});
  const View result = EmitTo(moved.kernel, nullptr, {&leaf, 1}, {&bytes, 1})[0];
  compiled_->thunks.back().params = moved.params;
  LeaveLoops();
  return result;
}

bool CompiledComputationBuilder::IsUnchangedInLoop(const View& view) const {
  const Computation computation = compiled_->computation;
  if (!program_.is_body_of_one_loop(computation) || computation.parameter_count() != 1) return false;
  const auto leaf = std::find(compiled_->parameters.begin(), compiled_->parameters.end(), view.slot);
  const Instruction root = computation.root();
  if (leaf == compiled_->parameters.end() || root.opcode() != Opcode::kTuple) return false;
  // A flat tuple, whose elements are the leaves.
  const int64_t index = leaf - compiled_->parameters.begin();
  if (root.operand_count() != static_cast<int64_t>(compiled_->parameters.size())) return false;
  const Instruction returned = root.operand(index);
  return returned.opcode() == Opcode::kGetTupleElement && returned.operand(0) == computation.parameter(0) &&
         returned.int_attr(Attr::kIndex) == index;
}

View CompiledComputationBuilder::Constant(Shape shape, const std::byte* data) {
  const uint32_t slot = static_cast<uint32_t>(compiled_->slots.size());
  SlotInfo info;
  info.bytes = BytesOfLeaf(shape);
  // An empty array has no bytes, but its slot still counts as constant.
  static constexpr std::byte kNothing[16] = {};
  info.constant = data != nullptr ? data : kNothing;
  compiled_->slots.push_back(info);
  return {shape, slot, nullptr, 0};
}

void CompiledComputationBuilder::Own(std::shared_ptr<void> memory) {
  program_.program().owned.push_back(std::move(memory));
}

View CompiledComputationBuilder::Zeros(Shape shape) {
  static constexpr std::byte kZeros[16] = {};
  View view = Constant(shape, kZeros);
  if (shape.IsArray()) view.strides = NewStrides(Dims(static_cast<size_t>(shape.rank()), 0), shape.dims());
  return view;
}

void CompiledComputationBuilder::PrepareParameter() {
  // Build allocated the slots before the first instruction.
  size_t leaf = parameter_begins_[static_cast<size_t>(current_.parameter_number())];
  std::vector<Shape> shapes;
  AppendLeaves(shape(), &shapes);
  std::vector<View> views;
  for (Shape s : shapes) {
    const uint32_t slot = NewSlots({&s, 1});
    compiled_->parameters[leaf++] = slot;
    views.push_back({s, slot, nullptr, 0});
  }
  SetResults(views);
}

void CompiledComputationBuilder::PrepareConstant() {
  // Traverses the leaves of the literal from left to right.
  std::vector<LiteralId> stack = {current_.literal_id()};
  std::vector<View> views;
  const Context& context = program_.module().context();
  while (!stack.empty()) {
    const LiteralId id = stack.back();
    stack.pop_back();
    const LiteralRecord& literal = context.literals[id];
    if (literal.shape.IsTuple() && literal.elements != nullptr) {
      for (int64_t i = literal.shape.tuple_size(); i-- > 0;) stack.push_back(literal.elements[i]);
      continue;
    }
    if (!literal.shape.IsArray()) {
      // A token, or an elided tuple.
      if (literal.shape.IsTuple() && literal.shape.tuple_size() != 0) {
        Fail("the elements of this tuple constant are elided");
        return;
      }
      if (!literal.shape.IsTuple()) views.push_back(Constant(literal.shape, nullptr));
      continue;
    }
    const std::byte* data = program_.ConstantData(current_, id);
    if (data == nullptr && literal.shape.element_count() != 0) {
      failed_ = true;
      return;
    }
    views.push_back(Constant(literal.shape, data));
  }
  SetResults(views);
}

bool CompiledComputationBuilder::CheckLeaves(Instruction instruction) {
  current_ = instruction;
  if (!program_.CountLeaves(instruction.shape())) {
    Fail("the tuples of this program have too many leaves");
    return false;
  }
  if (!instruction.shape().has_unbounded_dims()) return true;
  Fail(StrCat("the shape ", ToString(instruction.shape(), /*with_layout=*/false),
              " has an unbounded dimension; specify its size in the module"));
  return false;
}

bool CompiledComputationBuilder::Prepare(Instruction instruction) {
  current_ = instruction;
  if (!CheckLeaves(instruction)) return false;
  const PrepareFn prepare = PrepareFnOf(instruction.opcode());
  if (prepare == nullptr) {
    Fail(StrCat("cannot evaluate ", instruction.opcode_text()));
    return false;
  }
  if (!FitTypes()) return false;
  const uint32_t first_slot = static_cast<uint32_t>(compiled_->slots.size());
  KernelProvider* const kernels = program_.options().kernels;
  if (kernels == nullptr || !kernels->Prepare(*this)) prepare(*this);
  if (failed_) return false;
  if (IsObserved(instruction)) EmitObservation(first_slot);
  return !failed_;
}

void CompiledComputationBuilder::MakeGroups() {
  KernelProvider* const kernels = program_.options().kernels;
  if (kernels == nullptr) return;
  const std::vector<uint32_t>& first_view = program_.first_view();
  groups_ = kernels->Group(compiled_->computation, [&](Instruction i) { return first_view[i.id().value] == kLive; });
  dependencies_.resize(groups_.size());
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    for (Instruction member : groups_[g].members) group_of_[member.id().value] = g;
  }
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    const auto add = [&](Instruction on) {
      const auto it = group_of_.find(on.id().value);
      if (it == group_of_.end() || it->second != g) dependencies_[g].push_back(on);
    };
    for (Instruction member : groups_[g].members) {
      for (Instruction operand : member.operands()) add(operand);
      if (!member.has(Attr::kControlPredecessors)) continue;
      for (Instruction predecessor : member.control_predecessors()) add(predecessor);
    }
  }
}

bool CompiledComputationBuilder::PrepareVisited(Instruction instruction) {
  const auto it = group_of_.find(instruction.id().value);
  if (it == group_of_.end()) return Prepare(instruction);
  const InstructionGroup& group = groups_[it->second];
  std::vector<uint32_t>& first_view = program_.first_view();
  if (program_.options().kernels->PrepareGroup(*this, group)) {
    if (failed_) return false;
    ObserveGroup(group);
    // Members without results are not read by others.
    for (Instruction member : group.members) {
      uint32_t& state = first_view[member.id().value];
      if (state >= kOpen) state = static_cast<uint32_t>(views_.size());
    }
    return true;
  }
  for (Instruction member : group.members) {
    if (!Prepare(member)) return false;
  }
  return true;
}

bool CompiledComputationBuilder::HasViews(Instruction instruction) const {
  return program_.first_view()[instruction.id().value] < kOpen;
}

bool CompiledComputationBuilder::Visit(Instruction root) {
  // Post-order over operands and control predecessors. A group is visited as a whole.
  std::vector<uint32_t>& first_view = program_.first_view();
  if (first_view[root.id().value] < kOpen) return true;
  std::vector<VisitEntry>& stack = visits_;
  const auto push = [&](Instruction instruction) {
    stack.push_back({instruction, 0});
    first_view[instruction.id().value] = kOpen;
    const auto it = group_of_.find(instruction.id().value);
    if (it == group_of_.end()) return;
    for (Instruction member : groups_[it->second].members) first_view[member.id().value] = kOpen;
  };
  push(root);
  while (!stack.empty()) {
    VisitEntry& top = stack.back();
    const Instruction at = top.instruction;
    Instruction next;
    if (const auto it = group_of_.find(at.id().value); it != group_of_.end()) {
      const std::vector<Instruction>& on = dependencies_[it->second];
      if (top.next_dependency < on.size()) next = on[top.next_dependency++];
    } else if (const size_t operands = static_cast<size_t>(at.operand_count()); top.next_dependency < operands) {
      next = at.operand(static_cast<int64_t>(top.next_dependency++));
    } else if (at.has(Attr::kControlPredecessors)) {
      const std::vector<Instruction> predecessors = at.control_predecessors();
      const size_t i = top.next_dependency - operands;
      if (i < predecessors.size()) {
        next = predecessors[i];
        ++top.next_dependency;
      }
    }
    if (next.valid()) {
      const uint32_t state = first_view[next.id().value];
      if (state < kOpen) continue;
      if (state == kOpen) {
        program_.Error(DiagnosticKind::kCyclicOperands, next, "this instruction depends on its own result");
        return false;
      }
      push(next);
      continue;
    }
    if (!PrepareVisited(at)) return false;
    stack.pop_back();
  }
  return true;
}

bool CompiledComputationBuilder::Build() {
  const Computation computation = compiled_->computation;
  const size_t count = static_cast<size_t>(computation.instruction_count());
  views_.reserve(count);
  compiled_->slots.reserve(count);
  compiled_->thunks.reserve(count);
  compiled_->operands.reserve(count);
  compiled_->thunk_params.reserve(count);
  int64_t parameter_leaves = 0;
  for (int64_t i = 0; i < computation.parameter_count(); ++i) {
    parameter_begins_.push_back(static_cast<size_t>(parameter_leaves));
    const Shape shape = computation.parameter(i).shape();
    if (!program_.CountLeaves(shape)) {
      program_.Error(DiagnosticKind::kTooLarge, computation.root(), "the tuples of this program have too many leaves");
      return false;
    }
    parameter_leaves += program_.LeafCount(shape);
  }
  compiled_->parameters.assign(static_cast<size_t>(parameter_leaves), kNoSlot);

  // Live instructions: the root, instructions with side effects, and their transitive operands.
  std::vector<Instruction> pending = {computation.root()};
  std::vector<uint32_t>& first_view = program_.first_view();
  for (Instruction i : computation.instructions()) {
    if (program_.effects().Of(i)) pending.push_back(i);
  }
  while (!pending.empty()) {
    const Instruction i = pending.back();
    pending.pop_back();
    if (std::exchange(first_view[i.id().value], kLive) == kLive) continue;
    for (Instruction operand : i.operands()) pending.push_back(operand);
    if (i.has(Attr::kControlPredecessors)) {
      for (Instruction p : i.control_predecessors()) pending.push_back(p);
    }
  }
  MakeGroups();
  // Text order, which may be a schedule; operands first where the two differ.
  for (Instruction i : computation.instructions()) {
    if (first_view[i.id().value] == kLive && !Visit(i)) return false;
  }

  current_ = computation.root();
  std::vector<View> results;
  for (const View& v : std::vector<View>(leaves(current_).begin(), leaves(current_).end()))
    results.push_back(MakeDense(v));
  if (failed_) return false;
  for (const View& v : results) compiled_->results.push_back({v.slot, v.offset});
  MoveThunksOut();
  HoistInvariantThunks();
  ComputeLastUses();
  MarkResults();
  return true;
}

}  // namespace hlokit::interp
