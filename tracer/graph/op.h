// SPDX-License-Identifier: Apache-2.0
// The ops that the tracer knows: rows of aten_ops.def.
#ifndef HLOKIT_TRACER_GRAPH_OP_H_
#define HLOKIT_TRACER_GRAPH_OP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hlokit::lazy {

class OpKernelContext;
class BackwardContext;
class LoweringContext;
struct Schema;

enum class Op : uint16_t {
#define ATEN_OP(id, ...) id,
#include "tracer/graph/aten_ops.def"
};

inline constexpr size_t kOpCount = 0
#define ATEN_OP(id, ...) +1
#include "tracer/graph/aten_ops.def"
    ;

enum OpFlag : uint8_t {
  kNoFlags = 0,
  // Numbers are attributes of the node; without it an argument of type Scalar is an operand: a constant or, unless it
  // is 0, 1 or -1, a parameter.
  kScalarAttrs = 1 << 0,
  // The results are views of argument 0.
  kView = 1 << 1,
  // Numbers do not take part in finding the type that they are given: it is that of the tensors.
  kSelfType = 1 << 2,
  // The op has no lowering: it runs on the host.
  kFallback = 1 << 3,
  // Makes a node of the graph that no program calls by this name.
  kInternal = 1 << 4,
  // The result does not depend on the arguments smoothly anywhere: it needs no gradient, as torch has it.
  kNotDifferentiable = 1 << 5,
  // torch's tensors have it as a method of this name, called on `self`; and with a `_` behind the name, a method that
  // writes the result over `self`. Ops that write in place themselves are rows of their own.
  kMethod = 1 << 6,
  kInPlace = 1 << 7,
};

using Kernel = void (*)(OpKernelContext&);
using Lower = void (*)(LoweringContext&);
using Derivative = void (*)(BackwardContext&);

struct OpInfo {
  std::string_view schema_text;
  std::string_view ir;  // symbol of the node, then names of its attributes where they differ from the schema's
  Kernel kernel;
  Lower lower;            // null: the op makes no node of its own
  Derivative derivative;  // null: not differentiable, or made of ops that are
  uint8_t flags;
  std::string_view constraints;  // on arguments; noted in the schema
};

const OpInfo& InfoOf(Op op);
const Schema& SchemaOf(Op op);
// "aten::softmax".
std::string_view SymbolOf(Op op);
// Names under which a node's arguments are printed, by argument.
const std::vector<std::string>& AttrNames(Op op);

// "aten::add.Tensor"; without an overload, the default one or, if there is none, the only one or the first.
std::optional<Op> FindOp(std::string_view name);
// Ops named `name`, any overload: "aten::add".
std::vector<Op> Overloads(std::string_view name);
// "; did you mean `NAME`?" for a name that does not exist; empty if none is near.
std::string DidYouMeanOp(std::string_view name);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_OP_H_
