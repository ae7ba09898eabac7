// SPDX-License-Identifier: Apache-2.0
// Calls of ops, functions and modules by scripts.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/schema.h"
#include "tracer/script/script_runner.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::script {
namespace {

absl::Status Unexpected(const ArgSpec& spec, std::string_view expected, const Value& value) {
  if (value.none()) return absl::InvalidArgumentError(StrCat(spec.name, " cannot be none"));
  return absl::InvalidArgumentError(StrCat("expected ", expected, " as `", spec.name, "`, found ", value.KindName()));
}

// The enumerators of torch in written arguments.
std::optional<Scalar> WrittenNumber(const Value& value) {
  if (const Scalar* number = value.get<Scalar>()) return *number;
  const auto* word = value.get<Value::Word>();
  return word != nullptr && word->text == "Mean" ? std::optional<Scalar>(Scalar(1)) : std::nullopt;
}

// A written -0 is a float, so that it keeps its sign.
bool IsWrittenInteger(Scalar number) { return !number.is_float() || (number.Is(0) && std::signbit(number.ToDouble())); }

absl::StatusOr<IValue> ToNumber(const ArgSpec& spec, const Value& value) {
  const std::optional<Scalar> number = WrittenNumber(value);
  if (!number) return Unexpected(spec, spec.type == ArgType::kInt ? "an integer" : "a number", value);
  if (spec.type == ArgType::kInt) {
    if (!IsWrittenInteger(*number)) return Unexpected(spec, "an integer", value);
    return IValue(number->is_float() ? Scalar(int64_t{0}) : *number);
  }
  if (spec.type == ArgType::kFloat) return IValue(number->ToDouble());
  if (spec.type == ArgType::kBool) return IValue(number->ToBool());
  return IValue(*number);
}

absl::StatusOr<IValue> ToNumbers(const ArgSpec& spec, const Value& value) {
  const bool integers = spec.type == ArgType::kIntList;
  const std::string_view expected = integers ? "a list of integers" : "a list of numbers";
  const std::vector<Value> one = {value};
  const std::vector<Value>& members = value.list() == nullptr ? one : value.list()->values;
  IntList ints;
  std::vector<double> floats;
  for (const Value& member : members) {
    const Scalar* number = member.get<Scalar>();
    if (number == nullptr || (integers && !IsWrittenInteger(*number))) return Unexpected(spec, expected, value);
    ints.push_back(number->ToInt());
    floats.push_back(number->ToDouble());
  }
  if (!integers) return IValue(std::move(floats));
  if (value.list() == nullptr && spec.list_size > 1) ints.assign(static_cast<size_t>(spec.list_size), int64_t{ints[0]});
  return IValue(std::move(ints));
}

absl::StatusOr<IValue> ToTensors(const ArgSpec& spec, const Value& value) {
  const auto error = [&] { return absl::InvalidArgumentError("expected a list, [%a, %b]"); };
  if (value.list() == nullptr) return error();
  Tensors tensors;
  for (const Value& member : value.list()->values) {
    const Tensor* t = member.get<Tensor>();
    if (t == nullptr && !member.none()) return Unexpected(spec, "a list of tensors", value);
    tensors.push_back(t == nullptr ? Tensor() : *t);
  }
  return IValue(std::move(tensors));
}

// An overload, and the position of each argument in its schema.
struct Match {
  Op op;
  std::vector<int> places;  // -1: unknown name, or too many arguments without one
  int missing = -1;         // the first missing required argument
};

Match MatchOf(Op op, absl::Span<const CallArgument> arguments) {
  const Schema& schema = SchemaOf(op);
  Match match{op, {}};
  std::vector<bool> given(schema.args.size(), false);
  for (size_t i = 0; i < arguments.size(); ++i) {
    int place = -1;
    if (!arguments[i].name.empty()) {
      place = schema.Find(arguments[i].name);
    } else if (static_cast<int>(i) < schema.positional) {
      place = static_cast<int>(i);
    }
    if (place >= 0) given[static_cast<size_t>(place)] = true;
    match.places.push_back(place);
  }
  for (size_t i = 0; i < given.size() && match.missing < 0; ++i) {
    if (!given[i] && !schema.args[i].has_default && !schema.args[i].optional) match.missing = static_cast<int>(i);
  }
  return match;
}

// Returns the arguments if they fit the overload.
std::optional<Args> ArgsOf(const Match& match, absl::Span<const Value> values) {
  if (match.missing >= 0) return std::nullopt;
  const Schema& schema = SchemaOf(match.op);
  Args args(schema.args.size());
  std::vector<bool> given(schema.args.size(), false);
  for (size_t i = 0; i < values.size(); ++i) {
    if (match.places[i] < 0) return std::nullopt;
    const auto at = static_cast<size_t>(match.places[i]);
    if (given[at]) return std::nullopt;
    given[at] = true;
    absl::StatusOr<IValue> argument = ToOpArgument(schema.args[at], values[i]);
    if (!argument.ok()) return std::nullopt;
    args[at] = *std::move(argument);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) args[i] = schema.args[i].default_value;
  }
  return args;
}

}  // namespace

absl::StatusOr<IValue> ToOpArgument(const ArgSpec& spec, const Value& given) {
  const Value& value = spec.type == ArgType::kTensorList ? given : given.single();
  // `none` is also the name of an approximation.
  if (value.none() && spec.type == ArgType::kString && !spec.optional) return IValue(std::string("none"));
  if (value.none() && spec.optional) return IValue();
  switch (spec.type) {
    case ArgType::kTensor:
      if (const Tensor* t = value.get<Tensor>()) return IValue(*t);
      return Unexpected(spec, "a tensor", value);
    case ArgType::kTensorList:
      return ToTensors(spec, value);
    case ArgType::kScalar:
    case ArgType::kInt:
    case ArgType::kFloat:
    case ArgType::kBool:
      return ToNumber(spec, value);
    case ArgType::kIntList:
    case ArgType::kFloatList:
      return ToNumbers(spec, value);
    case ArgType::kString:
      if (const std::string* text = TextOf(value)) return IValue(*text);
      return Unexpected(spec, "a string", value);
    case ArgType::kDtype:
      if (const auto* word = value.get<Value::Word>()) {
        const std::optional<ElementType> type = ElementTypeFromText(word->text);
        if (type && IsArrayType(*type)) return IValue(*type);
      }
      return Unexpected(spec, "an element type, such as f32,", value);
  }
  return Unexpected(spec, "a value", value);
}

bool ScriptRunner::RunOp(Op op, Args args, bool in_place, SourceRange range) {
  const IValue self = args.empty() ? IValue() : args[0];
  Outputs outputs;
  {
    // An op that runs on the host waits for values.
    std::optional<OthersRun> others;
    if ((InfoOf(op).flags & kFallback) != 0) others.emplace(context_);
    outputs = Dispatch(op, std::move(args));
  }
  if (!CheckStatus(range)) return false;
  if (in_place) {
    const Tensor* const target = self.get<Tensor>();
    if (target == nullptr) return Error(range, "missing tensor to write to");
    WriteInPlace(*target, outputs[0]);
    outputs = Outputs{*target};
    if (!CheckStatus(range)) return false;
  }
  if (outputs.size() == 1 && !SchemaOf(op).list_output) {
    Push(Value(std::move(outputs[0])));
    return true;
  }
  return PushList(std::vector<Value>(outputs.begin(), outputs.end()), range, true);
}

bool ScriptRunner::CallNamed(std::string_view name, bool in_place, std::vector<Value> values, SourceRange range) {
  CallSite call;
  call.kind = CallSite::Kind::kOp;
  call.name = std::string(name);
  call.range = range;
  // An op that writes in place itself, or one whose result is written.
  call.ops = in_place ? Overloads(StrCat(name, "_")) : std::vector<Op>();
  call.in_place = in_place && call.ops.empty();
  if (call.ops.empty()) call.ops = Overloads(name);
  call.arguments.resize(values.size());
  for (CallArgument& argument : call.arguments) argument.range = range;
  return CallOp(call, std::move(values));
}

bool ScriptRunner::CallOp(const CallSite& call, std::vector<Value> values) {
  std::optional<Match> first;
  for (Op op : call.ops) {
    Match match = MatchOf(op, call.arguments);
    if (std::optional<Args> args = ArgsOf(match, values)) {
      values.clear();
      return RunOp(op, *std::move(args), call.in_place, call.range);
    }
    if (!first) first = std::move(match);
  }
  // The error of the first overload.
  if (!first) return Error(call.range, StrCat("unknown op `", call.name, "`"));
  const Schema& schema = SchemaOf(first->op);
  for (size_t i = 0; i < values.size(); ++i) {
    const CallArgument& argument = call.arguments[i];
    if (first->places[i] >= 0) continue;
    if (!argument.name.empty()) {
      return Error(argument.name_range, StrCat("unknown argument `", argument.name, "` of ", schema.full_name()));
    }
    return Error(argument.range, StrCat(schema.full_name(), " takes ", schema.positional, " arguments without a name"));
  }
  std::vector<bool> given(schema.args.size(), false);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<size_t>(first->places[i]);
    if (given[at]) return Error(call.arguments[i].range, StrCat("duplicate argument `", schema.args[at].name, "`"));
    given[at] = true;
    const absl::StatusOr<IValue> argument = ToOpArgument(schema.args[at], values[i]);
    if (!argument.ok()) return Fail(call.arguments[i].range, argument.status());
  }
  const ArgSpec& missing = schema.args[static_cast<size_t>(std::max(first->missing, 0))];
  return Error(call.range, StrCat(schema.full_name(), ": missing argument `", missing.name, "`"));
}

bool ScriptRunner::Bind(const Signature& signature, const CallSite& call, const std::vector<size_t>& places,
                        std::vector<Value> values, std::vector<Value>* bound) {
  const std::vector<Parameter>& parameters = signature.parameters;
  bound->clear();
  for (const Parameter& parameter : parameters) bound->push_back(parameter.default_value);
  std::vector<Value> rest;
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter& parameter = parameters[places[i]];
    if (signature.variadic && places[i] + 1 == parameters.size()) {
      rest.push_back(Value(values[i].single()));
      continue;
    }
    absl::StatusOr<Value> value = ConvertTo(parameter, values[i]);
    if (!value.ok()) return Fail(call.arguments[i].range, value.status());
    (*bound)[places[i]] = *std::move(value);
  }
  if (!signature.variadic) return true;
  absl::StatusOr<Value> list = Value::ListOf(std::move(rest));
  if (!list.ok()) return Fail(call.range, list.status());
  bound->back() = *std::move(list);
  return true;
}

bool ScriptRunner::CallNative(const CallSite& call, std::vector<Value> values) {
  if (call.native->host && tracing_ != nullptr) {
    return Error(call.range, StrCat(call.name, " waits for other devices and cannot be captured here"),
                 "call it directly in the captured block, or outside of it");
  }
  std::vector<Value> bound;
  if (!Bind(call.native->signature, call, call.places, std::move(values), &bound)) return false;
  absl::StatusOr<Value> result = call.native->call(context_, Arguments(bound));
  if (!CheckStatus(call.range)) return false;
  if (!result.ok()) return Fail(call.range, result.status());
  Push(*std::move(result));
  return true;
}

bool ScriptRunner::CallFunction(const CallSite& call, std::vector<Value> values) {
  std::vector<Value> bound;
  const Signature& signature = program_.functions[call.function].signature;
  if (!Bind(signature, call, call.places, std::move(values), &bound)) return false;
  for (Value& argument : bound) argument = Value(argument.single());
  return EnterFunction(call.function, std::move(bound), call.range);
}

bool ScriptRunner::CallModule(const CallSite& call, std::vector<Value> values) {
  const Value callee = Pop();
  const std::shared_ptr<Module> module = callee.object<Module>();
  if (module == nullptr) return Error(call.range, StrCat("expected a module to call, found ", callee.KindName()));
  std::vector<size_t> places;
  const bool ok = AssignArguments(module->forward_signature(), call, &places,
                                  [&](SourceRange range, std::string message, std::string hint) {
                                    Error(range, std::move(message), std::move(hint));
                                  });
  std::vector<Value> bound;
  if (!ok || !Bind(module->forward_signature(), call, places, std::move(values), &bound)) return false;
  absl::StatusOr<Value> result = module->Call(Arguments(bound));
  if (!CheckStatus(call.range)) return false;
  if (!result.ok()) return Fail(call.range, result.status());
  Push(*std::move(result));
  return true;
}

bool ScriptRunner::Call(const Instruction& i) {
  const CallSite& call = program_.calls[i.a];
  std::vector<Value> values = PopMany(call.arguments.size());
  switch (call.kind) {
    case CallSite::Kind::kOp:
      return CallOp(call, std::move(values));
    case CallSite::Kind::kNative:
      return CallNative(call, std::move(values));
    case CallSite::Kind::kFunction:
      return CallFunction(call, std::move(values));
    case CallSite::Kind::kValue:
      return CallModule(call, std::move(values));
  }
  return false;
}

}  // namespace hlokit::lazy::script
