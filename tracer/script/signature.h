// SPDX-License-Identifier: Apache-2.0
// Parameters of functions of the script language: of those that it has and of those that scripts define. A call's
// arguments are assigned to parameters before the script runs, and converted when it runs.
#ifndef HLOKIT_TRACER_SCRIPT_SIGNATURE_H_
#define HLOKIT_TRACER_SCRIPT_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tracer/script/script_value.h"

namespace hlokit::lazy::script {

enum class ParameterType : uint8_t {
  kAny,
  kTensor,
  kTensors,  // a list of tensors, or one
  kNumber,
  kInt,
  kFloat,
  kBool,
  kString,
  kInts,  // a list of integers, or one
  kFloats,
  kDtype,
  kModule,
  kOptimizer,
  kScheduler,
  kMesh,
};

struct Parameter {
  std::string name;
  ParameterType type = ParameterType::kAny;
  bool optional = false;  // accepts none
  bool has_default = false;
  Value default_value;
};

struct Signature {
  std::string name;
  std::vector<Parameter> parameters;
  bool variadic = false;  // the last parameter takes all further arguments, as a list

  // Returns the index of a parameter, or -1.
  int Find(std::string_view parameter) const;
};

// Parses "nn::Linear(int in_features, int out_features, bool bias=true)": types any, Tensor, Tensor[], number, int,
// float, bool, str, int[], float[], dtype, Module, Optimizer, Scheduler, Mesh; `?` after a type accepts none; a last
// parameter `*modules` takes all further arguments.
absl::StatusOr<Signature> ParseSignature(std::string_view text);

// Returns the value as the parameter's type, or an error that says what was expected.
absl::StatusOr<Value> ConvertTo(const Parameter& parameter, const Value& value);

// A value for each parameter, after ConvertTo: the accessors require the parameter's type.
class Arguments {
 public:
  explicit Arguments(absl::Span<const Value> values) : values_(values) {}

  const Value& operator[](size_t i) const { return values_[i]; }
  bool none(size_t i) const { return values_[i].none(); }
  // Returns an undefined tensor for none.
  Tensor tensor(size_t i) const;
  Tensors tensors(size_t i) const;
  Scalar number(size_t i) const { return *values_[i].get<Scalar>(); }
  int64_t integer(size_t i) const { return number(i).ToInt(); }
  double real(size_t i) const { return number(i).ToDouble(); }
  bool boolean(size_t i) const { return number(i).ToBool(); }
  const std::string& text(size_t i) const { return *values_[i].get<std::string>(); }
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> reals(size_t i) const;
  size_t size() const { return values_.size(); }

 private:
  absl::Span<const Value> values_;
};

// Returns the text of a string or a word; null for other values.
const std::string* TextOf(const Value& value);

}  // namespace hlokit::lazy::script

#endif  // HLOKIT_TRACER_SCRIPT_SIGNATURE_H_
