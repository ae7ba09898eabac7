// SPDX-License-Identifier: Apache-2.0
// Modules against values of torch 1.13 (in f64): the first elements of each result, and the sum of all, each multiplied
// by its position.
#include <string>
#include <vector>

#include "tests/unit/tracer/tracing.h"
#include "tracer/graph/deterministic_init.h"
#include "tracer/nn/containers.h"
#include "tracer/nn/layers.h"
#include "tracer/nn/multihead_attention.h"
#include "tracer/nn/recurrent_layers.h"

namespace hlokit::lazy::nn {
namespace {

class ModulesTest : public TracingTest {
 protected:
  // Parameter k has the values of stream k, halved, in f32.
  ModulesTest()
      : registry(&tracer, ElementType::kF64, [](const ParameterSpec& spec, Literal* out) {
          const absl::Span<float> values = out->values<float>();
          for (size_t i = 0; i < values.size(); ++i) {
            values[i] =
                static_cast<float>(HashedValue(static_cast<uint32_t>(spec.number), static_cast<uint32_t>(i)) * 0.5);
          }
        }) {}

  ModuleScope Scope() { return ModuleScope(&registry); }
  Tensor Stream(uint32_t k, Dims dims) {
    Literal literal = Literal::Zeros(tracer.device()->ArrayShape(ElementType::kF64, dims));
    const absl::Span<double> values = literal.values<double>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = HashedValue(k, static_cast<uint32_t>(i));
    return tracer.FromLiteral(std::move(literal));
  }
  Tensor Leaf(uint32_t k, Dims dims) { return Tensor(Stream(k, dims)).set_requires_grad(true); }
  Tensor Mask(Dims dims, const std::vector<uint8_t>& values) {
    Literal literal = Literal::Zeros(tracer.device()->ArrayShape(ElementType::kPred, dims));
    std::copy(values.begin(), values.end(), literal.values<uint8_t>().begin());
    return tracer.FromLiteral(std::move(literal));
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const NamedTensor& t : registry.state()) names.push_back(t.name);
    return names;
  }

  void Expect(const Tensor& t, const std::vector<double>& first, double sum, size_t count) {
    const std::vector<double> got = Values(t);
    ASSERT_EQ(got.size(), count);
    double total = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (i < first.size()) {
        EXPECT_NEAR(got[i], first[i], 2e-6) << i;
      }
      total += got[i] * static_cast<double>(i + 1);
    }
    EXPECT_NEAR(total, sum, 1e-5 * static_cast<double>(count));
  }
  // The loss is the sum of squares of the output and of the states times stream 50.
  void RunBackward(const RecurrentOutput& out) {
    Tensor loss = Sum(out.output * out.output) + Sum(out.h_n * Stream(50, out.h_n.sizes()));
    if (out.c_n.defined()) loss = loss + Sum(out.c_n * Stream(50, out.c_n.sizes()));
    ASSERT_TRUE(loss.Backward().ok());
  }
  void RunBackward(const Tensor& y) { ASSERT_TRUE(Sum(y * y * Stream(60, y.sizes())).Backward().ok()); }

  ParameterRegistry registry;
};

TEST_F(ModulesTest, Rnn) {
  const Rnn rnn(Scope(), 3, 2, {.num_layers = 2});
  const Tensor x = Leaf(100, {4, 2, 3});
  const RecurrentOutput out = rnn(x, true);
  RunBackward(out);
  Expect(out.output, {-0.698447634, 0.686802639, -0.698819119, 0.671678641, -0.754569862}, -9.39243931, 16);
  Expect(out.h_n, {-0.319483687, 0.202172374, -0.124348405, 0.141973688}, -1.16338059, 8);
  Expect(x.grad(), {0.18172025, -0.1196907, -0.116472407, 0.125288681}, 1.0970853, 24);
  Expect(rnn.parameters()[0].grad(), {0.301079233, 0.519007532, -0.0156764763}, 5.30945906, 6);
  EXPECT_EQ(Names(), (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                               "weight_ih_l1", "weight_hh_l1", "bias_ih_l1", "bias_hh_l1"}));
}

TEST_F(ModulesTest, RnnOfRelusBothWays) {
  const Rnn rnn(Scope(), 3, 2, {.bias = false, .batch_first = true, .bidirectional = true}, Nonlinearity::kRelu);
  const Tensor x = Leaf(100, {2, 4, 3});
  const RecurrentOutput out = rnn(x, false);
  RunBackward(out);
  Expect(out.output, {0, 0, 0, 0, 0.262556869, 0}, 43.3474466, 32);
  Expect(out.h_n, {}, 2.144541, 8);
  Expect(x.grad(), {0, 0, 0, -0.337942462, -0.0683437606, -0.249608117}, -14.2714366, 24);
  Expect(rnn.parameters()[0].grad(), {-0.312938624, -0.483537402, -0.798209353}, -2.47715782, 6);
}

TEST_F(ModulesTest, LstmWithProjections) {
  const Lstm lstm(Scope(), 3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2});
  const Tensor x = Leaf(100, {4, 2, 3});
  const RecurrentOutput out = lstm(x, true, Stream(101, {4, 2, 2}), Stream(102, {4, 2, 4}));
  RunBackward(out);
  Expect(out.output, {-0.0411582005, -0.038005005, 0.104426894, -0.11041286}, 4.05191211, 32);
  Expect(out.h_n, {0.112872276, 0.0646513817, 0.120929326, 0.0842629734}, 0.177737627, 16);
  Expect(out.c_n, {-0.469448579, 0.523619869, -0.235067989, -0.442612496}, -15.3495036, 32);
  Expect(x.grad(), {0.142078129, -0.133711827, -0.185007975, 0.333579395}, 9.74885634, 24);
  Expect(lstm.parameters()[0].grad(), {-0.0287182508, -0.0423203891, -0.0654105308}, 2.44878609, 48);
  EXPECT_EQ(Names()[9], "weight_hr_l0_reverse");
}

TEST_F(ModulesTest, LstmOfOneSequence) {
  const Lstm lstm(Scope(), 3, 2, {.batch_first = true});
  const Tensor x = Leaf(100, {4, 3});
  const RecurrentOutput out = lstm(x, true, Stream(101, {1, 2}), Stream(102, {1, 2}));
  RunBackward(out);
  Expect(out.output, {-0.0114202303, 0.0664098344, 0.156634493, 0.00600892958}, 3.96205248, 8);
  Expect(out.c_n, {0.397250413, 0.0202903837}, 0.43783118, 2);
  Expect(x.grad(), {-0.0544397191, 0.0661542904, 0.0332091023}, 2.93869218, 12);
}

TEST_F(ModulesTest, Gru) {
  const Gru gru(Scope(), 3, 2, {.batch_first = true});
  const Tensor x = Leaf(100, {2, 4, 3});
  const RecurrentOutput out = gru(x, true, Stream(101, {1, 2, 2}));
  RunBackward(out);
  Expect(out.output, {0.22709724, 0.107621312, 0.397620909, 0.00339940645}, 34.7252401, 16);
  Expect(out.h_n, {0.432719694, 0.00598499009, 0.417484997, 0.090802448}, 2.06035446, 4);
  Expect(x.grad(), {-0.0446023894, 0.0551493618, -0.039619154}, 4.66078459, 24);
  Expect(gru.parameters()[0].grad(), {-0.0064483466, -0.0213842117, -0.0172853193}, -37.4865084, 18);
}

TEST_F(ModulesTest, MultiheadAttention) {
  const MultiheadAttention attention(Scope(), 4, 2);
  const Tensor q = Leaf(100, {3, 2, 4});
  const AttentionOutput out = attention(q, Stream(101, {5, 2, 4}), Stream(102, {5, 2, 4}), true);
  ASSERT_TRUE(Sum(out.output * out.output).Backward().ok());
  Expect(out.output, {-0.066041922, 0.573422748, 0.50505623, 0.406416133}, 115.296264, 24);
  Expect(out.weights, {0.191560082, 0.20391045, 0.208667834, 0.198969111}, 92.9953416, 30);
  Expect(q.grad(), {0.0144929285, 0.014799516, -0.0120572323, 0.0139794297}, -1.22937298, 24);
  EXPECT_EQ(Names(), (std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}));
}

TEST_F(ModulesTest, MultiheadAttentionWithMasksAndAddedKeys) {
  const MultiheadAttention attention(
      Scope(), 4, 2, {.add_bias_kv = true, .add_zero_attn = true, .kdim = 3, .vdim = 2, .batch_first = true});
  const Tensor q = Leaf(100, {2, 3, 4});
  const Tensor padding = Mask({2, 5}, {0, 1, 0, 0, 1, 0, 0, 0, 1, 1});
  const AttentionOutput out = attention(q, Stream(101, {2, 5, 3}), Stream(102, {2, 5, 2}), false,
                                        {.key_padding_mask = padding, .attn_mask = Stream(103, {3, 5})}, false);
  ASSERT_TRUE(Sum(out.output * out.output).Backward().ok());
  Expect(out.output, {-0.330508907, 0.437099559, -0.257215562, -0.136253326}, -16.1677551, 24);
  Expect(out.weights, {0.160219678, 0, 0.399136412, 0.107204164, 0, 0.170082791}, 503.703322, 84);
  Expect(q.grad(), {0.00156510238, 0.00321262538, -0.00512642836}, 0.490404484, 24);
  EXPECT_EQ(Names(), (std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias",
                                               "bias_k", "bias_v", "out_proj.weight", "out_proj.bias"}));
}

TEST_F(ModulesTest, ConvTranspose1d) {
  const ConvTranspose1d convolution(Scope(), 2, 4, 3, 2, 1, 1, 2);
  const Tensor x = Leaf(100, {1, 2, 4});
  const Tensor y = convolution(x);
  RunBackward(y);
  Expect(y, {-0.432188661, -0.628325197, -0.467959165, -0.312364822}, -46.4939565, 32);
  Expect(x.grad(), {-0.599376624, 0.533200258, 0.876585136}, 4.87953902, 8);
}

TEST_F(ModulesTest, ConvTranspose2d) {
  const ConvTranspose2d convolution(Scope(), 2, 1, 2, 1, 0, 0, 1, false, 2);
  const Tensor x = Leaf(100, {1, 2, 3, 2});
  const Tensor y = convolution(x);
  RunBackward(y);
  Expect(y, {-0.0582831056, 0.142576994, -0.0737297659}, 32.7267966, 20);
  Expect(x.grad(), {0.223675161, 0.2942328, 0.110403201}, -4.55384628, 12);
}

TEST_F(ModulesTest, GroupNorm) {
  const GroupNorm norm(Scope(), 2, 4);
  const Tensor x = Leaf(100, {2, 4, 3});
  const Tensor y = norm(x);
  RunBackward(y);
  Expect(y, {-0.287523696, -0.453271937, -0.338228814}, -41.3081909, 24);
  Expect(x.grad(), {-0.0435613069, 0.0324108524, 0.0676957025}, -1.96215347, 24);
}

TEST_F(ModulesTest, InstanceNormKeepsStatistics) {
  const InstanceNorm2d norm(Scope(), 2, 1e-5, 0.1, true, true);
  Tensor x = Leaf(100, {2, 2, 2, 2});
  Tensor y = norm(x, true);
  RunBackward(y);
  Expect(y, {-0.31549072, -0.526044063, -0.379902456}, 4.53691324, 16);
  Expect(x.grad(), {-0.0397831756, -0.07566892, 0.0738837094}, 0.0414368906, 16);
  Expect(norm.running_mean, {0.001564541412517429, -0.029250562610104683}, -0.0569365838, 2);
  Expect(norm.running_var, {0.9224362335464388, 0.9258399460090223}, 2.7741161256, 2);
  x = Leaf(100, {2, 2, 2, 2});
  y = norm(x, false);
  RunBackward(y);
  Expect(y, {-0.408307413, -0.488772091, -0.432922883}, 3.98234023, 16);
  Expect(x.grad(), {-0.00673151203, 0.0258368944, 0.0598619364}, 3.0259747, 16);
}

TEST_F(ModulesTest, InstanceNormWithoutStatistics) {
  const Tensor x = Leaf(100, {2, 2, 4});
  const Tensor y = InstanceNorm1d(Scope(), 2)(x, false);
  RunBackward(y);
  Expect(y, {1.25647632, -0.689468401, 0.66117977}, 0.900029644, 16);
  Expect(x.grad(), {1.75097418, -1.16729724, -1.97009866}, -4.55765223, 16);
  EXPECT_TRUE(Names().empty());
}

TEST_F(ModulesTest, SequentialAppliesInOrderAndNamesByPosition) {
  Sequential model(Scope()["net"]);
  model.Add<Linear>(3, 4).Append([](const Tensor& t) { return Relu(t); }).Add<Dropout>(0.5).Add<Linear>(4, 1, false);
  EXPECT_EQ(Names(), (std::vector<std::string>{"net.0.weight", "net.0.bias", "net.3.weight"}));
  EXPECT_EQ(model.size(), 4);
  const Tensor x = Stream(100, {2, 3}), w = registry.parameters()[0].tensor, b = registry.parameters()[1].tensor;
  const Tensor expected = Matmul(Relu(lazy::Linear(x, w, b)), T(registry.parameters()[2].tensor));
  EXPECT_EQ(Values(model(x, false)), Values(expected));
  // Training drops: the results of many examples are not those without.
  const Tensor many = Expand(Stream(100, {1, 3}), {64, 3});
  EXPECT_NE(Values(model(many, true)), Values(model(many, false)));
}

TEST_F(ModulesTest, ModuleListHoldsModules) {
  ModuleList<Linear> layers(Scope()["layers"]);
  for (int64_t i = 0; i < 3; ++i) layers.Add(2, 2);
  Tensor x = Stream(100, {1, 2}), expected = x;
  for (const Linear& layer : layers) x = layer(x);
  for (int64_t i = 0; i < layers.size(); ++i) expected = lazy::Linear(expected, layers[i].weight, layers[i].bias);
  EXPECT_EQ(Values(x), Values(expected));
  EXPECT_EQ(Names().back(), "layers.2.bias");
}

}  // namespace
}  // namespace hlokit::lazy::nn
