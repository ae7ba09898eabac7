// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/products/tile_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "interp/compiled/products/product_error.h"

namespace hlokit::interp::compiled {
namespace {

enum class Form { kPlain, kTransposedLeft, kTransposedRight };

// kMixed, kPositive: random terms, between -1/2 and 1/2 or 0 and 1. kOneLarge, kCancelled: the first is 1 and the
// others too small to change a sum of f32 that has it, to the last with kCancelled, which is -1.
enum class Terms { kMixed, kPositive, kOneLarge, kCancelled };

std::vector<float> LeftOf(int64_t m, int64_t k, const TileProduct& product, Terms terms) {
  std::vector<float> lhs(static_cast<size_t>(m * k));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      float& x = lhs[static_cast<size_t>(i * product.lhs_row + p * product.lhs_column)];
      x = p == 0 ? 1 : 0x1.fp-26f;
      if (terms == Terms::kCancelled && p > 0 && p == k - 1) x = -1;
    }
  }
  return lhs;
}

// Expects errors of `units` units of 2^-24 of the sum of the terms' magnitudes at most. The arrays have no element more
// than the matrices, and rows of the result are further apart. Returns the worst error.
double ExpectProduct(int64_t m, int64_t n, int64_t k, Form form, Terms terms, double units) {
  const TileProductFunction function = TileProductOf();
  TileProduct product;
  product.m = m;
  product.n = n;
  product.k = k;
  product.lhs_row = form == Form::kTransposedLeft ? 1 : k;
  product.lhs_column = form == Form::kTransposedLeft ? m : 1;
  product.rhs_row = form == Form::kTransposedRight ? 1 : n;
  product.rhs_column = form == Form::kTransposedRight ? k : 1;
  product.result_row = n + 3;
  uint32_t state = 1;
  const float offset = terms == Terms::kMixed ? 0.5f : 0;
  const auto next = [&state, offset] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) * 0x1p-24f - offset;
  };
  std::vector<float> lhs(static_cast<size_t>(m * k)), rhs(static_cast<size_t>(k * n));
  std::generate(lhs.begin(), lhs.end(), next);
  std::generate(rhs.begin(), rhs.end(), next);
  if (terms == Terms::kOneLarge || terms == Terms::kCancelled) {
    lhs = LeftOf(m, k, product, terms);
    std::fill(rhs.begin(), rhs.end(), 1.0f);
  }
  constexpr float kUntouched = 7;
  std::vector<float> result(static_cast<size_t>(m * (n + 3)), kUntouched);
  struct alignas(64) Line {
    float lanes[16];
  };
  std::vector<Line> scratch(static_cast<size_t>(product.scratch_size() / 16 + 1));
  function(product, lhs.data(), rhs.data(), result.data(), scratch[0].lanes);
  double worst = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double exact = 0, magnitude = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double term = double{lhs[static_cast<size_t>(i * product.lhs_row + p * product.lhs_column)]} *
                            double{rhs[static_cast<size_t>(p * product.rhs_row + j * product.rhs_column)]};
        exact += term;
        magnitude += std::abs(term);
      }
      const double error = double{result[static_cast<size_t>(i * (n + 3) + j)]} - exact;
      worst = std::max(worst, std::abs(error) / magnitude);
    }
    for (int64_t j = n; j < n + 3; ++j) EXPECT_EQ(result[static_cast<size_t>(i * (n + 3) + j)], kUntouched);
  }
  EXPECT_LE(worst, units * 0x1p-24) << m << " x " << n << " x " << k << " form " << static_cast<int>(form) << " terms "
                                    << static_cast<int>(terms);
  return worst * 0x1p24;
}

// Expects that errors are within the bound of the number of terms, and `measured`.
void ExpectProducts(Terms terms, double measured) {
  if (TileProductOf() == nullptr) GTEST_SKIP() << "no vectors";
  const auto expect = [&](int64_t m, int64_t n, int64_t k, Form form) {
    ExpectProduct(m, n, k, form, terms, std::min(TileProductUnits(k), measured));
  };
  for (Form form : {Form::kPlain, Form::kTransposedLeft, Form::kTransposedRight}) {
    for (int64_t m : {1, 2, 3, 5, 7, 8, 13, 64}) {
      for (int64_t n : {1, 7, 16, 17, 33, 48, 64, 80, 197}) {
        for (int64_t k : {1, 5, 16, 64, 197}) expect(m, n, k, form);
      }
    }
    expect(20, 40, 1500, form);
  }
}

TEST(TileProductTest, ProductsAreAsExactAsMeasured) { ExpectProducts(Terms::kMixed, kMeasuredUnits); }

TEST(TileProductTest, ProductsOfPositiveTermsAreAsExactAsMeasured) {
  ExpectProducts(Terms::kPositive, kMeasuredUnitsOfOneSignInTiles);
}

TEST(TileProductTest, TermsThatAreLostStayWithinTheBound) {
  if (TileProductOf() == nullptr) GTEST_SKIP() << "no vectors";
  for (Form form : {Form::kPlain, Form::kTransposedLeft, Form::kTransposedRight}) {
    for (Terms terms : {Terms::kOneLarge, Terms::kCancelled}) {
      double worst = 0;
      for (int64_t k : {1, 2, 16, 63, 64, 65, 127, 128, 129, 197, 1500, 4096}) {
        worst = std::max(worst, ExpectProduct(5, 33, k, form, terms, TileProductUnits(k)));
      }
      EXPECT_GT(worst, kMeasuredUnits);  // they are worse than random ones
    }
  }
}

}  // namespace
}  // namespace hlokit::interp::compiled
