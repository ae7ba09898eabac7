// SPDX-License-Identifier: Apache-2.0
// Modules against values of torch 1.13 (in f64): the first elements of each result, and the sum of all, each multiplied
// by its position.
#include <string>
#include <vector>

#include "tests/unit/tracer/tracing.h"
#include "tracer/graph/deterministic_init.h"
#include "tracer/nn/containers.h"
#include "tracer/nn/layers.h"
#include "tracer/nn/lstm.h"

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
  void RunBackward(const LstmOutput& out) {
    Tensor loss = Sum(out.output * out.output) + Sum(out.h_n * Stream(50, out.h_n.sizes()));
    if (out.c_n.defined()) loss = loss + Sum(out.c_n * Stream(50, out.c_n.sizes()));
    ASSERT_TRUE(loss.Backward().ok());
  }
  void RunBackward(const Tensor& y) { ASSERT_TRUE(Sum(y * y * Stream(60, y.sizes())).Backward().ok()); }

  ParameterRegistry registry;
};

TEST_F(ModulesTest, LstmWithProjections) {
  const Lstm lstm(Scope(), 3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2});
  const Tensor x = Leaf(100, {4, 2, 3});
  const LstmOutput out = lstm(x, true, Stream(101, {4, 2, 2}), Stream(102, {4, 2, 4}));
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
  const LstmOutput out = lstm(x, true, Stream(101, {1, 2}), Stream(102, {1, 2}));
  RunBackward(out);
  Expect(out.output, {-0.0114202303, 0.0664098344, 0.156634493, 0.00600892958}, 3.96205248, 8);
  Expect(out.c_n, {0.397250413, 0.0202903837}, 0.43783118, 2);
  Expect(x.grad(), {-0.0544397191, 0.0661542904, 0.0332091023}, 2.93869218, 12);
}

TEST_F(ModulesTest, GroupNorm) {
  const GroupNorm norm(Scope(), 2, 4);
  const Tensor x = Leaf(100, {2, 4, 3});
  const Tensor y = norm(x);
  RunBackward(y);
  Expect(y, {-0.287523696, -0.453271937, -0.338228814}, -41.3081909, 24);
  Expect(x.grad(), {-0.0435613069, 0.0324108524, 0.0676957025}, -1.96215347, 24);
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

}  // namespace
}  // namespace hlokit::lazy::nn
