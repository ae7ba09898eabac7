// SPDX-License-Identifier: Apache-2.0
#include "tracer/script/signature.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "tracer/graph/schema.h"
#include "tracer/graph/string_split.h"
#include "tracer/script/script_objects.h"

namespace hlokit::lazy::script {
namespace {

struct TypeName {
  std::string_view name;
  ParameterType type;
  std::string_view expected;
};
constexpr TypeName kTypes[] = {
    {"any", ParameterType::kAny, "a value"},
    {"Tensor", ParameterType::kTensor, "a tensor"},
    {"Tensor[]", ParameterType::kTensors, "a tensor or a list of tensors"},
    {"number", ParameterType::kNumber, "a number"},
    {"int", ParameterType::kInt, "an integer"},
    {"float", ParameterType::kFloat, "a number"},
    {"bool", ParameterType::kBool, "true or false"},
    {"str", ParameterType::kString, "a string"},
    {"int[]", ParameterType::kInts, "an integer or a list of integers"},
    {"float[]", ParameterType::kFloats, "a number or a list of numbers"},
    {"dtype", ParameterType::kDtype, "an element type, such as f32"},
    {"Module", ParameterType::kModule, "a module"},
    {"Optimizer", ParameterType::kOptimizer, "an optimizer"},
    {"Scheduler", ParameterType::kScheduler, "a learning rate schedule"},
    {"Mesh", ParameterType::kMesh, "a mesh"},
};

// Parses the default of a parameter in a table: a number, true, none, "text", a list of numbers in brackets.
absl::StatusOr<Value> ParseDefault(std::string_view text) {
  if (text == "none") return Value(Value::None());
  if (text.starts_with('"')) return Value(std::string(text.substr(1, text.size() - 2)));
  if (text.starts_with('[')) {
    std::vector<Value> members;
    for (std::string_view part : SplitTopLevel(text.substr(1, text.size() - 2))) {
      absl::StatusOr<Value> member = Value(Value::None());
      if (part != "none") {
        ArgSpec number;
        number.type = ArgType::kScalar;
        const absl::StatusOr<IValue> value = ParseArgument(number, part);
        if (!value.ok()) return value.status();
        member = Value(*value->get<Scalar>());
      }
      members.push_back(*std::move(member));
    }
    return Value::ListOf(std::move(members));
  }
  ArgSpec number;
  number.type = ArgType::kScalar;
  const absl::StatusOr<IValue> value = ParseArgument(number, text);
  if (!value.ok()) return value.status();
  return Value(*value->get<Scalar>());
}

bool IsInteger(const Value& value) {
  const Scalar* number = value.get<Scalar>();
  // A written -0 is a float, so that it keeps its sign.
  return number != nullptr && (!number->is_float() || (number->Is(0) && std::signbit(number->ToDouble())));
}

bool Matches(ParameterType type, const Value& value) {
  switch (type) {
    case ParameterType::kAny:
      return !value.unset();
    case ParameterType::kTensor:
      return value.get<Tensor>() != nullptr;
    case ParameterType::kNumber:
    case ParameterType::kFloat:
    case ParameterType::kBool:
      return value.get<Scalar>() != nullptr;
    case ParameterType::kInt:
      return IsInteger(value);
    case ParameterType::kString:
      return TextOf(value) != nullptr;
    case ParameterType::kDtype: {
      const auto* word = value.get<Value::Word>();
      const std::optional<ElementType> found =
          word == nullptr ? std::nullopt : ElementTypeFromText(std::string_view(word->text));
      return found && IsArrayType(*found);
    }
    case ParameterType::kModule:
      return value.object<Module>() != nullptr;
    case ParameterType::kOptimizer:
      return value.object<OptimizerObject>() != nullptr;
    case ParameterType::kScheduler:
      return value.object<SchedulerObject>() != nullptr;
    case ParameterType::kMesh:
      return value.object<MeshObject>() != nullptr;
    case ParameterType::kTensors:
    case ParameterType::kInts:
    case ParameterType::kFloats:
      break;
  }
  const ParameterType member = type == ParameterType::kTensors ? ParameterType::kTensor
                               : type == ParameterType::kInts  ? ParameterType::kInt
                                                               : ParameterType::kFloat;
  if (value.list() == nullptr) return Matches(member, value);
  const std::vector<Value>& values = value.list()->values;
  return std::all_of(values.begin(), values.end(), [&](const Value& v) { return Matches(member, v); });
}

}  // namespace

const std::string* TextOf(const Value& value) {
  if (const auto* word = value.get<Value::Word>()) return &word->text;
  return value.get<std::string>();
}

int Signature::Find(std::string_view parameter) const {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == parameter) return static_cast<int>(i);
  }
  return -1;
}

absl::StatusOr<Signature> ParseSignature(std::string_view text) {
  Signature signature;
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') {
    return absl::InvalidArgumentError(StrCat("not a signature: ", text));
  }
  signature.name = std::string(text.substr(0, open));
  for (std::string_view part : SplitTopLevel(text.substr(open + 1, text.size() - open - 2))) {
    Parameter parameter;
    const size_t eq = part.find('=');
    if (eq != std::string_view::npos) {
      absl::StatusOr<Value> value = ParseDefault(Trim(part.substr(eq + 1)));
      if (!value.ok()) return value.status();
      parameter.has_default = true;
      parameter.default_value = *std::move(value);
      part = Trim(part.substr(0, eq));
    }
    const size_t space = part.rfind(' ');
    if (space == std::string_view::npos) return absl::InvalidArgumentError(StrCat("parameter without a name: ", part));
    std::string_view name = part.substr(space + 1), type = part.substr(0, space);
    if (name.starts_with('*')) {
      signature.variadic = true;
      name.remove_prefix(1);
    }
    if (type.ends_with('?')) {
      parameter.optional = true;
      type.remove_suffix(1);
    }
    const auto* const known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return t.name == type; });
    if (known == std::end(kTypes)) return absl::InvalidArgumentError(StrCat("unknown type: ", type));
    parameter.type = known->type;
    parameter.name = std::string(name);
    signature.parameters.push_back(std::move(parameter));
  }
  return signature;
}

absl::StatusOr<Value> ConvertTo(const Parameter& parameter, const Value& given) {
  // Results of a call are the list that a parameter of lists takes, else the first of them.
  const bool takes_list = parameter.type == ParameterType::kTensors || parameter.type == ParameterType::kAny;
  const Value& value = takes_list ? given : given.single();
  if (value.none() && (parameter.optional || parameter.type == ParameterType::kAny)) return value;
  if (!Matches(parameter.type, value)) {
    const auto* const type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return t.type == parameter.type; });
    return absl::InvalidArgumentError(StrCat("expected ", type->expected, " as `", parameter.name, "`, found ",
                                             value.none() ? "none" : value.KindName()));
  }
  if (parameter.type == ParameterType::kString) return Value(*TextOf(value));
  if (parameter.type == ParameterType::kInt) return Value(value.get<Scalar>()->ToInt());
  if (parameter.type == ParameterType::kFloat) return Value(value.get<Scalar>()->ToDouble());
  if (parameter.type == ParameterType::kBool) return Value(value.get<Scalar>()->ToBool());
  return value;
}

Tensor Arguments::tensor(size_t i) const {
  const Tensor* t = values_[i].get<Tensor>();
  return t == nullptr ? Tensor() : *t;
}

Tensors Arguments::tensors(size_t i) const {
  Tensors tensors;
  AppendTensors(values_[i], &tensors);
  return tensors;
}

std::vector<int64_t> Arguments::integers(size_t i) const {
  std::vector<int64_t> numbers;
  if (const Scalar* one = values_[i].get<Scalar>()) numbers.push_back(one->ToInt());
  if (values_[i].list() != nullptr) {
    for (const Value& v : values_[i].list()->values) numbers.push_back(v.get<Scalar>()->ToInt());
  }
  return numbers;
}

std::vector<double> Arguments::reals(size_t i) const {
  std::vector<double> numbers;
  if (const Scalar* one = values_[i].get<Scalar>()) numbers.push_back(one->ToDouble());
  if (values_[i].list() != nullptr) {
    for (const Value& v : values_[i].list()->values) numbers.push_back(v.get<Scalar>()->ToDouble());
  }
  return numbers;
}

}  // namespace hlokit::lazy::script
