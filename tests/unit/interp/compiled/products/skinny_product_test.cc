// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/products/skinny_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interp/compiled/products/product_error.h"

namespace hlokit::interp::compiled {
namespace {

// Runs products of positive terms, so that the errors of a long sum of f32 grow with it: random ones, or a large one of
// each 128 and others too small to change a sum that has it. Expects errors within the bound, and within `measured`
// units. Returns the worst.
double ExpectProducts(const std::vector<int64_t>& lengths, bool is_random, double measured) {
  constexpr int64_t kColumns = 70;
  double most = 0;
  for (int64_t k : lengths) {
    for (bool rows_contiguous : {false, true}) {
      SkinnyProduct product;
      product.m = k > 100000 ? 1 : 5;
      product.n = kColumns;
      product.k = product.lhs_row = k;
      product.rows_contiguous = rows_contiguous;
      product.rhs_stride = rows_contiguous ? kColumns : k;
      product.result_row = kColumns;
      uint32_t state = 1;
      const auto next = [&state] {
        state = state * 1664525u + 1013904223u;
        return static_cast<float>(state >> 8) * 0x1p-24f;
      };
      std::vector<float> lhs(static_cast<size_t>(product.m * k)), rhs(static_cast<size_t>(k * kColumns));
      for (float& x : lhs) x = next();
      for (float& x : rhs) x = next();
      if (!is_random) {
        for (size_t p = 0; p < lhs.size(); ++p) lhs[p] = p % static_cast<size_t>(k) % 128 == 0 ? 1 : 0x1.fp-26f;
        std::fill(rhs.begin(), rhs.end(), 1.0f);
      }
      std::vector<float> result(static_cast<size_t>(product.m * kColumns));
      std::vector<float> parts(static_cast<size_t>(product.parts() * product.part_size()));
      float* const sums = product.parts() == 0 ? nullptr : parts.data();
      SkinnyProductOf()(product, lhs.data(), reinterpret_cast<const std::byte*>(rhs.data()), result.data(), sums,
                        {0, kColumns, 0, k});
      if (sums != nullptr) AddSkinnyParts(product, sums, result.data(), 0, kColumns);
      double worst = 0;
      for (int64_t i = 0; i < product.m; ++i) {
        for (int64_t j = 0; j < kColumns; ++j) {
          double exact = 0;
          for (int64_t p = 0; p < k; ++p) {
            const int64_t at = rows_contiguous ? p * kColumns + j : j * k + p;
            exact += double{lhs[static_cast<size_t>(i * k + p)]} * double{rhs[static_cast<size_t>(at)]};
          }
          const double error = double{result[static_cast<size_t>(i * kColumns + j)]} - exact;
          worst = std::max(worst, std::abs(error) / exact);
        }
      }
      worst *= 0x1p24;
      EXPECT_LE(worst, std::min(SkinnyProductUnits(k, rows_contiguous), measured))
          << k << (rows_contiguous ? " by rows" : " by columns");
      most = std::max(most, worst);
    }
  }
  return most;
}

TEST(SkinnyProductTest, LongSumsAreAsExactAsMeasured) {
  ExpectProducts({7, 100, 1000, 4096, 40000, 262144}, true, kMeasuredUnits);
  // The most terms that are added one by one.
  ExpectProducts({1, 127, 4095}, true, kMeasuredUnitsOfOneSignWithFewRows);
}

TEST(SkinnyProductTest, TermsThatAreLostStayWithinTheBound) {
  EXPECT_GT(ExpectProducts({1, 7, 100, 127, 1000, 4095, 262144}, false, SkinnyProductUnits(262144, false)),
            kMeasuredUnits);
}

}  // namespace
}  // namespace hlokit::interp::compiled
