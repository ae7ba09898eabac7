// SPDX-License-Identifier: Apache-2.0
// torch.nn.init: sets the values of tensors in place, outside of autograd, and returns the tensor. Names, arguments and
// defaults are torch's; the numbers are not torch's, but the same for equal seeds on every platform.
//
//   nn::init::manual_seed(1);
//   nn::init::kaiming_normal_(weight, 0, nn::init::FanMode::kFanOut, "relu");
//
// Values take no memory until something reads them. Errors, in torch's words, go to the tracer, and the result is an
// undefined tensor.
#ifndef HLOKIT_TRACER_NN_INIT_H_
#define HLOKIT_TRACER_NN_INIT_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tracer/graph/tensor.h"

namespace hlokit::lazy::nn::init {

// Sets the seed of this thread's further calls, each of which has a stream of its own. Without it the seed is 0.
void manual_seed(uint64_t seed);

enum class FanMode : uint8_t { kFanIn, kFanOut };

// Returns the recommended gain: for linear, conv1d to conv3d, conv_transpose1d to 3d, sigmoid, tanh, relu, leaky_relu
// (of this slope), selu.
absl::StatusOr<double> calculate_gain(std::string_view nonlinearity, double param = 0.01);
// Returns the numbers of inputs and outputs of a layer with a weight of these dimensions, at least two.
std::pair<double, double> FansOf(absl::Span<const int64_t> dims);

Tensor uniform_(const Tensor& tensor, double a = 0, double b = 1);
Tensor normal_(const Tensor& tensor, double mean = 0, double std = 1);
// Requires: a < b.
Tensor trunc_normal_(const Tensor& tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
Tensor constant_(const Tensor& tensor, double value);
Tensor ones_(const Tensor& tensor);
Tensor zeros_(const Tensor& tensor);
// The identity, of a matrix.
Tensor eye_(const Tensor& tensor);
// Weights of a convolution that passes its inputs on, as many channels of each group as it can.
Tensor dirac_(const Tensor& tensor, int64_t groups = 1);
Tensor xavier_uniform_(const Tensor& tensor, double gain = 1);
Tensor xavier_normal_(const Tensor& tensor, double gain = 1);
Tensor kaiming_uniform_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::kFanIn,
                        std::string_view nonlinearity = "leaky_relu");
Tensor kaiming_normal_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::kFanIn,
                       std::string_view nonlinearity = "leaky_relu");
// A random (semi-)orthogonal matrix; dimensions after the first are flattened.
Tensor orthogonal_(const Tensor& tensor, double gain = 1);
// A matrix of normal numbers with this share of zeros in each column, rounded up.
Tensor sparse_(const Tensor& tensor, double sparsity, double std = 0.01);

}  // namespace hlokit::lazy::nn::init

#endif  // HLOKIT_TRACER_NN_INIT_H_
