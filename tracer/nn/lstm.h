// SPDX-License-Identifier: Apache-2.0
// torch.nn.LSTM, with the names of its parameters.
#ifndef HLOKIT_TRACER_NN_LSTM_H_
#define HLOKIT_TRACER_NN_LSTM_H_

#include <cstdint>

#include "tracer/dispatch/dispatch.h"
#include "tracer/graph/tensor.h"
#include "tracer/nn/parameter_registry.h"

namespace hlokit::lazy::nn {

struct LstmOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // between layers
  bool bidirectional = false;
  int64_t proj_size = 0;  // of the hidden state; 0: not projected
};

struct LstmOutput {
  Tensor output;
  Tensor h_n;
  Tensor c_n;
};

class Lstm {
 public:
  Lstm(const ModuleScope& s, int64_t input_size, int64_t hidden_size, const LstmOptions& options = {});
  // input: [steps, batch, features], [batch, steps, features] with batch_first, or [steps, features]. Initial states
  // [layers * directions, batch, hidden], without the batch for an input that lacks it; undefined: zeros.
  LstmOutput operator()(const LocatedTensor& input, bool training, const Tensor& h_0 = Tensor(),
                        const Tensor& c_0 = Tensor()) const;
  const Tensors& parameters() const { return parameters_; }

 private:
  int64_t hidden_size_;
  int64_t state_size_;
  LstmOptions options_;
  Tensors parameters_;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_LSTM_H_
