// SPDX-License-Identifier: Apache-2.0
// Ops as methods of tensors, as torch has them.
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/unit/tracer/tracing.h"
#include "tracer/graph/schema.h"

namespace hlokit::lazy {
namespace {

class TensorMethodsTest : public TracingTest {};

std::string FileText(const std::string& path) {
  std::ifstream file(std::string(HLOKIT_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the names of torch.Tensor's methods that are ops of the table. Not supported: methods that change the sizes
// of a tensor in place (t_, transpose_, squeeze_, unsqueeze_, resize_).
std::set<std::string> TorchMethods() {
  const std::string text = FileText("tests/data/torch_tensor_methods.txt");
  std::istringstream lines(text);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    for (std::string word; words >> word;) names.insert(word);
  }
  return names;
}

TEST_F(TensorMethodsTest, EveryMethodOfTorchThatIsAnOpIsThereAndNoOther) {
  std::set<std::string> ours;
  for (size_t i = 0; i < kOpCount; ++i) {
    const OpInfo& info = InfoOf(static_cast<Op>(i));
    const std::string& full = SchemaOf(static_cast<Op>(i)).name;
    const std::string name = full.substr(full.find("::") + 2);
    if ((info.flags & kMethod) != 0) ours.insert(name);
    if ((info.flags & kInPlace) != 0) ours.insert(name + "_");
    // A row that takes `self` last or as a number is not a method.
    EXPECT_TRUE((info.flags & kInPlace) == 0 || (info.flags & kMethod) != 0) << full;
  }
  const std::set<std::string> torch = TorchMethods();
  ASSERT_GT(torch.size(), 200u);
  for (const std::string& name : torch) EXPECT_EQ(ours.count(name), 1u) << name << " is no method here";
  for (const std::string& name : ours) EXPECT_EQ(torch.count(name), 1u) << name << " is no method in torch";
}

TEST_F(TensorMethodsTest, MathematicsAndSelection) {
  const Tensor x = Vector({3, 5, 8}), y = Vector({4, 12, 15});
  EXPECT_EQ(Values(x.hypot(y)), (std::vector<double>{5, 13, 17}));
  EXPECT_EQ(Values(x.clip(4, 6)), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(Values(x.median()), (std::vector<double>{5}));
  EXPECT_EQ(Values(std::get<1>(x.median(0))), (std::vector<double>{1}));
  EXPECT_EQ(Values(x.quantile(0.25)), (std::vector<double>{4}));
  EXPECT_EQ(Values(x.take(Arange(2))), (std::vector<double>{3, 5}));
  EXPECT_EQ(Values(x.diag().trace()), (std::vector<double>{16}));
  EXPECT_EQ(Values(x.diag().det()), (std::vector<double>{120}));
  EXPECT_EQ(Values(x.moveaxis(0, 0).ravel().view_as(y)), (std::vector<double>{3, 5, 8}));
  EXPECT_EQ(x.tensor_split(2).size(), 2u);
  const Tensor z = x.detach().clone();
  z.index_fill_(0, Arange(1), 7).hypot_(Vector({24, 12, 15}));
  EXPECT_EQ(Values(z), (std::vector<double>{25, 13, 17}));
  EXPECT_TRUE(tracer.status().ok()) << tracer.status().message();
}

TEST_F(TensorMethodsTest, Arithmetic) {
  const Tensor x = Vector({1, -2, 3}), y = Vector({4, 5, -6});
  EXPECT_EQ(Values(x.add(y)), (std::vector<double>{5, 3, -3}));
  EXPECT_EQ(Values(x.add(y, 2)), (std::vector<double>{9, 8, -9}));
  EXPECT_EQ(Values(x.mul(2).sub(y)), (std::vector<double>{-2, -9, 12}));
  EXPECT_EQ(Values(x.relu()), (std::vector<double>{1, 0, 3}));
  EXPECT_EQ(Values(x.pow(2).neg().abs().sqrt()), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Values(y.div(x, "floor")), (std::vector<double>{4, -3, -2}));
  EXPECT_EQ(Values(x.clamp(std::nullopt, 1)), (std::vector<double>{1, -2, 1}));
  EXPECT_EQ(Values(x.clamp(Vector({0, 0, 0}))), (std::vector<double>{1, 0, 3}));
  EXPECT_EQ(Values(x.maximum(y)), (std::vector<double>{4, 5, 3}));
  EXPECT_EQ(Values(x.lerp(y, 0.5)), (std::vector<double>{2.5, 1.5, -1.5}));
  EXPECT_EQ(Values(x.gt(0).logical_not()), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(Values(x.to(ElementType::kS64).remainder(2)), (std::vector<double>{1, 0, 1}));
  EXPECT_TRUE(SameTensor(x, x.to(ElementType::kF32)));
}

TEST_F(TensorMethodsTest, ProductsAndReductions) {
  const Tensor a = F32({2, 2}, {1, 2, 3, 4});
  const Tensor b = F32({2, 2}, {0, 1, 1, 0});
  EXPECT_EQ(Values(a.matmul(b)), (std::vector<double>{2, 1, 4, 3}));
  EXPECT_EQ(Values(a.addmm(a, b, 1, 2)), (std::vector<double>{5, 4, 11, 10}));
  EXPECT_EQ(Values(a.mv(Vector({1, -1}))), (std::vector<double>{-1, -1}));
  EXPECT_EQ(Values(a.sum()), (std::vector<double>{10}));
  EXPECT_EQ(Values(a.sum(0)), (std::vector<double>{4, 6}));
  EXPECT_EQ(a.sum(-1, true).dim(), 2);
  EXPECT_EQ(Values(a.sum({0, 1})), (std::vector<double>{10}));
  EXPECT_EQ(a.sum(0, false, ElementType::kF64).dtype(), ElementType::kF64);
  EXPECT_EQ(Values(a.mean({0, 1}, true)), (std::vector<double>{2.5}));
  EXPECT_EQ(Values(a.var(1, false)), (std::vector<double>{0.25, 0.25}));
  EXPECT_EQ(Values(a.amax()), (std::vector<double>{4}));
  EXPECT_EQ(Values(a.argmax(1)), (std::vector<double>{1, 1}));
  const auto [values, indices] = a.max(0);
  EXPECT_EQ(Values(values), (std::vector<double>{3, 4}));
  EXPECT_EQ(Values(indices), (std::vector<double>{1, 1}));
  const auto [top, places] = a.flatten().topk(2);
  EXPECT_EQ(Values(top), (std::vector<double>{4, 3}));
  EXPECT_EQ(Values(places), (std::vector<double>{3, 2}));
  EXPECT_NEAR(Values(a.norm())[0], std::sqrt(30.0), 1e-5);
  EXPECT_NEAR(Values(a.softmax(1).sum())[0], 2, 1e-5);
}

TEST_F(TensorMethodsTest, ShapesAndIndices) {
  const Tensor x = F32({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(Values(x.t().reshape(-1)), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.view({3, -1}).size(1), 2);
  EXPECT_EQ(x.unsqueeze(0).expand({4, -1, -1}).numel(), 24);
  EXPECT_EQ(x.permute({1, 0}).size(0), 3);
  EXPECT_EQ(Values(x.select(0, 1)), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(Values(x.narrow(1, 1, 2).slice(0, 1)), (std::vector<double>{4, 5}));
  EXPECT_EQ(x.split(2, 1).size(), 2u);
  EXPECT_EQ(x.unbind().size(), 2u);
  EXPECT_EQ(Values(x.flip(0).flatten()), (std::vector<double>{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(Values(x.flatten().roll(1)), (std::vector<double>{5, 0, 1, 2, 3, 4}));
  const Tensor rows = Vector({1, 0}).to(ElementType::kS64);
  EXPECT_EQ(Values(x.index_select(0, rows).select(1, 0)), (std::vector<double>{3, 0}));
  EXPECT_EQ(Values(x.index({rows}).select(1, 2)), (std::vector<double>{5, 2}));
  EXPECT_EQ(Values(x.gather(1, rows.unsqueeze(1))), (std::vector<double>{1, 3}));
  EXPECT_EQ(Values(x.where(x.gt(2), Vector({9}))), (std::vector<double>{9, 9, 9, 3, 4, 5}));
  EXPECT_EQ(Values(x.masked_fill(x.lt(3), -1)), (std::vector<double>{-1, -1, -1, 3, 4, 5}));
}

TEST_F(TensorMethodsTest, WritesInPlace) {
  const Tensor x = Vector({1, -2, 3});
  const Tensor row = x.view({1, 3});
  EXPECT_TRUE(SameTensor(x, x.relu_()));
  EXPECT_EQ(Values(x), (std::vector<double>{1, 0, 3}));
  x.mul_(2).add_(Vector({1, 1, 1}), 10);
  EXPECT_EQ(Values(row), (std::vector<double>{12, 10, 16}));  // views share the write
  row.fill_(7);
  EXPECT_EQ(Values(x), (std::vector<double>{7, 7, 7}));
  x.zero_();
  x.index_put_({Vector({2}).to(ElementType::kS64)}, Vector({5}));
  EXPECT_EQ(Values(x), (std::vector<double>{0, 0, 5}));
  x.copy_(Vector({3, 2, 1}));
  EXPECT_EQ(Values(x.clone()), (std::vector<double>{3, 2, 1}));
  const Tensor p = Tensor(x).set_requires_grad(true);
  p.add_(1);
  EXPECT_FALSE(tracer.status().ok());  // a leaf that requires a gradient
}

TEST_F(TensorMethodsTest, AreDifferentiated) {
  Tensor x = Vector({1, 2});
  x.set_requires_grad(true);
  ASSERT_TRUE(x.mul(x).sum().Backward().ok());
  EXPECT_EQ(Values(x.grad()), (std::vector<double>{2, 4}));
}

TEST_F(TensorMethodsTest, OfAnUndefinedTensorAreErrors) {
  EXPECT_FALSE(Tensor().relu().defined());
  EXPECT_FALSE(tracer.status().ok());
}

TEST_F(TensorMethodsTest, AResultOfAnotherKindIsNotWrittenInPlace) {
  const Tensor x = tracer.FromLiteral(Literal::Zeros(tracer.device()->ArrayShape(ElementType::kS64, {2})));
  x.mul_(0.5);
  EXPECT_EQ(tracer.status().message(), "result type f32 can't be cast to the desired output type s64");
}

}  // namespace
}  // namespace hlokit::lazy
