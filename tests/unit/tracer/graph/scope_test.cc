// SPDX-License-Identifier: Apache-2.0
// Lines that nodes of a program in C++ are attributed to.
#include "tracer/graph/scope.h"

#include <source_location>
#include <string>
#include <vector>

#include "tests/unit/tracer/tracing.h"
#include "tracer/capture/capture.h"
#include "tracer/nn/containers.h"
#include "tracer/nn/layers.h"
#include "tracer/step/executor.h"
#include "tracer/step/graph_key.h"
#include "tracer/text/ir_text.h"

namespace hlokit::lazy {
namespace {

int Line(const std::source_location& location = std::source_location::current()) {
  return static_cast<int>(location.line());
}

class SourceLinesTest : public TracingTest {
 protected:
  SourceLinesTest() : TracingTest(Debug()) {}

  static TracerOptions Debug() {
    TracerOptions options = SmallOptions();
    options.debug = true;
    return options;
  }
  // Returns the lines of the nodes of `t`, without those of data, in post-order; each must be of this file.
  std::vector<int> LinesOf(const Tensor& t) {
    std::vector<int> lines;
    DeviceState& device = *tracer.device();
    for (const NodeId id : CollectSubgraphOfTensors({t}).order) {
      const NodeRecord& node = device.graph().node(id);
      if (node.op == Op::device_data || node.op == Op::constant) continue;
      if (node.frame == 0) {
        lines.push_back(0);
        continue;
      }
      const SourceFrame& frame = device.frames()[node.frame - 1];
      EXPECT_EQ(frame.file, FrameOf(std::source_location::current()).file);
      lines.push_back(frame.line);
    }
    return lines;
  }
};

TEST_F(SourceLinesTest, FunctionsOperatorsAndMethodsHaveTheLineOfTheCall) {
  const Tensor x = Vector({1, 2});
  const Tensor a = Relu(x);
  const Tensor b = a * Vector({3, 4});
  const Tensor c = b.exp();
  EXPECT_EQ(LinesOf(c), (std::vector<int>{Line() - 3, Line() - 2, Line() - 1}));
}

TEST_F(SourceLinesTest, OpsInsideALayerHaveTheLineThatAppliesIt) {
  nn::RmsNorm norm;
  norm.weight = Vector({1, 1});
  const Tensor y = norm(Vector({1, 2}));
  const std::vector<int> lines = LinesOf(y);
  EXPECT_GT(lines.size(), 4u);
  EXPECT_EQ(lines, std::vector<int>(lines.size(), Line() - 3));
}

TEST_F(SourceLinesTest, LayersOfAContainerHaveTheLineThatAddsThemAndFunctionsTheirOwn) {
  nn::Sequential model{nn::ModuleScope(nullptr)};
  model.Append([](const LocatedTensor& x) { return Exp(x); });
  model.Append([](const Tensor& x) {
    const Tensor y = Tanh(x);
    return y;
  });
  const int last = Line() - 1;
  EXPECT_EQ(LinesOf(model(Vector({1}), true)), (std::vector<int>{last - 4, last - 2}));
}

TEST_F(SourceLinesTest, DerivativesHaveTheLineOfTheirCall) {
  Tensor x = Vector({1, 2});
  x.set_requires_grad(true);
  const Tensor y = Tanh(x);
  const int tanh = Line() - 1;
  const Tensor loss = Sum(y);
  const int sum = Line() - 1;
  ASSERT_TRUE(loss.Backward().ok());
  const int backward = Line() - 1;
  const std::vector<int> lines = LinesOf(x.grad());
  EXPECT_EQ(lines.front(), tanh);  // the value that the derivative reads
  EXPECT_EQ(lines.back(), tanh);
  for (const int line : lines) EXPECT_TRUE(line == tanh || line == sum || line == backward) << line;
}

TEST_F(SourceLinesTest, ACapturedFunctionHasItsOwnLines) {
  std::vector<int> lines;
  int exp = 0;
  CapturedFunction captured = Compile(&tracer, [&](const Tensors& x) -> Tensors {
    Tensor y = Exp(x[0]);
    exp = Line() - 1;
    lines = LinesOf(y);
    return {y};
  });
  ASSERT_TRUE(captured({Vector({1})}).ok());
  EXPECT_EQ(lines, std::vector<int>{exp});
}

TEST_F(SourceLinesTest, KeysAndHashesOfGraphsDoNotDependOnLines) {
  const Tensor x = Vector({1, 2});
  std::vector<std::vector<uint32_t>> keys;
  std::vector<std::string> hashes, stored;
  const auto add = [&](const Tensor& y) {
    const PendingSubgraph slice = CollectSubgraphOfTensors({y});
    const absl::Span<const uint32_t> key = KeyOf(*tracer.device(), slice, {});
    keys.emplace_back(key.begin(), key.end());
    hashes.push_back(ToString(HashOf(*tracer.device(), slice, {})));
    stored.push_back(CompilationCacheKeyOf(*tracer.device(), slice, {}).contents);
  };
  add(Exp(x));
  add(Exp(x));
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_NE(stored[0], stored[1]);  // a stored program has its metadata
}

TEST_F(SourceLinesTest, AFrameOfTheProgramIsBeforeLinesOfTheLibrary) {
  const ScopedFrame frame("main", "train.py", 7);
  const Tensor y = Exp(Vector({1}));
  DeviceState& device = *tracer.device();
  const NodeRecord& node = device.graph().node(CollectSubgraphOfTensors({y}).order.back());
  EXPECT_EQ(device.frames()[node.frame - 1].file, "train.py");
}

}  // namespace
}  // namespace hlokit::lazy
