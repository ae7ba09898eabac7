// SPDX-License-Identifier: Apache-2.0
#include "tracer/text/record/op_test_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "tracer/step/tracer.h"

namespace hlokit::lazy {
namespace {

class OpTestCaseTest : public ::testing::Test {
 protected:
  bool Read(std::string_view text) {
    source_ = std::make_shared<const SourceBuffer>("case", std::string(text));
    return ReadOpTestCase(*source_, &context_, &case_, &sink_);
  }
  std::string FirstMessage() { return sink_.diagnostics().empty() ? "" : sink_.diagnostics()[0].message; }
  // Computes the call that `text` describes and compares it with the expected values in it.
  absl::Status Check(std::string_view text) {
    EXPECT_TRUE(Read(text)) << FirstMessage();
    Tracer tracer(TracerOptions{});
    const DeviceGuard guard(tracer.device());
    const absl::StatusOr<OpCall> call = CallOp(tracer, case_, !case_.grads.empty());
    return call.ok() ? CheckOpCall(case_, *call) : call.status();
  }

  Context context_;
  std::shared_ptr<const SourceBuffer> source_;
  OpTestCase case_;
  DiagnosticSink sink_;
};

TEST_F(OpTestCaseTest, ReadsAllKeys) {
  ASSERT_TRUE(
      Read("# a comment\nop: aten::cat\nfamily: join\nnote: ignored\narglist: 2\narg: f32[2] {1, 2}\n"
           "f32[1] {3}\narg: none\nattr: dim=0\nrequires_grad: 0,1\ndiff_out: 0\nmutated: 1 f32[1] {4}\n"
           "out: f32[3] {1, 2, 3}\nout: none\ngrad_out: f32[3] {1, 1, 1}\ngrad: f32[2] {1, 1}\n"
           "tolerance: rel=0.5 abs=0.25\n"))
      << FirstMessage();
  EXPECT_EQ(case_.op, "aten::cat");
  EXPECT_EQ(case_.family, "join");
  ASSERT_EQ(case_.args.size(), 3u);  // a bare literal is an argument
  EXPECT_FALSE(case_.args[2]);
  EXPECT_EQ(case_.lists, (std::vector<std::pair<size_t, size_t>>{{0, 2}}));
  EXPECT_EQ(case_.attrs, (std::vector<std::pair<std::string, std::string>>{{"dim", "0"}}));
  EXPECT_EQ(case_.requires_grad, (std::vector<size_t>{0, 1}));
  ASSERT_EQ(case_.mutated.size(), 1u);
  EXPECT_EQ(case_.mutated[0].first, 1u);
  EXPECT_EQ(case_.outs.size(), 2u);
  EXPECT_EQ(case_.grads.size(), 1u);
  EXPECT_EQ(case_.rel, 0.5);
  EXPECT_EQ(case_.abs, 0.25);
}

TEST_F(OpTestCaseTest, MistakesHaveALocation) {
  EXPECT_FALSE(Read("op: aten::relu\nargs: f32[1] {1}\n"));
  EXPECT_EQ(FirstMessage(), "unknown key `args`");
  EXPECT_EQ(sink_.diagnostics()[0].range.offset, 15u);
  for (const std::string_view text : {"attr: dim", "arglist: x", "requires_grad: 0;1", "mutated: 1", "tolerance: 1",
                                      "arg: f32[2] {1}", "requires_grad: 5000"}) {
    EXPECT_FALSE(Read(text)) << text;
  }
}

TEST_F(OpTestCaseTest, ValuesAndGradientsAreCompared) {
  constexpr std::string_view kCase =
      "op: aten::mul\narg: f32[2] {2, 3}\narg: f32[2] {5, 7}\nrequires_grad: 0\nout: f32[2] {10, 21}\n";
  EXPECT_EQ(Check(std::string(kCase) + "grad: f32[2] {5, 7}\n"), absl::OkStatus());
  case_ = OpTestCase();
  EXPECT_EQ(Check(std::string(kCase) + "grad: f32[2] {5, 8}\n").message(), "grad 0: element 1 is 7, expected 8");
  case_ = OpTestCase();
  EXPECT_EQ(Check("op: aten::relu\narg: f32[1] {-1}\nout: f32[1] {-1}\n").message(),
            "out 0: element 0 is 0, expected -1");
}

TEST_F(OpTestCaseTest, CallsThatDoNotFitTheSchema) {
  EXPECT_EQ(Check("op: aten::rellu\narg: f32[1] {1}\n").code(), absl::StatusCode::kNotFound);
  case_ = OpTestCase();
  EXPECT_EQ(Check("op: aten::mul\narg: f32[1] {1}\n").message(), "missing argument `other`");
  case_ = OpTestCase();
  EXPECT_EQ(Check("op: aten::relu\narg: f32[1] {1}\narg: f32[1] {1}\n").code(), absl::StatusCode::kInvalidArgument);
  case_ = OpTestCase();
  EXPECT_EQ(Check("op: aten::relu\narg: f32[1] {1}\nattr: dim=1\n").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(OpTestCaseTest, ExpectedErrors) {
  ASSERT_TRUE(Read("op: aten::glu\narg: f32[3] {1, 2, 3}\nerror: must be even\n")) << FirstMessage();
  EXPECT_EQ(CheckError(case_, absl::InvalidArgumentError("Halving dimension must be even")), absl::OkStatus());
  EXPECT_EQ(CheckError(case_, absl::InvalidArgumentError("no")).message(), "fails with: no, expected: must be even");
  EXPECT_EQ(CheckError(case_, absl::OkStatus()).message(), "succeeds, expected the error: must be even");
}

TEST_F(OpTestCaseTest, ImaginaryPartsAreCompared) {
  const Shape shape = context_.shapes.Array(ElementType::kC64, {1});
  Literal a = Literal::Zeros(shape), b = Literal::Zeros(shape);
  reinterpret_cast<float*>(a.data())[1] = 1;
  EXPECT_EQ(CompareLiterals(a, b, 0, 0.5).message(), "element 1 is 1, expected 0");
  EXPECT_TRUE(CompareLiterals(a, b, 0, 1).ok());
}

TEST_F(OpTestCaseTest, Tolerance) {
  const Shape shape = context_.shapes.Array(ElementType::kF32, {1});
  const auto compare = [&](float got, float want, double rel, double abs) {
    Literal a = Literal::Zeros(shape), b = Literal::Zeros(shape);
    *reinterpret_cast<float*>(a.data()) = got;
    *reinterpret_cast<float*>(b.data()) = want;
    return CompareLiterals(a, b, rel, abs).ok();
  };
  EXPECT_TRUE(compare(100.5f, 100, 0.01, 0));
  EXPECT_FALSE(compare(101.5f, 100, 0.01, 0));
  EXPECT_TRUE(compare(0.25f, 0, 0, 0.25));
  EXPECT_FALSE(compare(0.5f, 0, 0, 0.25));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(compare(std::nanf(""), std::nanf(""), 0, 0));
  EXPECT_TRUE(compare(kInfinity, kInfinity, 0, 0));
  EXPECT_FALSE(compare(kInfinity, 1, 1e9, 1e9));
  EXPECT_FALSE(compare(1, kInfinity, 1e9, 1e9));
  EXPECT_FALSE(compare(std::nanf(""), 1, 1e9, 1e9));
  const Literal longer = Literal::Zeros(context_.shapes.Array(ElementType::kF32, {2}));
  EXPECT_EQ(CompareLiterals(longer, Literal::Zeros(shape), 0, 0).message(), "shape f32[2], expected f32[1]");
}

}  // namespace
}  // namespace hlokit::lazy
