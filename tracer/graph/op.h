// SPDX-License-Identifier: Apache-2.0
// The ops of the tracer: rows of aten_ops.def.
#ifndef HLOKIT_TRACER_GRAPH_OP_H_
#define HLOKIT_TRACER_GRAPH_OP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/graph/graph_fwd.h"
#include "tracer/graph/scalar.h"

namespace hlokit::lazy {

enum class ArgType : uint8_t;

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
  // Numbers are attributes of the node; otherwise an argument of type Scalar is an operand: a constant or, unless it is
  // 0, 1 or -1, a parameter.
  kScalarAttrs = 1 << 0,
  // The results are views of argument 0.
  kView = 1 << 1,
  // Numbers do not take part in type promotion: they get the type of the tensors.
  kSelfType = 1 << 2,
  // The op has no lowering and runs on the host.
  kFallback = 1 << 3,
  // A node of the graph that programs do not call by name.
  kInternal = 1 << 4,
  // The result has no gradient, as in torch.
  kNotDifferentiable = 1 << 5,
  // Tensor has a method of this name, called on `self`; kInPlace adds a method with a trailing `_` that writes the
  // result to `self`. Ops that write in place themselves have rows of their own.
  kMethod = 1 << 6,
  kInPlace = 1 << 7,
};

using Kernel = void (*)(OpKernelContext&);
using Lower = void (*)(LoweringContext&);
using Derivative = void (*)(BackwardContext&);

struct OpInfo {
  std::string_view schema_text;
  std::string_view ir;  // symbol of the node, then attribute names that differ from the schema's
  Kernel kernel;
  Lower lower;            // null: the op makes no node
  Derivative derivative;  // null: not differentiable, or composed of ops that are
  uint8_t flags;
  std::string_view constraints;  // on arguments; parsed into the schema
};

const OpInfo& InfoOf(Op op);
const Schema& SchemaOf(Op op);
// Returns "aten::softmax".
std::string_view SymbolOf(Op op);
// Returns the names under which a node's arguments are printed, by argument.
const std::vector<std::string>& AttrNames(Op op);

// Returns the op of the nodes that `op` records: the first one with the same symbol, lowering and form of arguments, so
// that nodes with the same text are the same: add.Scalar records nodes of add.Tensor.
Op NodeOpOf(Op op);

// Returns a number as an attribute of a node: 1, 1.0 and true are the same, except in nodes of the tracer itself, which
// have floats and integers as given.
Scalar AttributeNumber(Op op, ArgType type, Scalar number);

// Finds "aten::add.Tensor". Without an overload finds the default one or, if there is none, the first.
std::optional<Op> FindOp(std::string_view name);
// Returns all overloads of `name`: "aten::add".
std::vector<Op> Overloads(std::string_view name);
// Returns "; did you mean `NAME`?" for an unknown name, or "" if no name is similar.
std::string DidYouMeanOp(std::string_view name);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_OP_H_
