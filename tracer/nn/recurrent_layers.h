// SPDX-License-Identifier: Apache-2.0
// torch.nn.RNN, LSTM and GRU, with the names of their parameters: weight_ih_l0, ..., bias_hh_l1_reverse.
#ifndef HLOKIT_TRACER_NN_RECURRENT_LAYERS_H_
#define HLOKIT_TRACER_NN_RECURRENT_LAYERS_H_

#include <cstdint>

#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/op.h"
#include "tracer/graph/tensor.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::nn {

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // between layers
  bool bidirectional = false;
  int64_t proj_size = 0;  // of an LSTM's hidden state; 0: not projected
};

struct RecurrentOutput {
  Tensor output;
  Tensor h_n;
  Tensor c_n;  // of an LSTM
};

class RecurrentLayer {
 public:
  // input: [steps, batch, features], [batch, steps, features] with batch_first, or [steps, features]. Initial states
  // [layers * directions, batch, hidden], without the batch for an input that lacks it; undefined: zeros.
  RecurrentOutput operator()(const LocatedTensor& input, bool training, const Tensor& h_0 = Tensor(),
                             const Tensor& c_0 = Tensor()) const;
  const Tensors& parameters() const { return parameters_; }

 protected:
  // gates: rows of the weights for each element of the hidden state.
  RecurrentLayer(const ModuleScope& s, Op op, int64_t gates, int64_t input_size, int64_t hidden_size,
                 const RecurrentOptions& options);

 private:
  Op op_;
  int64_t hidden_size_;
  RecurrentOptions options_;
  Tensors parameters_;
};

enum class Nonlinearity { kTanh, kRelu };

class Rnn : public RecurrentLayer {
 public:
  Rnn(const ModuleScope& s, int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {},
      Nonlinearity nonlinearity = Nonlinearity::kTanh)
      : RecurrentLayer(s, nonlinearity == Nonlinearity::kTanh ? Op::rnn_tanh_input : Op::rnn_relu_input, 1, input_size,
                       hidden_size, options) {}
};

class Lstm : public RecurrentLayer {
 public:
  Lstm(const ModuleScope& s, int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentLayer(s, Op::lstm_input, 4, input_size, hidden_size, options) {}
};

class Gru : public RecurrentLayer {
 public:
  Gru(const ModuleScope& s, int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentLayer(s, Op::gru_input, 3, input_size, hidden_size, options) {}
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_RECURRENT_LAYERS_H_
