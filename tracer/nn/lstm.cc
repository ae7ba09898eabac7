// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/lstm.h"

#include <string>

#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/scope.h"

namespace hlokit::lazy::nn {

Lstm::Lstm(const ModuleScope& s, int64_t input_size, int64_t hidden_size, const LstmOptions& options)
    : hidden_size_(hidden_size),
      state_size_(options.proj_size > 0 ? options.proj_size : hidden_size),
      options_(options) {
  const int64_t directions = options_.bidirectional ? 2 : 1, rows = 4 * hidden_size;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    const int64_t features = layer == 0 ? input_size : state_size_ * directions;
    for (int64_t d = 0; d < directions; ++d) {
      const std::string suffix = StrCat("_l", layer, d == 0 ? "" : "_reverse");
      const auto add = [&](std::string_view name, Dims sizes, ParameterKind kind) {
        parameters_.push_back(s.Parameter(StrCat(name, suffix), sizes, kind));
      };
      add("weight_ih", {rows, features}, ParameterKind::kWeight);
      add("weight_hh", {rows, state_size_}, ParameterKind::kWeight);
      if (options_.bias) {
        add("bias_ih", {rows}, ParameterKind::kBias);
        add("bias_hh", {rows}, ParameterKind::kBias);
      }
      if (options_.proj_size > 0) add("weight_hr", {state_size_, hidden_size}, ParameterKind::kWeight);
    }
  }
}

LstmOutput Lstm::operator()(const LocatedTensor& located_input, bool training, const Tensor& h_0,
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
  const Tensor h = initial(h_0, state_size_), c = initial(c_0, hidden_size_);
  const Outputs out =
      InvokeOpMultiOutput(Op::lstm_input, x, Tensors{h, c}, parameters_, options_.bias, options_.num_layers,
                          options_.dropout, training, options_.bidirectional, batched && options_.batch_first);
  const auto result = [&](const Tensor& t) { return batched || !t.defined() ? t : Squeeze(t, 1); };
  return {result(out[0]), result(out[1]), result(out[2])};
}

}  // namespace hlokit::lazy::nn
