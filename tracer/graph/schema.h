// SPDX-License-Identifier: Apache-2.0
// Schemas of aten ops: names, types and defaults of arguments in torch's syntax:
//   aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
// Arguments that specify how a result is stored (layout, device, pin_memory, memory_format, non_blocking, generator)
// are omitted.
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

// Returns the IValue kind of an argument of this type.
IValue::Kind KindOf(ArgType type);

// Constraints that lowerings place on a tensor argument, from the op table (aten_ops.def).
struct ArgConstraint {
  static constexpr int kAnyRank = 64;
  int min_rank = 0;
  int max_rank = kAnyRank;
  bool integer = false;
  bool rank_of_first = false;  // same rank as argument 0; a number has rank 1
  bool type_of_first = false;

  bool operator==(const ArgConstraint&) const = default;
};

struct ArgSpec {
  std::string name;
  ArgType type = ArgType::kTensor;
  bool optional = false;        // accepts None
  bool optional_items = false;  // Tensor?[]
  bool written = false;         // Tensor(a!)
  int list_size = 0;            // int[2]: one number is repeated
  bool has_default = false;
  IValue default_value;
  ArgConstraint constraint;
};

// Returns true for a list of sizes, which has a number for each dimension.
inline bool ListsSizes(const ArgSpec& spec) {
  return spec.list_size >= 2 && (spec.name == "output_size" || spec.name == "input_size");
}

struct Schema {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"; may be empty
  std::vector<ArgSpec> args;
  std::vector<IValue::Kind> kinds;  // of the arguments, other than None
  int positional = 0;               // arguments before the `*`
  int outputs = 1;                  // tensors; a list counts as one
  bool list_output = false;

  std::string full_name() const;  // "aten::add.Tensor"
  // Returns the index of the argument `name`, or -1.
  int Find(std::string_view name) const;
};

absl::StatusOr<Schema> ParseSchema(std::string_view text);
// Parses "self:2 mat2:2" into the arguments.
absl::Status ParseConstraints(std::string_view text, Schema* schema);

// Parses the value of one argument: `3`, `0.5`, `inf`, `true`, `none`, `"text"`, `(1, -1)`, `[1, 2]`, `f32`.
absl::StatusOr<IValue> ParseArgument(const ArgSpec& spec, std::string_view text);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_SCHEMA_H_
