// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/script_runner.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"
#include "tracer/graph/deterministic_init.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/script/script_range.h"
#include "tracer/step/device_state.h"
#include "tracer/text/literal_line.h"

namespace hlokit::lazy::script {

bool ScriptRunner::Error(SourceRange range, std::string message, std::string hint) {
  sink_.Error(DiagnosticKind::kEvaluation, range, std::move(message), std::move(hint));
  return false;
}

bool ScriptRunner::CheckStatus(SourceRange range) {
  const absl::Status s = tracer_.status();
  if (s.ok()) return true;
  tracer_.ClearStatus();
  return Fail(range, s);
}

bool ScriptRunner::CountStatement(SourceRange range) {
  constexpr int64_t kStatementsPerClock = 1024;
  if (++statements_ > options_.max_statements) return Error(range, "the program runs too many statements");
  if (statements_ % kStatementsPerClock != 0) return true;
  const absl::Status status = tracer_.CheckTime();
  return status.ok() || Fail(range, status);
}

Value ScriptRunner::Pop() {
  Value value = std::move(stack_.back());
  stack_.pop_back();
  return value;
}

std::vector<Value> ScriptRunner::PopMany(size_t count) {
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<Value> values(std::make_move_iterator(first), std::make_move_iterator(stack_.end()));
  stack_.erase(first, stack_.end());
  return values;
}

bool ScriptRunner::PushList(std::vector<Value> values, SourceRange range, bool results) {
  absl::StatusOr<Value> list = Value::ListOf(std::move(values), results);
  if (!list.ok()) return Fail(range, list.status());
  Push(*std::move(list));
  return true;
}

bool ScriptRunner::MakeList(const Instruction& i) {
  std::vector<Value> members = PopMany(i.a);
  for (Value& member : members) member = Value(member.single());
  return PushList(std::move(members), i.range, false);
}

bool ScriptRunner::Load(const Instruction& i) {
  const Value& value = frame().variables[i.a];
  if (value.unset()) return Error(i.range, StrCat("`", function().variables[i.a], "` has no value"));
  Push(value);
  return true;
}

bool ScriptRunner::Store(const Instruction& i) {
  const std::vector<uint32_t>& targets = program_.targets[i.a];
  const Value value = Pop();
  const List* const list = value.list();
  const bool several = targets.size() > 1 || value.has_results();
  const size_t count = !several ? 1 : list != nullptr ? list->values.size() : value.unset() ? 0 : 1;
  if (targets.size() > count) {
    return Error(i.range, StrCat(targets.size(), " names for ", count, count == 1 ? " result" : " results"));
  }
  if (tracing_ != nullptr && frames_.size() == tracing_frame_) {
    assigned_.insert(assigned_.end(), targets.begin(), targets.end());
  }
  for (size_t k = 0; k < targets.size(); ++k) {
    frame().variables[targets[k]] = several && list != nullptr ? list->values[k] : value;
  }
  return true;
}

bool ScriptRunner::MakeLiteral(const Instruction& i) {
  std::optional<Literal> literal;
  {
    DeviceLock lock(context_.device->mutex());
    literal = ReadLiteralLine(source_, TextAt(program_.literals[i.a]), &context_.device->context(),
                              options_.max_value_bytes, &sink_);
  }
  if (!literal) return false;
  Push(Value(tracer_.FromLiteral(*std::move(literal))));
  return true;
}

absl::StatusOr<Shape> ScriptRunner::ShapeAt(SourceRange range) {
  DeviceLock lock(context_.device->mutex());
  return ParseShapeText(TextAt(range), &context_.device->context());
}

bool ScriptRunner::MakeHash(const Instruction& i) {
  const Value stream = Pop();
  const SourceRange shape_range = program_.literals[i.a];
  const Scalar* const number = stream.single().get<Scalar>();
  if (number == nullptr || number->is_float() || number->ToInt() < 0 ||
      number->ToInt() > std::numeric_limits<uint32_t>::max()) {
    return Error(i.range, "expected a shape and a number, hash f32[2,3] 0");
  }
  const absl::StatusOr<Shape> shape = ShapeAt(shape_range);
  if (!shape.ok()) return Fail(shape_range, shape.status());
  if (hlokit::ByteSize(*shape) > options_.max_value_bytes) {
    return Error(shape_range, StrCat("values of scripts have at most ", options_.max_value_bytes, " bytes"));
  }
  Literal literal = Literal::Zeros(*shape);
  const size_t width = static_cast<size_t>(BytesOf(shape->element_type()));
  const auto k = static_cast<uint32_t>(number->ToInt());
  for (int64_t e = 0; e < shape->element_count(); ++e) {
    StoreScalar(shape->element_type(), HashedValue(k, static_cast<uint32_t>(e)),
                literal.data() + static_cast<size_t>(e) * width);
  }
  Push(Value(tracer_.FromLiteral(std::move(literal))));
  return true;
}

bool ScriptRunner::IsTrue(const Value& given, SourceRange range, bool* result) {
  const Value& value = given.single();
  if (const Scalar* number = value.get<Scalar>()) {
    *result = number->ToBool();
  } else if (const std::string* text = TextOf(value)) {
    *result = !text->empty();
  } else if (value.list() != nullptr) {
    *result = !value.list()->values.empty();
  } else if (value.none()) {
    *result = false;
  } else if (value.get<Tensor>() != nullptr) {
    return Error(range, "expected a number as a condition, found a tensor", "item(...) fetches the number of a tensor");
  } else {
    *result = true;
  }
  return true;
}

bool ScriptRunner::BeginLoop(const Instruction& i) {
  Value members(Pop().single());
  if (i.b != 0) {
    const Scalar* const count = members.get<Scalar>();
    if (count == nullptr || count->is_float() || count->ToInt() < 1) return Error(i.range, "expected repeat N");
    members = Value(std::static_pointer_cast<Object>(std::make_shared<Range>(0, count->ToInt(), 1)));
  } else if (members.list() == nullptr && members.object<Range>() == nullptr) {
    return Error(i.range, StrCat("expected range(N) or a list, found ", members.KindName()));
  }
  const uint32_t position = function().loops[i.a].position;
  frame().variables[position] = Value(std::static_pointer_cast<Object>(std::make_shared<LoopPosition>(members)));
  return true;
}

bool ScriptRunner::EnterFunction(size_t number, std::vector<Value> arguments, SourceRange range) {
  if (frames_.size() >= kMaxFrames) {
    return Error(range, StrCat("functions call each other more than ", kMaxFrames, " deep"));
  }
  auto called = std::make_unique<Frame>();
  called->function = number;
  called->stack = stack_.size();
  called->variables = std::move(arguments);
  called->variables.resize(program_.functions[number].variables.size());
  called->lines.emplace_back();
  frames_.push_back(std::move(called));
  return true;
}

// In the reverse order of opening.
void ScriptRunner::LeaveFrame() {
  Frame& last = frame();
  while (!last.blocks.empty()) last.blocks.pop_back();
  while (!last.lines.empty()) last.lines.pop_back();
  frames_.pop_back();
}

bool ScriptRunner::Return(const Instruction& i) {
  std::vector<Value> results = PopMany(i.a);
  LeaveFrame();
  if (results.size() == 1) {
    Push(std::move(results[0]));
    return true;
  }
  if (results.empty()) {
    Push(Value(Value::None()));
    return true;
  }
  for (Value& result : results) result = Value(result.single());
  return PushList(std::move(results), i.range, true);
}

bool ScriptRunner::Jump(const Instruction& i) {
  switch (i.code) {
    case Code::kAnd:
    case Code::kOr: {
      bool truth = false;
      if (!IsTrue(stack_.back(), i.range, &truth)) return false;
      if (truth == (i.code == Code::kOr)) {
        frame().next = i.a;
      } else {
        stack_.pop_back();
      }
      return true;
    }
    case Code::kJumpIfFalse: {
      bool truth = false;
      if (!IsTrue(Pop(), i.range, &truth)) return false;
      if (!truth) frame().next = i.a;
      return true;
    }
    case Code::kLoopNext: {
      if (!CountStatement(i.range)) return false;
      Value member;
      const Value position = frame().variables[function().loops[i.a].position];
      if (position.object<LoopPosition>()->Next(&member)) {
        Push(std::move(member));
      } else {
        frame().next = i.b;
      }
      return true;
    }
    default:
      frame().next = i.a;
      return true;
  }
}

bool ScriptRunner::Step(const Instruction& i) {
  switch (i.code) {
    case Code::kConstant:
      Push(program_.constants[i.a]);
      return true;
    case Code::kLoad:
      return Load(i);
    case Code::kList:
      return MakeList(i);
    case Code::kLiteral:
      return MakeLiteral(i);
    case Code::kHash:
      return MakeHash(i);
    case Code::kUnary:
      return Unary(i);
    case Code::kBinary:
      return Binary(i);
    case Code::kIndex:
      return Index(i);
    case Code::kCall:
      return Call(i);
    case Code::kStatement:
      if (!CountStatement(i.range)) return false;
      frame().lines.back().reset();
      frame().lines.back() = std::make_unique<ScopedFrame>(
          frame().function == 0 ? std::string_view("<program>") : function().signature.name, source_.name(),
          static_cast<int>(i.a));
      return true;
    case Code::kPop:
      stack_.pop_back();
      return true;
    case Code::kStore:
      return Store(i);
    case Code::kAnd:
    case Code::kOr:
    case Code::kJump:
    case Code::kJumpIfFalse:
    case Code::kLoopNext:
      return Jump(i);
    case Code::kLoopBegin:
      return BeginLoop(i);
    case Code::kLoopEnd:
      for (uint32_t variable : function().loops[i.a].variables) frame().variables[variable] = Value();
      return true;
    case Code::kReturn:
      return Return(i);
    case Code::kCapture:
      return RunCapture(i);
    case Code::kDelete:
      frame().variables[i.a] = Value();
      return true;
    default:
      return StepStatement(i);
  }
}

bool ScriptRunner::StepStatement(const Instruction& i) {
  switch (i.code) {
    case Code::kOpen:
      return Open(i);
    case Code::kClose:
      return Close(i);
    case Code::kRequiresGrad:
      return RequiresGrad(i);
    case Code::kBackward:
      return Backward(i);
    case Code::kZeroGrad:
      return ZeroGrad(i);
    case Code::kStep:
      return StepOptimizers(i);
    case Code::kTrain:
      return Train(i);
    case Code::kMarkStep:
      return MarkStep(i);
    case Code::kWait:
      return Wait(i);
    case Code::kManualSeed:
      return ManualSeed(i);
    case Code::kPrint:
      return Print(i);
    case Code::kPrintItem:
      return PrintItem(i);
    case Code::kDump:
      return Dump(i);
    default:
      return Error(i.range, "unknown instruction");
  }
}

bool ScriptRunner::Execute(size_t depth, uint32_t end) {
  while (frames_.size() > depth || (frames_.size() == depth && frame().next != end)) {
    const Instruction& i = function().code[frame().next++];
    if (!Step(i)) return false;
  }
  return true;
}

bool ScriptRunner::Run(ProgramResult* result) {
  const Function& main = program_.functions[0];
  const bool ok = EnterFunction(0, {}, SourceRange{0, 0}) && Execute(1, static_cast<uint32_t>(main.code.size()));
  result->captures = CaptureReport();
  if (ok) {
    for (size_t i = 0; i < main.variables.size(); ++i) {
      if (const Tensor* t = frame().variables[i].get<Tensor>(); t != nullptr && !main.variables[i].empty()) {
        result->variables.emplace_back(main.variables[i], *t);
      }
    }
  }
  stack_.clear();
  while (!frames_.empty()) LeaveFrame();
  return ok;
}

}  // namespace hlokit::lazy::script
