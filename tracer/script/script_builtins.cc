// SPDX-License-Identifier: Apache-2.0
// Functions of scripts without a prefix: of numbers, lists, sizes of tensors, parameters of modules.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tracer/script/native_functions.h"
#include "tracer/script/script_objects.h"
#include "tracer/script/script_range.h"

namespace hlokit::lazy::script {
namespace {

absl::StatusOr<Value> MakeRange(RunContext&, const Arguments& a) {
  const int64_t step = a.integer(2);
  if (step == 0) return absl::InvalidArgumentError("the step of a range cannot be 0");
  const int64_t first = a.none(1) ? 0 : a.integer(0), stop = a.integer(a.none(1) ? 0 : 1);
  return Value(std::static_pointer_cast<Object>(std::make_shared<Range>(first, stop, step)));
}

absl::StatusOr<Value> Length(RunContext&, const Arguments& a) {
  if (a[0].list() != nullptr) return Value(static_cast<int64_t>(a[0].list()->values.size()));
  const Tensor t = a.tensor(0);
  if (!t.defined()) return absl::InvalidArgumentError(StrCat("expected a list or a tensor, found ", a[0].KindName()));
  if (t.dim() == 0) return absl::InvalidArgumentError("len() of a 0-d tensor");
  return Value(t.size(0));
}

absl::StatusOr<Value> Size(RunContext&, const Arguments& a) {
  const Tensor t = a.tensor(0);
  if (!a.none(1)) {
    const int64_t rank = t.dim(), dim = a.integer(1);
    if (dim >= -rank && dim < rank) return Value(t.size(dim));
    return absl::InvalidArgumentError(
        StrCat("Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1, "], but got ", dim, ")"));
  }
  std::vector<Value> sizes;
  for (int64_t size : t.sizes()) sizes.emplace_back(size);
  return Value::ListOf(std::move(sizes));
}

absl::StatusOr<Value> ToInteger(RunContext&, const Arguments& a) {
  if (!std::isfinite(a.real(0))) return absl::InvalidArgumentError("cannot convert inf or nan to an integer");
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (a.number(0).is_float() && (a.real(0) >= kLimit || a.real(0) < -kLimit)) {
    return absl::InvalidArgumentError("integer overflow");
  }
  return Value(a.integer(0));
}
absl::StatusOr<Value> ToFloat(RunContext&, const Arguments& a) { return Value(a.real(0)); }

absl::StatusOr<Value> Absolute(RunContext&, const Arguments& a) {
  if (a.number(0).is_float()) return Value(std::fabs(a.real(0)));
  if (a.integer(0) == std::numeric_limits<int64_t>::min()) return absl::InvalidArgumentError("integer overflow");
  return Value(std::abs(a.integer(0)));
}

template <bool kMax>
absl::StatusOr<Value> Extreme(RunContext&, const Arguments& a) {
  const std::vector<Value>& values = a[0].list()->values;
  const Value* best = nullptr;
  for (const Value& value : values) {
    const Scalar* number = value.get<Scalar>();
    if (number == nullptr) return absl::InvalidArgumentError(StrCat("expected numbers, found ", value.KindName()));
    const double v = number->ToDouble(), b = best == nullptr ? v : best->get<Scalar>()->ToDouble();
    if (best == nullptr || (kMax ? v > b : v < b)) best = &value;
  }
  if (best == nullptr) return absl::InvalidArgumentError("expected at least one number");
  return *best;
}

absl::StatusOr<Value> Parameters(RunContext&, const Arguments& a) {
  std::vector<Value> list;
  for (const nn::NamedTensor& p : a[0].object<Module>()->Parameters()) list.emplace_back(p.tensor);
  return Value::ListOf(std::move(list));
}

absl::StatusOr<Value> ParameterNamed(RunContext&, const Arguments& a) {
  const std::vector<nn::NamedTensor> state = a[0].object<Module>()->State();
  std::vector<std::string_view> names;
  for (const nn::NamedTensor& t : state) {
    if (t.name == a.text(1)) return Value(t.tensor);
    names.push_back(t.name);
  }
  return absl::InvalidArgumentError(
      StrCat("the module has no parameter `", a.text(1), "`", DidYouMeanSuffix(a.text(1), names)));
}

absl::StatusOr<Value> Input(RunContext& context, const Arguments& a) {
  if (context.inputs == nullptr) return absl::InvalidArgumentError("there are no inputs (--inputs)");
  Context types;
  const std::optional<int64_t> count = a.none(2) ? std::nullopt : std::optional<int64_t>(a.integer(2));
  absl::StatusOr<Literal> value = context.inputs->Read(a.text(0), a.integer(1), count, context.max_input_bytes, &types);
  if (!value.ok()) return value.status();
  return Value(context.tracer->FromLiteral(*std::move(value)));
}

constexpr NativeRow kBuiltins[] = {
    {"range(int start, int? stop=none, int step=1)", MakeRange},
    {"len(any x)", Length},
    {"size(Tensor t, int? dim=none)", Size},
    {"int(number x)", ToInteger},
    {"float(number x)", ToFloat},
    {"abs(number x)", Absolute},
    {"min(any *numbers)", Extreme<false>},
    {"max(any *numbers)", Extreme<true>},
    {"parameters(Module module)", Parameters},
    {"parameter(Module module, str name)", ParameterNamed},
    {"input(str name, int first=0, int? count=none)", Input, true},
};

}  // namespace

void AddBuiltins(std::vector<NativeFunction>* functions) {
  for (const NativeRow& row : kBuiltins) AddRow(row, functions);
}

}  // namespace hlokit::lazy::script
