// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/recurrent_layers.h"

#include <string>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/scope.h"

namespace hlokit::lazy::nn {

RecurrentLayer::RecurrentLayer(const ModuleScope& s, Op op, int64_t gates, int64_t input_size, int64_t hidden_size,
                               const RecurrentOptions& options)
    : op_(op), hidden_size_(hidden_size), options_(options) {
  if (op_ != Op::lstm_input) options_.proj_size = 0;
  const int64_t directions = options_.bidirectional ? 2 : 1;
  const int64_t state = options_.proj_size > 0 ? options_.proj_size : hidden_size, rows = gates * hidden_size;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    const int64_t features = layer == 0 ? input_size : state * directions;
    for (int64_t d = 0; d < directions; ++d) {
      const std::string suffix = StrCat("_l", layer, d == 0 ? "" : "_reverse");
      const auto add = [&](std::string_view name, Dims sizes, ParameterKind kind) {
        parameters_.push_back(s.Parameter(StrCat(name, suffix), sizes, kind));
      };
      add("weight_ih", {rows, features}, ParameterKind::kWeight);
      add("weight_hh", {rows, state}, ParameterKind::kWeight);
      if (options_.bias) {
        add("bias_ih", {rows}, ParameterKind::kBias);
        add("bias_hh", {rows}, ParameterKind::kBias);
      }
      if (options_.proj_size > 0) add("weight_hr", {state, hidden_size}, ParameterKind::kWeight);
    }
  }
}

RecurrentOutput RecurrentLayer::operator()(const LocatedTensor& located_input, bool training, const Tensor& h_0,
                                           const Tensor& c_0) const {
  const ScopedSourceLocation site(located_input.location);
  const Tensor& input = located_input.tensor;
  const bool batched = input.dim() != 2;
  const int64_t batch_dim = batched && options_.batch_first ? 0 : 1;
  const Tensor x = batched ? input : Unsqueeze(input, batch_dim);
  const int64_t cells = options_.num_layers * (options_.bidirectional ? 2 : 1);
  const auto initial = [&](const Tensor& given, int64_t size) {
    if (!given.defined()) return InvokeOp(Op::new_zeros, x, IntList{cells, x.size(batch_dim), size});
    return batched ? given : Unsqueeze(given, 1);
  };
  const bool lstm = op_ == Op::lstm_input;
  const Tensor h = initial(h_0, options_.proj_size > 0 ? options_.proj_size : hidden_size_);
  const IValue states = lstm ? IValue(Tensors{h, initial(c_0, hidden_size_)}) : IValue(h);
  const Outputs out =
      InvokeOpMultiOutput(op_, x, states, parameters_, options_.bias, options_.num_layers, options_.dropout, training,
                          options_.bidirectional, batched && options_.batch_first);
  const auto result = [&](const Tensor& t) { return batched || !t.defined() ? t : Squeeze(t, 1); };
  return {result(out[0]), result(out[1]), lstm ? result(out[2]) : Tensor()};
}

}  // namespace hlokit::lazy::nn
