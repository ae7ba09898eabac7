// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/builder/program_builder.h"

#include <utility>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "ir/core/str_cat.h"
#include "ir/graph/name_range.h"
#include "ir/graph/traversal.h"

namespace hlokit::interp {

ProgramBuilder::ProgramBuilder(const Module& module, const PrepareOptions& options, DiagnosticSink* sink,
                               PreparedProgram* program)
    : module_(module),
      options_(options),
      sink_(sink),
      program_(program),
      compiled_computation_of_(module.computation_id_bound(), nullptr),
      function_of_(module.computation_id_bound(), nullptr),
      effects_(module),
      first_view_(module.instruction_id_bound(), 0xffffffffu) {
  program->module = &module;
}

void ProgramBuilder::Error(DiagnosticKind kind, Instruction at, std::string message) {
  sink_->Error(kind, NameRange(at), std::move(message));
}

CompiledComputation* ProgramBuilder::CompiledComputationOf(Computation computation) const {
  return computation.valid() ? compiled_computation_of_[computation.id().value] : nullptr;
}

ScalarFunction* ProgramBuilder::FunctionOf(Computation computation) const {
  return computation.valid() ? function_of_[computation.id().value] : nullptr;
}

const ScalarFunction* ProgramBuilder::FunctionOf(Computation computation, absl::Span<const ElementType> parameters,
                                                 absl::Span<const ElementType> results) {
  const ScalarFunction* const function = FunctionOf(computation);
  if (function == nullptr || function->HasTypes(parameters, results)) return function;
  std::unique_ptr<ScalarFunction> converting = ScalarFunction::WithTypes(*function, computation, parameters, results);
  if (converting == nullptr) return nullptr;
  program_->functions.push_back(std::move(converting));
  return program_->functions.back().get();
}

bool ProgramBuilder::CountLeaves(Shape shape) {
  if (!shape.IsTuple()) return true;
  std::vector<Shape> pending = {shape};
  while (!pending.empty()) {
    const Shape at = pending.back();
    pending.pop_back();
    if (!at.IsTuple() || leaf_counts_.contains(at.record())) continue;
    if (!CountViews(at.leaf_count())) return false;
    leaf_counts_[at.record()] = static_cast<int64_t>(Leaves(at).size());
    for (Shape element : at.elements()) pending.push_back(element);
  }
  return true;
}

bool ProgramBuilder::CountViews(int64_t n) {
  constexpr int64_t kMaxViews = int64_t{1} << 27;
  views_ += n;
  return views_ <= kMaxViews;
}

const std::byte* ProgramBuilder::ConstantData(Instruction instruction, LiteralId id) {
  const Context& context = module_.context();
  const LiteralRecord& literal = context.literals[id];
  if (!literal.elided) return literal.data;
  const auto it = filled_.find(id.value);
  if (it != filled_.end()) return it->second;
  if (!options_.fill_elided) {
    sink_->Error(DiagnosticKind::kUnsupported,
                 {instruction.record().source_offset, static_cast<uint32_t>(instruction.name().size())},
                 StrCat("the value of constant ", instruction.name(), " is elided in the text"),
                 "--fill-elided=zeros, iota or random generates one");
    return nullptr;
  }
  const int64_t bytes = LiteralBytes(literal.shape);
  if (bytes < 0 || bytes > options_.limits.max_bytes) {
    Error(DiagnosticKind::kTooLarge, instruction,
          StrCat("this constant takes ", bytes < 0 ? "more than 2^63" : StrCat(bytes), " bytes; ",
                 options_.limits.BytesText()));
    return nullptr;
  }
  // Each constant gets different random values.
  program_->filled.push_back(
      std::make_unique<Literal>(FillElided(literal.shape, *options_.fill_elided, options_.seed + id.value)));
  return filled_[id.value] = program_->filled.back()->data();
}

bool ProgramBuilder::Build(Computation entry) {
  called_.assign(module_.computation_id_bound(), 0);
  body_of_one_loop_.assign(module_.computation_id_bound(), false);
  for (Computation computation : module_.computations()) {
    for (Instruction i : computation.instructions()) {
      i.ForEachCallee([&](Computation called) {
        if (called.valid()) ++called_[called.id().value];
      });
    }
  }
  for (Computation computation : module_.computations()) {
    for (Instruction i : computation.instructions()) {
      if (i.opcode() != Opcode::kWhile) continue;
      const Computation body = i.computation_attr(Attr::kBody);
      const Computation condition = i.computation_attr(Attr::kCondition);
      if (!body.valid() || !condition.valid()) continue;
      body_of_one_loop_[body.id().value] = called_[body.id().value] == 1 && called_[condition.id().value] == 1;
    }
  }
  for (ComputationId id : ReachableComputations(module_, {entry.id()})) {
    const Computation computation = module_.computation(id);
    auto compiled = std::make_unique<CompiledComputation>();
    compiled->computation = computation;
    if (!computation.root().valid()) {
      sink_->Error(DiagnosticKind::kUnsupported, {}, StrCat("computation ", computation.name(), " has no root"));
      return false;
    }
    CompiledComputationBuilder builder(*this, compiled.get());
    if (!builder.Build()) return false;
    compiled_computation_of_[computation.id().value] = compiled.get();
    std::unique_ptr<ScalarFunction> function = ScalarFunction::Create(*this, computation, compiled.get());
    program_->computations.push_back(std::move(compiled));
    if (function != nullptr) {
      function_of_[computation.id().value] = function.get();
      program_->functions.push_back(std::move(function));
    }
  }
  program_->entry = CompiledComputationOf(entry);
  return program_->entry != nullptr && !sink_->has_errors();
}

}  // namespace hlokit::interp
