// SPDX-License-Identifier: Apache-2.0
#include "tracer/graph/schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "ir/core/str_cat.h"
#include "tracer/graph/string_split.h"

namespace hlokit::lazy {
namespace {

bool ConsumePrefix(std::string_view* s, std::string_view prefix) {
  if (s->substr(0, prefix.size()) != prefix) return false;
  s->remove_prefix(prefix.size());
  return true;
}

std::optional<ArgType> ScalarType(std::string_view name) {
  if (name == "Tensor") return ArgType::kTensor;
  if (name == "Scalar") return ArgType::kScalar;
  if (name == "int" || name == "SymInt") return ArgType::kInt;
  if (name == "float") return ArgType::kFloat;
  if (name == "bool") return ArgType::kBool;
  if (name == "str") return ArgType::kString;
  if (name == "ScalarType") return ArgType::kDtype;
  return std::nullopt;
}

// Converts "Tensor(a -> *)" to "Tensor"; `written` is true if it is mutable.
std::string StripAlias(std::string_view type, bool* written) {
  std::string out;
  for (size_t i = 0; i < type.size(); ++i) {
    if (type[i] == '(') {
      const size_t close = type.find(')', i);
      if (close == std::string_view::npos) break;
      if (type.substr(i, close - i).find('!') != std::string_view::npos) *written = true;
      i = close;
      continue;
    }
    out.push_back(type[i]);
  }
  return out;
}

absl::StatusOr<ArgSpec> ParseArg(std::string_view text) {
  ArgSpec arg;
  std::string_view default_text;
  if (const size_t eq = text.find('='); eq != std::string_view::npos) {
    default_text = Trim(text.substr(eq + 1));
    text = Trim(text.substr(0, eq));
    arg.has_default = true;
  }
  const size_t space = text.rfind(' ');
  if (space == std::string_view::npos) return absl::InvalidArgumentError(StrCat("argument without a name: ", text));
  arg.name = std::string(text.substr(space + 1));
  const std::string type_text = StripAlias(text.substr(0, space), &arg.written);
  std::string_view type = type_text;
  if (!type.empty() && type.back() == '?') {
    arg.optional = true;
    type.remove_suffix(1);
  }
  bool list = false;
  if (!type.empty() && type.back() == ']') {
    const size_t open = type.rfind('[');
    if (open == std::string_view::npos) return absl::InvalidArgumentError(StrCat("unknown type: ", type));
    list = true;
    const std::string_view size = type.substr(open + 1, type.size() - open - 2);
    std::from_chars(size.data(), size.data() + size.size(), arg.list_size);
    type = type.substr(0, open);
    if (!type.empty() && type.back() == '?') {
      arg.optional_items = true;
      type.remove_suffix(1);
    }
  }
  const std::optional<ArgType> scalar = ScalarType(type);
  if (!scalar) return absl::InvalidArgumentError(StrCat("unknown type: ", type));
  arg.type = *scalar;
  if (list) {
    arg.type = *scalar == ArgType::kTensor                                 ? ArgType::kTensorList
               : *scalar == ArgType::kFloat || *scalar == ArgType::kScalar ? ArgType::kFloatList
                                                                           : ArgType::kIntList;
  }
  if (arg.has_default) {
    absl::StatusOr<IValue> value = ParseArgument(arg, default_text);
    if (!value.ok()) return value.status();
    arg.default_value = *std::move(value);
  }
  return arg;
}

// Returns the number as a float; `-0` is an integer in the text, but keeps its sign.
double FloatOf(Scalar number, std::string_view text) {
  return number.Is(0) && text.starts_with("-") ? -0.0 : number.ToDouble();
}

std::optional<Scalar> ParseNumber(std::string_view text) {
  if (text == "true" || text == "True") return Scalar(true);
  if (text == "false" || text == "False") return Scalar(false);
  int64_t i = 0;
  const char* end = text.data() + text.size();
  if (auto [p, error] = std::from_chars(text.data(), end, i); error == std::errc() && p == end) return Scalar(i);
  const std::string copy(text);
  char* stop = nullptr;
  const double d = std::strtod(copy.c_str(), &stop);
  if (copy.empty() || *stop != '\0') return std::nullopt;
  return Scalar(d);
}

}  // namespace

std::string Schema::full_name() const { return overload.empty() ? name : StrCat(name, ".", overload); }

int Schema::Find(std::string_view arg_name) const {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == arg_name) return static_cast<int>(i);
  }
  return -1;
}

absl::StatusOr<IValue> ParseArgument(const ArgSpec& spec, std::string_view text) {
  text = Trim(text);
  const auto error = [&] {
    return absl::InvalidArgumentError(StrCat("invalid value `", text, "` of argument `", spec.name, "`"));
  };
  // `none` is also the name of an approximation.
  if ((text == "none" || text == "None") && (spec.optional || spec.type != ArgType::kString)) {
    if (!spec.optional) return absl::InvalidArgumentError(StrCat(spec.name, " cannot be none"));
    return IValue();
  }
  switch (spec.type) {
    case ArgType::kTensor:
    case ArgType::kTensorList:
      return absl::InvalidArgumentError(StrCat(spec.name, " is a tensor"));
    case ArgType::kScalar:
    case ArgType::kInt:
    case ArgType::kBool:
    case ArgType::kFloat: {
      std::optional<Scalar> s = ParseNumber(text);
      if (!s) {
        // Enumerators of torch in defaults.
        if (text == "Mean") return IValue(int64_t{1});
        return error();
      }
      if (spec.type == ArgType::kInt && s->is_float()) return error();
      if (spec.type == ArgType::kFloat) return IValue(FloatOf(*s, text));
      if (spec.type == ArgType::kScalar && text == "-0") return IValue(-0.0);
      if (spec.type == ArgType::kBool) return IValue(s->ToBool());
      return IValue(*s);
    }
    case ArgType::kIntList:
    case ArgType::kFloatList: {
      std::string_view inner = text;
      const bool brackets = !inner.empty() && (inner.front() == '(' || inner.front() == '[');
      if (brackets) {
        if (inner.size() < 2) return error();
        inner = inner.substr(1, inner.size() - 2);
      }
      IntList ints;
      std::vector<double> floats;
      for (std::string_view part : SplitTopLevel(inner)) {
        std::optional<Scalar> s = ParseNumber(part);
        if (!s || (spec.type == ArgType::kIntList && s->is_float())) return error();
        ints.push_back(s->ToInt());
        floats.push_back(FloatOf(*s, Trim(part)));
      }
      if (spec.type == ArgType::kFloatList) return IValue(std::move(floats));
      if (!brackets && ints.size() == 1 && spec.list_size > 1) ints.assign(spec.list_size, int64_t{ints[0]});
      return IValue(std::move(ints));
    }
    case ArgType::kString:
      if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
        text = text.substr(1, text.size() - 2);
      }
      return IValue(std::string(text));
    case ArgType::kDtype: {
      const std::optional<ElementType> t = ElementTypeFromText(text);
      if (!t || !IsArrayType(*t)) return error();
      return IValue(*t);
    }
  }
  return error();
}

IValue::Kind KindOf(ArgType type) {
  switch (type) {
    case ArgType::kTensor:
      return IValue::Kind::kTensor;
    case ArgType::kTensorList:
      return IValue::Kind::kTensors;
    case ArgType::kScalar:
    case ArgType::kInt:
    case ArgType::kFloat:
    case ArgType::kBool:
      return IValue::Kind::kScalar;
    case ArgType::kIntList:
      return IValue::Kind::kInts;
    case ArgType::kFloatList:
      return IValue::Kind::kFloats;
    case ArgType::kString:
      return IValue::Kind::kString;
    case ArgType::kDtype:
      return IValue::Kind::kType;
  }
  return IValue::Kind::kNone;
}

absl::StatusOr<Schema> ParseSchema(std::string_view text) {
  Schema schema;
  const size_t open = text.find('(');
  const size_t arrow = text.rfind(") -> ");
  if (open == std::string_view::npos || arrow == std::string_view::npos) {
    return absl::InvalidArgumentError(StrCat("not a schema: ", text));
  }
  const std::string_view full = text.substr(0, open);
  const size_t dot = full.find('.');
  schema.name = std::string(full.substr(0, dot));
  if (dot != std::string_view::npos) schema.overload = std::string(full.substr(dot + 1));
  bool after_star = false;
  for (std::string_view part : SplitTopLevel(text.substr(open + 1, arrow - open - 1))) {
    if (part == "*") {
      after_star = true;
      continue;
    }
    absl::StatusOr<ArgSpec> arg = ParseArg(part);
    if (!arg.ok()) return arg.status();
    schema.kinds.push_back(KindOf(arg->type));
    schema.args.push_back(*std::move(arg));
    if (!after_star) ++schema.positional;
  }
  std::string_view result = Trim(text.substr(arrow + 5));
  if (ConsumePrefix(&result, "(") && !result.empty()) {
    result.remove_suffix(1);
    schema.outputs = static_cast<int>(SplitTopLevel(result).size());
  } else {
    schema.list_output = result.size() > 2 && result.substr(result.size() - 2) == "[]";
  }
  return schema;
}

absl::Status ParseConstraints(std::string_view text, Schema* schema) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto error = [&] { return absl::InvalidArgumentError(StrCat("not a constraint on an argument: ", word)); };
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos) return error();
    const int arg = schema->Find(word.substr(0, colon));
    if (arg < 0) return error();
    ArgConstraint& constraint = schema->args[static_cast<size_t>(arg)].constraint;
    for (std::string_view part : SplitTopLevel(word.substr(colon + 1))) {
      if (part == "int") {
        constraint.integer = true;
      } else if (part == "rank") {
        constraint.rank_of_first = true;
      } else if (part == "type") {
        constraint.type_of_first = true;
      } else {
        const char* const stop = part.data() + part.size();
        const auto [low_end, low_error] = std::from_chars(part.data(), stop, constraint.min_rank);
        if (low_error != std::errc()) return error();
        const std::string_view rest(low_end, static_cast<size_t>(stop - low_end));
        constraint.max_rank = constraint.min_rank;
        if (rest == "+") {
          constraint.max_rank = ArgConstraint::kAnyRank;
        } else if (!rest.empty()) {
          const auto [high_end, high_error] = std::from_chars(rest.data() + 1, stop, constraint.max_rank);
          if (rest[0] != '-' || high_error != std::errc() || high_end != stop) return error();
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace hlokit::lazy
