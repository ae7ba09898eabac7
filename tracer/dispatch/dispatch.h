// SPDX-License-Identifier: Apache-2.0
// The way into ops: checks arguments, counts, runs the kernel, notes what autograd needs.
#ifndef HLOKIT_TRACER_DISPATCH_DISPATCH_H_
#define HLOKIT_TRACER_DISPATCH_DISPATCH_H_

#include <tuple>
#include <utility>

#include "tracer/graph/op.h"
#include "tracer/graph/value.h"

namespace hlokit::lazy {

// Runs `op`. Arguments left out at the end have their defaults. After an error all outputs are undefined.
Outputs Dispatch(Op op, Args&& args);

// The same with arguments as C++ values; gives the first output.
template <typename... A>
Tensor InvokeOp(Op op, A&&... args) {
  Args list;
  if constexpr (sizeof...(args) > kArgsInline) list.reserve(sizeof...(args));
  (list.emplace_back(std::forward<A>(args)), ...);
  Outputs outputs = Dispatch(op, std::move(list));
  return outputs.empty() ? Tensor() : std::move(outputs[0]);
}
template <typename... A>
Outputs InvokeOpMultiOutput(Op op, A&&... args) {
  Args list;
  if constexpr (sizeof...(args) > kArgsInline) list.reserve(sizeof...(args));
  (list.emplace_back(std::forward<A>(args)), ...);
  return Dispatch(op, std::move(list));
}

// Results as C++ has them: of an op that gives a list, and of one that gives N tensors.
inline Tensors ListOf(Outputs outputs) { return Tensors(outputs.begin(), outputs.end()); }
template <size_t N>
auto TupleOf(Outputs outputs) {
  outputs.resize(N);
  return [&]<size_t... I>(std::index_sequence<I...>) { return std::make_tuple(std::move(outputs[I])...); }
  (std::make_index_sequence<N>());
}

// Gives a tensor a new value in place, converted to its type: through views to what they look at, and on from there.
// `value` has the tensor's sizes.
void WriteInPlace(const Tensor& tensor, Tensor value);
// Brings a view up to date after writes through others.
void RefreshView(const Tensor& tensor);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_DISPATCH_DISPATCH_H_
