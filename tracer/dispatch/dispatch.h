// SPDX-License-Identifier: Apache-2.0
// Entry point of ops: checks arguments, counts, runs the kernel, records autograd history.
#ifndef HLOKIT_TRACER_DISPATCH_DISPATCH_H_
#define HLOKIT_TRACER_DISPATCH_DISPATCH_H_

#include <concepts>
#include <source_location>
#include <tuple>
#include <utility>

#include "tracer/graph/op.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// An op with the line that calls it. Conversions have the line of the call.
struct LocatedOp {
  LocatedOp(Op o, const std::source_location& l = std::source_location::current()) : op(o), location(l) {}  // NOLINT
  Op op;
  std::source_location location;
};
// The same with the first argument of a function or an operator, which takes no other arguments.
struct LocatedTensor {
  LocatedTensor(const Tensor& t, const std::source_location& l = std::source_location::current())  // NOLINT
      : tensor(t), location(l) {}
  const Tensor& tensor;
  std::source_location location;
};

// Runs `op`. Omitted trailing arguments have their defaults. After an error all outputs are undefined. What it records
// is attributed to the line of the call, or to that of an enclosing one (ScopedSourceLocation).
Outputs Dispatch(const LocatedOp& call, Args&& args);

// Runs `op` with C++ values as arguments and returns the first output.
template <typename... A>
Tensor InvokeOp(const LocatedOp& op, A&&... args) {
  Args list;
  if constexpr (sizeof...(args) > kArgsInline) list.reserve(sizeof...(args));
  (list.emplace_back(std::forward<A>(args)), ...);
  Outputs outputs = Dispatch(op, std::move(list));
  return outputs.empty() ? Tensor() : std::move(outputs[0]);
}
template <std::same_as<LocatedTensor> T, typename... A>
Tensor InvokeOp(Op op, const T& first, A&&... args) {
  return InvokeOp(LocatedOp(op, first.location), first.tensor, std::forward<A>(args)...);
}
template <typename... A>
Outputs InvokeOpMultiOutput(const LocatedOp& op, A&&... args) {
  Args list;
  if constexpr (sizeof...(args) > kArgsInline) list.reserve(sizeof...(args));
  (list.emplace_back(std::forward<A>(args)), ...);
  return Dispatch(op, std::move(list));
}

// Converts results to C++ types, for an op that returns a list or N tensors.
inline Tensors ListOf(Outputs outputs) { return Tensors(outputs.begin(), outputs.end()); }
template <size_t N>
auto TupleOf(Outputs outputs) {
  outputs.resize(N);
  return [&]<size_t... I>(std::index_sequence<I...>) { return std::make_tuple(std::move(outputs[I])...); }
  (std::make_index_sequence<N>());
}

// Writes a new value to a tensor in place, converted to its type, and through views to their bases. `value` has the
// tensor's sizes.
void WriteInPlace(const LocatedTensor& tensor, Tensor value);
// Makes results of an op, which are not its first argument itself, views of it.
void AttachViews(Op op, const Args& args, const Outputs& outputs);
// Updates a view after writes through other tensors.
void RefreshView(const Tensor& tensor);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_DISPATCH_DISPATCH_H_
