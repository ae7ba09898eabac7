// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/builder/scalar_function.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {

// Translates instructions to registers and ops. Returns false at the first one that is not elementwise on scalars.
struct ScalarFunction::Compiler {
  // Inlining may grow without bound.
  static constexpr size_t kMaxOps = 4096;

  ProgramBuilder& program;
  ScalarFunction* f;
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> registers;  // of the leaves of each instruction, by id

  uint32_t AddRegister(Source source, ElementType type, size_t index, const std::byte* constant = nullptr) {
    f->registers_.push_back({source, static_cast<uint8_t>(BytesOf(type)), static_cast<uint32_t>(index), constant});
    return static_cast<uint32_t>(f->registers_.size() - 1);
  }

  bool Compile(Computation computation) {
    size_t parameter = 0;
    for (int64_t i = 0; i < computation.parameter_count(); ++i) {
      const Instruction instruction = computation.parameter(i);
      std::vector<Shape> leaves;
      AppendLeaves(instruction.shape(), &leaves);
      std::vector<uint32_t>& to = registers[instruction.id().value];
      for (Shape leaf : leaves) to.push_back(AddRegister(Source::kParameter, leaf.element_type(), parameter++));
    }
    // Operands first, without recursion: an instruction is revisited when its operands have registers.
    std::vector<Instruction> stack = {computation.root()};
    while (!stack.empty()) {
      const Instruction at = stack.back();
      if (registers.contains(at.id().value)) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      for (Instruction operand : at.operands()) {
        if (registers.contains(operand.id().value)) continue;
        ready = false;
        stack.push_back(operand);
      }
      if (stack.size() > kMaxOps * 4) return false;  // too large, or cyclic
      if (!ready) continue;
      if (!CompileInstruction(at) || f->ops_.size() > kMaxOps) return false;
    }
    f->results_ = registers[computation.root().id().value];
    return true;
  }

  bool CompileInstruction(Instruction at) {
    std::vector<uint32_t> result;
    const Opcode opcode = at.opcode();
    if (opcode == Opcode::kTuple) {
      for (Instruction operand : at.operands()) {
        const std::vector<uint32_t>& r = registers[operand.id().value];
        result.insert(result.end(), r.begin(), r.end());
      }
    } else if (opcode == Opcode::kGetTupleElement) {
      const Instruction tuple = at.operand(0);
      const int64_t index = at.int_attr(Attr::kIndex);
      size_t begin = 0;
      if (index < 0 || index >= tuple.shape().tuple_size()) return false;
      for (int64_t i = 0; i < index; ++i) begin += static_cast<size_t>(program.LeafCount(tuple.shape().element(i)));
      const std::vector<uint32_t>& r = registers[tuple.id().value];
      const size_t end = begin + static_cast<size_t>(program.LeafCount(at.shape()));
      if (end > r.size()) return false;
      result.assign(r.begin() + static_cast<int64_t>(begin), r.begin() + static_cast<int64_t>(end));
    } else if (opcode == Opcode::kCall || opcode == Opcode::kFusion) {
      if (!Inline(at, &result)) return false;
    } else if (!at.shape().IsScalar()) {
      return false;
    } else if (opcode == Opcode::kConstant) {
      const std::byte* data = program.ConstantData(at, at.literal_id());
      if (data == nullptr) return false;
      result.push_back(AddRegister(Source::kConstant, at.shape().element_type(), 0, data));
    } else if (MovesElements(opcode) || opcode == Opcode::kBitcast || opcode == Opcode::kOptimizationBarrier) {
      // Scalar to scalar: no operation.
      if (!at.operand(0).shape().IsScalar() || at.operand(0).shape().element_type() != at.shape().element_type()) {
        return false;
      }
      result = registers[at.operand(0).id().value];
    } else if (HasTrait(opcode, kElementwise) || opcode == Opcode::kBitcastConvert) {
      std::vector<ElementType> types;
      RegisterOp op{};
      if (at.operand_count() == 0 || at.operand_count() > ElementOp::kMaxOperands) return false;
      for (int64_t i = 0; i < at.operand_count(); ++i) {
        const Instruction operand = at.operand(i);
        if (!operand.shape().IsScalar()) return false;
        types.push_back(operand.shape().element_type());
        op.in[i] = registers[operand.id().value][0];
      }
      std::string error;
      std::optional<ElementOp> made = ElementOp::Create(opcode, at, types, at.shape().element_type(), &error);
      if (!made) return false;
      if (made->identity()) {
        result.push_back(op.in[0]);
      } else {
        op.op = *made;
        op.out = AddRegister(Source::kTemporary, at.shape().element_type(), f->ops_.size());
        f->ops_.push_back(op);
        result.push_back(op.out);
      }
    } else {
      return false;
    }
    registers[at.id().value] = std::move(result);
    return true;
  }

  // Inlines the registers and ops of the called function, with its parameters replaced by the operands.
  bool Inline(Instruction call, std::vector<uint32_t>* result) {
    const std::vector<Computation> called = call.called_computations();
    if (called.size() != 1) return false;
    const ScalarFunction* callee = program.FunctionOf(called[0]);
    if (callee == nullptr || !callee->is_vectorized_ || f->ops_.size() + callee->ops_.size() > kMaxOps) return false;
    std::vector<uint32_t> arguments;
    for (Instruction operand : call.operands()) {
      const std::vector<uint32_t>& r = registers[operand.id().value];
      arguments.insert(arguments.end(), r.begin(), r.end());
    }
    if (arguments.size() != callee->parameters_.size()) return false;
    std::vector<uint32_t> mapped;
    for (const Register& r : callee->registers_) {
      if (r.source == Source::kParameter) {
        mapped.push_back(arguments[r.index]);
        continue;
      }
      Register copy = r;
      if (r.source == Source::kTemporary) copy.index += static_cast<uint32_t>(f->ops_.size());
      f->registers_.push_back(copy);
      mapped.push_back(static_cast<uint32_t>(f->registers_.size() - 1));
    }
    for (RegisterOp op : callee->ops_) {
      for (int i = 0; i < op.op.arity(); ++i) op.in[i] = mapped[op.in[i]];
      op.out = mapped[op.out];
      f->ops_.push_back(op);
    }
    for (uint32_t r : callee->results_) result->push_back(mapped[r]);
    return true;
  }
};

namespace {

ScalarFunction::RecognizedOp KnownOf(Opcode opcode) {
  static constexpr std::pair<Opcode, ScalarFunction::RecognizedOp> kKnown[] = {
      {Opcode::kAdd, ScalarFunction::RecognizedOp::kAdd},
      {Opcode::kMultiply, ScalarFunction::RecognizedOp::kMultiply},
      {Opcode::kMinimum, ScalarFunction::RecognizedOp::kMinimum},
      {Opcode::kMaximum, ScalarFunction::RecognizedOp::kMaximum},
      {Opcode::kAnd, ScalarFunction::RecognizedOp::kAnd},
      {Opcode::kOr, ScalarFunction::RecognizedOp::kOr},
      {Opcode::kXor, ScalarFunction::RecognizedOp::kXor}};
  for (const auto& [candidate, known] : kKnown) {
    if (candidate == opcode) return known;
  }
  return ScalarFunction::RecognizedOp::kNone;
}

}  // namespace

std::unique_ptr<ScalarFunction> ScalarFunction::Create(ProgramBuilder& program, Computation computation,
                                                       CompiledComputation* compiled) {
  if (computation.root().shape().IsArray() && !computation.root().shape().IsScalar()) return nullptr;
  auto f = std::make_unique<ScalarFunction>();
  f->compiled_ = compiled;
  std::vector<Shape> parameters;
  for (int64_t i = 0; i < computation.parameter_count(); ++i)
    AppendLeaves(computation.parameter(i).shape(), &parameters);
  std::vector<Shape> results;
  AppendLeaves(computation.root().shape(), &results);
  for (Shape s : parameters) {
    if (!s.IsScalar()) return nullptr;
    f->parameters_.push_back(s.element_type());
  }
  for (Shape s : results) {
    if (!s.IsScalar()) return nullptr;
    f->result_types_.push_back(s.element_type());
  }

  Compiler compiler{program, f.get(), {}};
  f->is_vectorized_ = !program.effects().Of(computation) && compiler.Compile(computation);
  if (!f->is_vectorized_) {
    f->registers_.clear();
    f->ops_.clear();
    f->results_.assign(results.size(), 0);
    f->cost_ = 1000;
    return f;
  }
  for (const RegisterOp& op : f->ops_) f->cost_ += op.op.cost();
  f->direct_result_ = f->results_.size() == 1 && !f->ops_.empty() && f->ops_.back().out == f->results_[0];

  // Recognizes the function.
  const auto parameter_of = [&](uint32_t r) -> int64_t {
    return f->registers_[r].source == Source::kParameter ? int64_t{f->registers_[r].index} : -1;
  };
  if (results.size() == 1 && parameters.size() == 2 && parameters[0] == parameters[1] && parameters[0] == results[0]) {
    const int64_t returned = parameter_of(f->results_[0]);
    if (returned >= 0) f->recognized_op_ = returned == 0 ? RecognizedOp::kFirst : RecognizedOp::kSecond;
    const Instruction root = computation.root();
    if (f->ops_.size() == 1 && returned < 0 && root.operand_count() == 2) {
      const int64_t a = parameter_of(f->ops_[0].in[0]);
      const int64_t b = parameter_of(f->ops_[0].in[1]);
      if (a >= 0 && b >= 0 && a != b) f->recognized_op_ = KnownOf(root.opcode());
    }
  }
  f->MatchComparison(computation.root());
  return f;
}

std::unique_ptr<ScalarFunction> ScalarFunction::WithTypes(const ScalarFunction& function, Computation computation,
                                                          absl::Span<const ElementType> parameters,
                                                          absl::Span<const ElementType> results) {
  if (parameters.size() != function.parameters_.size() || results.size() != function.result_types_.size()) {
    return nullptr;
  }
  auto f = std::make_unique<ScalarFunction>();
  f->compiled_ = function.compiled_;
  f->parameters_.assign(parameters.begin(), parameters.end());
  f->result_types_.assign(results.begin(), results.end());
  f->cost_ = function.cost_;
  f->is_vectorized_ = function.is_vectorized_;
  // Returns no op for equal types; false if there is no conversion.
  const auto conversion = [&](ElementType from, ElementType to, std::optional<ElementOp>* op) {
    if (from == to) return true;
    std::string error;
    if (IsFloat(from) && IsFloat(to)) {
      *op = ElementOp::Create(Opcode::kConvert, AttrReader(computation.root()), {from}, to, &error);
    }
    return op->has_value();
  };
  std::vector<std::optional<ElementOp>> in(parameters.size()), out(results.size());
  for (size_t k = 0; k < in.size(); ++k) {
    if (!conversion(parameters[k], function.parameters_[k], &in[k])) return nullptr;
  }
  for (size_t k = 0; k < out.size(); ++k) {
    if (!conversion(function.result_types_[k], results[k], &out[k])) return nullptr;
  }
  if (!f->is_vectorized_) {
    f->results_ = function.results_;
    f->convert_parameters_ = std::move(in);
    f->convert_results_ = std::move(out);
    return f;
  }
  const auto add_register = [&](Source source, ElementType type, size_t index) {
    f->registers_.push_back({source, static_cast<uint8_t>(BytesOf(type)), static_cast<uint32_t>(index), nullptr});
    return static_cast<uint32_t>(f->registers_.size() - 1);
  };
  const auto convert = [&](const std::optional<ElementOp>& op, uint32_t from, ElementType to) {
    if (!op) return from;
    RegisterOp made{};
    made.op = *op;
    made.in[0] = from;
    made.out = add_register(Source::kTemporary, to, f->ops_.size());
    f->ops_.push_back(made);
    f->cost_ += op->cost();
    return made.out;
  };
  std::vector<uint32_t> arguments;
  for (size_t k = 0; k < in.size(); ++k) {
    arguments.push_back(convert(in[k], add_register(Source::kParameter, parameters[k], k), function.parameters_[k]));
  }
  std::vector<uint32_t> mapped;
  const size_t converted = f->ops_.size();
  for (Register r : function.registers_) {
    if (r.source == Source::kParameter) {
      mapped.push_back(arguments[r.index]);
      continue;
    }
    if (r.source == Source::kTemporary) r.index += static_cast<uint32_t>(converted);
    f->registers_.push_back(r);
    mapped.push_back(static_cast<uint32_t>(f->registers_.size() - 1));
  }
  for (RegisterOp op : function.ops_) {
    for (int i = 0; i < op.op.arity(); ++i) op.in[i] = mapped[op.in[i]];
    op.out = mapped[op.out];
    f->ops_.push_back(op);
  }
  for (size_t k = 0; k < out.size(); ++k) {
    f->results_.push_back(convert(out[k], mapped[function.results_[k]], results[k]));
  }
  f->direct_result_ = f->results_.size() == 1 && !f->ops_.empty() && f->ops_.back().out == f->results_[0];
  if (results[0] == function.result_types_[0]) f->MatchComparison(computation.root());
  return f;
}

void ScalarFunction::MatchComparison(Instruction root) {
  if (root.opcode() != Opcode::kCompare || ops_.empty() || results_.size() != 1 || ops_.back().out != results_[0] ||
      parameters_.size() % 2 != 0) {
    return;
  }
  // Compares both sides in lockstep: they must be equal except for the parity of their parameters.
  struct Pair {
    uint32_t even, odd;
  };
  std::vector<Pair> pending;
  std::vector<bool> needed(ops_.size(), false);
  bool swapped = false;
  const RegisterOp& compare = ops_.back();
  const auto match_chain = [&](uint32_t first, uint32_t second) {
    pending = {{first, second}};
    std::fill(needed.begin(), needed.end(), false);
    size_t visited = 0;
    while (!pending.empty()) {
      const Pair at = pending.back();
      pending.pop_back();
      const Register& even = registers_[at.even];
      const Register& odd = registers_[at.odd];
      if (++visited > 4 * registers_.size() || even.source != odd.source) return false;
      switch (even.source) {
        case Source::kParameter:
          if (even.index % 2 != 0 || odd.index != even.index + 1) return false;
          break;
        case Source::kConstant:
          if (even.bytes != odd.bytes || std::memcmp(even.constant, odd.constant, even.bytes) != 0) return false;
          break;
        case Source::kTemporary:
          if (!SameOp(ops_[even.index].op, ops_[odd.index].op)) return false;
          needed[even.index] = true;
          for (int i = 0; i < ops_[even.index].op.arity(); ++i) {
            pending.push_back({ops_[even.index].in[i], ops_[odd.index].in[i]});
          }
          break;
      }
    }
    return true;
  };
  if (!match_chain(compare.in[0], compare.in[1])) {
    swapped = true;
    if (!match_chain(compare.in[1], compare.in[0])) return;
  }
  auto direction = root.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
  if (swapped) {
    constexpr ComparisonDirection kSwapped[] = {ComparisonDirection::kEq, ComparisonDirection::kNe,
                                                ComparisonDirection::kLe, ComparisonDirection::kLt,
                                                ComparisonDirection::kGe, ComparisonDirection::kGt};
    direction = kSwapped[static_cast<size_t>(direction)];
  }
  const uint32_t result = compare.in[swapped ? 1 : 0];
  auto key = std::make_unique<ScalarFunction>();
  key->parameters_ = parameters_;
  key->result_types_ = {root.operand(0).shape().element_type()};
  key->registers_ = registers_;
  std::vector<uint32_t> moved(ops_.size(), 0);
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (!needed[i]) continue;
    moved[i] = static_cast<uint32_t>(key->ops_.size());
    key->ops_.push_back(ops_[i]);
  }
  for (Register& r : key->registers_) {
    if (r.source == Source::kTemporary) r.index = moved[r.index];
  }
  key->results_ = {result};
  key->is_vectorized_ = true;
  key->direct_result_ = !key->ops_.empty() && key->ops_.back().out == result;
  const Register& source = registers_[result];
  if (source.source == Source::kConstant) return;
  const int64_t operand = source.source == Source::kParameter ? int64_t{source.index / 2} : -1;
  const bool total = root.enum_attr(Attr::kCompareType, ComparisonType::kFloat) == ComparisonType::kTotalOrder;
  comparison_ = KeyComparison{direction, total, std::move(key), operand};
}

ScalarFunction::BlockScratch::BlockScratch(const ScalarFunction& function, int64_t n) : block_(std::min(n, kBlock)) {
  const size_t count = std::max<size_t>(function.ops_.size(), function.results_.size());
  memory_ = std::make_unique_for_overwrite<std::byte[]>(count * static_cast<size_t>(block_) * 16);
}

void ScalarFunction::Run(const std::byte* const* parameters, const int64_t* strides, std::byte* const* results,
                         int64_t n, BlockScratch& scratch, RunContext& context) const {
  if (!is_vectorized_) {
    RunOnVirtualMachine(parameters, strides, results, n, context);
    return;
  }
  const int64_t block = scratch.block_;
  const auto temporary = [&](const Register& r) { return scratch.memory_.get() + r.index * block * 16; };
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t count = std::min(block, n - begin);
    const auto locate = [&](uint32_t index, const std::byte** data, int64_t* stride) {
      const Register& r = registers_[index];
      switch (r.source) {
        case Source::kParameter:
          *stride = strides[r.index];
          *data = parameters[r.index] + begin * *stride * r.bytes;
          break;
        case Source::kConstant:
          *stride = 0;
          *data = r.constant;
          break;
        case Source::kTemporary:
          *stride = 1;
          *data = temporary(r);
          break;
      }
    };
    for (const RegisterOp& op : ops_) {
      const std::byte* in[ElementOp::kMaxOperands] = {};
      int64_t in_strides[ElementOp::kMaxOperands] = {};
      for (int i = 0; i < op.op.arity(); ++i) locate(op.in[i], &in[i], &in_strides[i]);
      std::byte* out = temporary(registers_[op.out]);
      if (direct_result_ && &op == &ops_.back()) out = results[0] + begin * registers_[op.out].bytes;
      op.op.Run(out, in, in_strides, count);
    }
    if (direct_result_) continue;
    // A result that is a parameter may be overwritten by another result: read all before writing any.
    bool moves_parameter = false;
    for (uint32_t r : results_) moves_parameter = moves_parameter || registers_[r].source == Source::kParameter;
    std::unique_ptr<std::byte[]> staged;
    if (moves_parameter && results_.size() > 1) {
      staged = std::make_unique_for_overwrite<std::byte[]>(results_.size() * static_cast<size_t>(block) * 16);
    }
    const auto copy_result = [&](size_t j, std::byte* to) {
      const std::byte* data = nullptr;
      int64_t stride = 0;
      locate(results_[j], &data, &stride);
      const size_t bytes = registers_[results_[j]].bytes;
      if (stride == 1) {
        std::memmove(to, data, static_cast<size_t>(count) * bytes);
      } else {
        for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * bytes, data + i * stride * bytes, bytes);
      }
    };
    if (staged != nullptr) {
      for (size_t j = 0; j < results_.size(); ++j) copy_result(j, staged.get() + j * block * 16);
      for (size_t j = 0; j < results_.size(); ++j) {
        const size_t bytes = registers_[results_[j]].bytes;
        std::memcpy(results[j] + begin * bytes, staged.get() + j * block * 16, static_cast<size_t>(count) * bytes);
      }
    } else {
      for (size_t j = 0; j < results_.size(); ++j) copy_result(j, results[j] + begin * registers_[results_[j]].bytes);
    }
  }
}

void ScalarFunction::RunOnVirtualMachine(const std::byte* const* parameters, const int64_t* strides,
                                         std::byte* const* results, int64_t n, RunContext& context) const {
  std::vector<SlotValue> arguments(parameters_.size());
  std::vector<std::array<std::byte, 16>> converted(convert_parameters_.size());
  const auto convert = [](const ElementOp& op, const std::byte* from, std::byte* to) {
    const std::byte* const in[ElementOp::kMaxOperands] = {from};
    constexpr int64_t kStrides[ElementOp::kMaxOperands] = {1};
    op.Run(to, in, kStrides, 1);
  };
  std::vector<SlotValue> returned(result_types_.size());
  for (int64_t i = 0; i < n; ++i) {
    for (size_t p = 0; p < arguments.size(); ++p) {
      // Borrowed: a machine does not write to values without owners.
      const std::byte* argument = parameters[p] + i * strides[p] * BytesOf(parameters_[p]);
      if (!convert_parameters_.empty() && convert_parameters_[p]) {
        convert(*convert_parameters_[p], argument, converted[p].data());
        argument = converted[p].data();
      }
      arguments[p] = {nullptr, const_cast<std::byte*>(argument)};
    }
    if (!context.Call(compiled_, arguments, absl::MakeSpan(returned))) return;
    for (size_t j = 0; j < returned.size(); ++j) {
      const size_t bytes = static_cast<size_t>(BytesOf(result_types_[j]));
      if (!convert_results_.empty() && convert_results_[j]) {
        convert(*convert_results_[j], returned[j].data, results[j] + i * static_cast<int64_t>(bytes));
        continue;
      }
      std::memcpy(results[j] + i * bytes, returned[j].data, bytes);
    }
    for (SlotValue& v : returned) context.pool.Release(std::exchange(v, SlotValue()).owner);
  }
}

void ScalarFunction::ParallelFor(RunContext& context, int64_t count, double cost,
                                 absl::FunctionRef<void(int64_t, int64_t)> body) const {
  if (parallel()) {
    context.ParallelFor(count, cost, body);
  } else {
    body(0, count);
  }
}

}  // namespace hlokit::interp
