// SPDX-License-Identifier: Apache-2.0
// Schemas of aten ops: names, types and defaults of arguments, as torch writes them:
//   aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
// Arguments that say where and how a result is stored (layout, device, pin_memory, memory_format, non_blocking,
// generator) are left out of ours.
#ifndef HLOKIT_TRACER_GRAPH_SCHEMA_H_
#define HLOKIT_TRACER_GRAPH_SCHEMA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

enum class ArgType : uint8_t {
  kTensor,
  kTensorList,
  kScalar,
  kInt,
  kFloat,
  kBool,
  kIntList,
  kFloatList,
  kString,
  kDtype,
};

// What an argument of this type is held as.
IValue::Kind KindOf(ArgType type);

// What a tensor must be for the lowerings that take it; they are written in the op table (aten_ops.def).
struct ArgConstraint {
  static constexpr int kAnyRank = 64;
  int min_rank = 0;
  int max_rank = kAnyRank;
  bool integer = false;
  bool rank_of_first = false;  // as many dimensions as argument 0; a number counts as one dimension
  bool type_of_first = false;

  bool operator==(const ArgConstraint&) const = default;
};

struct ArgSpec {
  std::string name;
  ArgType type = ArgType::kTensor;
  bool optional = false;        // None is a value
  bool optional_items = false;  // Tensor?[]
  bool written = false;         // Tensor(a!)
  int list_size = 0;            // int[2]: one number stands for two
  bool has_default = false;
  IValue default_value;
  ArgConstraint constraint;
};

struct Schema {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"; may be empty
  std::vector<ArgSpec> args;
  std::vector<IValue::Kind> kinds;  // of the arguments, other than None
  int positional = 0;               // arguments before the `*`
  int outputs = 1;                  // tensors; lists count as one
  bool list_output = false;

  std::string full_name() const;  // "aten::add.Tensor"
  // The index of the argument called `name`, or -1.
  int Find(std::string_view name) const;
};

absl::StatusOr<Schema> ParseSchema(std::string_view text);
// Records "self:2 mat2:2" in the arguments.
absl::Status ParseConstraints(std::string_view text, Schema* schema);

// A value of one argument as text: `3`, `0.5`, `inf`, `true`, `none`, `"text"`, `(1, -1)`, `[1, 2]`, `f32`.
absl::StatusOr<IValue> ParseArgument(const ArgSpec& spec, std::string_view text);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_SCHEMA_H_
