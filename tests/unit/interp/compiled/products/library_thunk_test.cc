// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of the fast engine: values of the exact engine within the documented bound, the same bits
// for any number of threads.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/arguments/argument_generator.h"
#include "check/comparison/value_comparison.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/compiled_kernels.h"
#include "interp/exact/evaluator.h"
#include "ir/core/source_buffer.h"
#include "ir/core/str_cat.h"
#include "parser/formats/parser.h"

namespace hlokit::interp::compiled {
namespace {

class LibraryThunkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ProductLibrary().ok()) GTEST_SKIP() << "a module of the engine is not built";
  }

  // Runs the module on both engines, with several numbers of threads, and returns what became of the instructions.
  static std::vector<KernelChoice> Run(std::string_view text, double tolerance) {
    DiagnosticSink sink;
    const std::unique_ptr<Module> module =
        ParseModule(std::make_shared<const SourceBuffer>("m.hlo", std::string(text)), ParseOptions(), &sink);
    EXPECT_NE(module, nullptr) << text;
    if (module == nullptr) return {};
    EvaluatorOptions options;
    const auto exact = Evaluator::Prepare(*module, options, &sink);
    EXPECT_NE(exact, nullptr) << text;
    if (exact == nullptr) return {};
    const std::vector<Literal> arguments = MakeFakeArguments(exact->argument_shapes(), 1);
    const auto expected = exact->Run(arguments, &sink);
    EXPECT_TRUE(expected.has_value());
    std::vector<KernelChoice> choices;
    std::optional<std::vector<Literal>> first;
    for (int threads : {1, 2, 3, 8}) {
      const auto kernels = std::make_shared<CompiledKernels>(ObservationRequest());
      options.num_threads = threads;
      const auto fast = Evaluator::Prepare(*module, options, &sink, kernels);
      EXPECT_NE(fast, nullptr) << text;
      if (fast == nullptr || !expected) return {};
      for (int repeat = 0; repeat < 2; ++repeat) {
        auto actual = fast->Run(arguments, &sink);
        EXPECT_TRUE(actual.has_value()) << text;
        if (!actual) return {};
        ErrorSpec bounds;
        if (first) {
          const auto same = CompareValues(*actual, *first, bounds);
          EXPECT_TRUE(same.ok() && same->equal()) << threads << " threads: " << text;
        } else {
          if (tolerance > 0) bounds.absolute = tolerance;
          const auto difference = CompareValues(*actual, *expected, bounds);
          EXPECT_TRUE(difference.ok() && difference->equal())
              << (difference.ok() ? difference->description : "shapes") << "\n"
              << text;
          first = std::move(*actual);
        }
      }
      choices = kernels->choices();
    }
    return choices;
  }

  static int Count(const std::vector<KernelChoice>& choices, KernelChoice::Kind kind) {
    int count = 0;
    for (const KernelChoice& choice : choices) count += choice.kind == kind;
    return count;
  }
};

std::string Product(std::string_view type, std::string_view result, std::string_view lhs, std::string_view rhs,
                    std::string_view shape, int lhs_contracted, int rhs_contracted) {
  return StrCat("HloModule m\nENTRY e {\n  a = ", type, "[", lhs, "] parameter(0)\n  b = ", type, "[", rhs,
                "] parameter(1)\n  ROOT c = ", result, "[", shape, "] dot(a, b), lhs_contracting_dims={",
                lhs_contracted, "}, rhs_contracting_dims={", rhs_contracted, "}\n}\n");
}

TEST_F(LibraryThunkTest, ProductsWithFewRowsReadWeightsAsTheyAre) {
  for (int rows : {1, 3, 4, 8, 16}) {
    for (std::string_view type : {"f32", "bf16"}) {
      const double tolerance = type == "f32" ? 1e-4 : 0.25;
      const auto plain =
          Run(Product(type, type, StrCat(rows, ",203"), "203,1031", StrCat(rows, ",1031"), 1, 0), tolerance);
      EXPECT_EQ(Count(plain, KernelChoice::Kind::kProduct), 1);
      Run(Product(type, type, StrCat(rows, ",203"), "1031,203", StrCat(rows, ",1031"), 1, 1), tolerance);
      Run(Product(type, type, StrCat("203,", rows), "203,1031", StrCat(rows, ",1031"), 0, 0), tolerance);
    }
  }
}

TEST_F(LibraryThunkTest, AProductWithOneColumnIsOneWithOneRow) {
  const auto choices = Run(Product("f32", "f32", "1031,203", "203,1", "1031,1", 1, 0), 1e-4);
  EXPECT_EQ(Count(choices, KernelChoice::Kind::kProduct), 1);
  Run(Product("f32", "f32", "203,1031", "203,1", "1031,1", 0, 0), 1e-4);
}

// The element 1 + 2^-8 is 1 in bf16, and 1 + 2^-12 is 1 in f16, so that the results tell whether operands were rounded.
TEST_F(LibraryThunkTest, OperandsAreRoundedToTheTypeOfTheResult) {
  for (std::string_view operand : {"f32", "f16", "bf16"}) {
    for (std::string_view result : {"bf16", "f16", "f32"}) {
      for (std::string_view value : {"1.00390625", "1.000244140625", "131072"}) {
        for (int rows : {1, 3, 64}) {
          const std::string fill =
              StrCat("  c = ", operand, "[] constant(", value == "131072" && operand == "f16" ? "3" : value, ")\n");
          const auto array = [&](std::string_view name, std::string_view parameter, std::string_view dims) {
            const std::string type = StrCat(" = ", operand, "[", dims, "] ");
            return StrCat("  ", name, "x", type, "parameter(", parameter, ")\n  ", name, "c", type,
                          "broadcast(c), dimensions={}\n  ", name, "l", " = pred[", dims, "] compare(", name, "x, ",
                          name, "x), direction=EQ\n  ", name, type, "select(", name, "l, ", name, "c, ", name, "x)\n");
          };
          const auto choices = Run(StrCat("HloModule m\nENTRY e {\n", fill, array("a", "0", StrCat(rows, ",256")),
                                          array("b", "1", "256,512"), "  ROOT r = ", result, "[", rows,
                                          ",512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"),
                                   0);
          EXPECT_EQ(Count(choices, KernelChoice::Kind::kProduct), 1);
          if (rows != 3) continue;
          const auto images =
              Run(StrCat("HloModule m\nENTRY e {\n", fill, array("a", "0", "2,8,8,16"), array("b", "1", "3,3,16,32"),
                         "  ROOT r = ", result,
                         "[2,6,6,32] convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f\n}\n"),
                  0);
          EXPECT_EQ(Count(images, KernelChoice::Kind::kConvolution), 1);
        }
      }
    }
  }
}

TEST_F(LibraryThunkTest, LargeProductsAreDividedIntoPieces) {
  Run(Product("f32", "f32", "1000,1100", "1100,1060", "1000,1060", 1, 0), 1e-3);
  Run(Product("f32", "f32", "600,300", "1000,300", "600,1000", 1, 1), 1e-3);
  Run(Product("f32", "f32", "100,300", "300,1000", "100,1000", 1, 0), 1e-3);
  Run(Product("f32", "f32", "3000,70", "3000,300", "70,300", 0, 0), 1e-2);
}

TEST_F(LibraryThunkTest, HeadsOfAttentionAreStrides) {
  const auto choices = Run(R"(HloModule m
ENTRY e {
  q = f32[3,40,6,32] parameter(0)
  k = f32[3,40,6,32] parameter(1)
  v = f32[3,40,6,32] parameter(2)
  s = f32[3,6,40,40] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  ROOT o = f32[3,6,40,32] dot(s, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1}
})",
                           1e-2);
  EXPECT_EQ(Count(choices, KernelChoice::Kind::kProduct), 2);
}

TEST_F(LibraryThunkTest, ProductsOfBytesAreExact) {
  Run(Product("s8", "s32", "70,4099", "4099,90", "70,90", 1, 0), 0);
  Run(Product("s8", "s32", "300,1000", "64,1000", "300,64", 1, 1), 0);
  // Sums beyond 2^24, and of the least value.
  Run(R"(HloModule m
ENTRY e {
  x = s8[40,3000] parameter(0)
  least = s8[] constant(-128)
  a = s8[40,3000] broadcast(least), dimensions={}
  b = s8[3000,48] broadcast(least), dimensions={}
  y = s8[40,3000] minimum(x, a)
  c = s32[40,48] dot(y, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = s32[40,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
      0);
}

TEST_F(LibraryThunkTest, GradientsOfWeightsAreDividedByFeaturesOrImages) {
  struct Case {
    int images, size, in, out, kernel, stride;
  };
  for (const Case& c : {Case{4, 14, 32, 128, 3, 1},
                        {4, 14, 32, 64, 3, 2},
                        {2, 60, 32, 64, 3, 2},
                        {2, 48, 16, 64, 3, 1},
                        {5, 12, 8, 24, 3, 1},
                        {3, 14, 32, 96, 1, 1},
                        {3, 14, 96, 24, 1, 2},
                        {2, 10, 24, 256, 1, 1}}) {
    const int pad = c.kernel / 2;
    const int out = (c.size + 2 * pad - c.kernel) / c.stride + 1;
    const int high = c.kernel - 1 - (c.size + pad - ((out - 1) * c.stride + 1));
    const auto choices =
        Run(StrCat("HloModule m\nENTRY e {\n  x = f32[", c.images, ",", c.in, ",", c.size, ",", c.size,
                   "] parameter(0)\n  g = f32[", c.images, ",", c.out, ",", out, ",", out,
                   "] parameter(1)\n  ROOT w = f32[", c.out, ",", c.in, ",", c.kernel, ",", c.kernel,
                   "] convolution(x, g), window={size=", out, "x", out, " pad=", pad, "_", high, "x", pad, "_", high,
                   " rhs_dilate=", c.stride, "x", c.stride, "}, dim_labels=fb01_io01->fb01\n}\n"),
            2e-2);
    EXPECT_EQ(Count(choices, KernelChoice::Kind::kConvolution), 1);
  }
}

TEST_F(LibraryThunkTest, ConvolutionsWithoutAWindowAreProductsOfPositions) {
  for (std::string_view type : {"f32", "bf16"}) {
    for (std::string_view weights : {"[1,1,128,160]", "[160,128,1,1]"}) {
      for (int images : {1, 3}) {
        const std::string labels = weights[1] == '1' && weights[2] == ',' ? "b01f_01io->b01f" : "b01f_oi01->b01f";
        const auto choices =
            Run(StrCat("HloModule m\nENTRY e {\n  x = ", type, "[", images, ",14,14,128] parameter(0)\n  w = ", type,
                       weights, " parameter(1)\n  ROOT y = ", type, "[", images,
                       ",14,14,160] convolution(x, w), window={size=1x1}, dim_labels=", labels, "\n}\n"),
                type == "f32" ? 1e-3 : 0.5);
        EXPECT_EQ(Count(choices, KernelChoice::Kind::kConvolution), 1);
      }
    }
  }
}

TEST_F(LibraryThunkTest, FewPositionsAndSingleImagesAreDividedByFeatures) {
  struct Case {
    int images, size, in, out;
  };
  for (const Case& c : {Case{2, 7, 32, 256}, {3, 8, 32, 512}, {1, 42, 32, 64}}) {
    for (bool gradient : {false, true}) {
      const std::string images = StrCat(c.images, ",", c.size, ",", c.size, ",");
      const std::string weights = gradient ? StrCat("f32[3,3,", c.out, ",", c.in, "]")  // of the forward convolution
                                           : StrCat("f32[3,3,", c.in, ",", c.out, "]");
      const auto choices = Run(
          StrCat("HloModule m\nENTRY e {\n  x = f32[", images, c.in, "] parameter(0)\n  w = ", weights,
                 " parameter(1)\n  ROOT y = f32[", images, c.out, "] convolution(x, w), window={size=3x3 pad=1_1x1_1",
                 gradient ? " rhs_reversal=1x1" : "", "}, dim_labels=b01f_01", gradient ? "oi" : "io", "->b01f\n}\n"),
          1e-3);
      EXPECT_EQ(Count(choices, KernelChoice::Kind::kConvolution), 1);
    }
  }
}

TEST_F(LibraryThunkTest, AReversedKernelIsPackedInReverse) {
  for (std::string_view size : {"3x3", "3x2"}) {
    const auto choices = Run(StrCat(R"(HloModule m
ENTRY e {
  g = f32[2,48,14,14] parameter(0)
  w = f32[48,32,)",
                                    size.substr(0, 1), ",", size.substr(2), R"(] parameter(1)
  r = f32[48,32,)",
                                    size.substr(0, 1), ",", size.substr(2), R"(] reverse(w), dimensions={2,3}
  ROOT x = f32[2,32,14,)",
                                    size == "3x3" ? 14 : 15, R"(] convolution(g, r), window={size=)", size,
                                    R"( pad=1_1x1_1}, dim_labels=bf01_io01->bf01
})"),
                             1e-3);
    EXPECT_EQ(Count(choices, KernelChoice::Kind::kConvolution), 1);
  }
}

TEST_F(LibraryThunkTest, ImagesKeepFeaturesMinorBetweenConvolutions) {
  const auto choices = Run(R"(HloModule m
ENTRY e {
  x = f32[2,16,12,12] parameter(0)
  v = f32[32,16,3,3] parameter(1)
  w = f32[16,32,1,1] parameter(2)
  y = f32[2,32,12,12] convolution(x, v), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
  z = f32[2,16,12,12] convolution(y, w), window={size=1x1}, dim_labels=bf01_oi01->bf01
  ROOT t = (f32[2,32,12,12], f32[2,16,12,12]) tuple(y, z)
})",
                           1e-2);
  EXPECT_EQ(Count(choices, KernelChoice::Kind::kConvolution), 2);
}

TEST_F(LibraryThunkTest, ConvolutionsOfBf16) {
  const auto choices = Run(R"(HloModule m
ENTRY e {
  x = bf16[2,32,14,14] parameter(0)
  w = bf16[64,32,3,3] parameter(1)
  g = bf16[2,64,14,14] parameter(2)
  y = bf16[2,64,14,14] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
  dw = bf16[64,32,3,3] convolution(x, g), window={size=14x14 pad=1_1x1_1}, dim_labels=fb01_io01->fb01
  ROOT t = (bf16[2,64,14,14], bf16[64,32,3,3]) tuple(y, dw)
})",
                           0.5);
  EXPECT_EQ(Count(choices, KernelChoice::Kind::kConvolution), 2);
}

// A loop that multiplies by weights which it passes on, and by others which it changes.
std::string Loop(int trips, bool nested) {
  const std::string state = "(s32[], f32[40,96], f32[96,96], f32[96,96])";
  const auto loop = [&](std::string_view name, std::string_view inner) {
    return StrCat(name, "_condition {\n  s = ", state,
                  " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(", trips,
                  ")\n  ROOT l = pred[] compare(i, n), direction=LT\n}\n", name, "_body {\n  s = ", state,
                  " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  x = f32[40,96] get-tuple-element(s), "
                  "index=1\n  w = f32[96,96] get-tuple-element(s), index=2\n  v = f32[96,96] get-tuple-element(s), "
                  "index=3\n  one = s32[] constant(1)\n  i1 = s32[] add(i, one)\n",
                  inner, "  ROOT t = ", state, " tuple(i1, z, w, v1)\n}\n");
  };
  const std::string step =
      "  y = f32[40,96] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  y2 = f32[40,96] dot(y, v), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  c = f32[] constant(0.01)\n  cb = f32[40,96] broadcast(c), "
      "dimensions={}\n  z = f32[40,96] multiply(y2, cb)\n  v1 = f32[96,96] negate(v)\n";
  const std::string outer = StrCat("  zero = s32[] constant(0)\n  in = ", state, " tuple(zero, x, w, v)\n  o = ", state,
                                   " while(in), condition=inner_condition, body=inner_body\n  z = f32[40,96] "
                                   "get-tuple-element(o), index=1\n  v1 = f32[96,96] get-tuple-element(o), index=3\n");
  return StrCat("HloModule m\n", loop("inner", step), nested ? loop("outer", outer) : "",
                "ENTRY e {\n  x = f32[40,96] parameter(0)\n  w = f32[96,96] parameter(1)\n  v = f32[96,96] "
                "parameter(2)\n  zero = s32[] constant(0)\n  t = ",
                state, " tuple(zero, x, w, v)\n  l = ", state, " while(t), condition=", nested ? "outer" : "inner",
                "_condition, body=", nested ? "outer" : "inner",
                "_body\n  ROOT r = f32[40,96] get-tuple-element(l), index=1\n}\n");
}

TEST_F(LibraryThunkTest, PackedWeightsLeaveLoops) {
  for (bool nested : {false, true}) {
    for (int trips : {0, 1, 4}) {
      const auto choices = Run(Loop(trips, nested), 1e-3);
      EXPECT_EQ(Count(choices, KernelChoice::Kind::kProduct), 2);
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
