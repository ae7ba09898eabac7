// SPDX-License-Identifier: Apache-2.0
// Dots, ragged dots, convolutions, Fourier transforms, Cholesky and triangular solves.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/random/dimension_numbers_generator.h"

namespace hlokit::random_test {

bool DimensionNumbersGenerator::MakeProduct() {
  if (case_.opcode == Opcode::kDot) {
    MakeDot();
  } else if (case_.opcode == Opcode::kRaggedDot) {
    MakeRaggedDot();
  } else if (case_.opcode == Opcode::kConvolution) {
    MakeConvolution();
  } else {
    return false;
  }
  return true;
}

void DimensionNumbersGenerator::MakeDot() {
  const Dims lhs = SomeDims(0, 4);
  Dims rhs = SomeDims(0, 4);
  const auto left_rank = static_cast<int64_t>(lhs.size()), right_rank = static_cast<int64_t>(rhs.size());
  const int64_t bound = random_.In(0, std::min(left_rank, right_rank));
  const int64_t batch = random_.In(0, bound);
  const Dims left = Distinct(left_rank, bound), right = Distinct(right_rank, bound);
  for (size_t i = 0; i < left.size(); ++i) {
    if (!random_.OneIn(60)) rhs[static_cast<size_t>(right[i])] = lhs[static_cast<size_t>(left[i])];
  }
  const ElementType type = AnyType();
  AddOperand({type, lhs});
  AddOperand({random_.OneIn(8) ? AnyType() : type, rhs});
  const auto split = static_cast<ptrdiff_t>(batch);
  ListAttribute("lhs_batch_dims", Odd(Dims(left.begin(), left.begin() + split), left_rank));
  ListAttribute("rhs_batch_dims", Odd(Dims(right.begin(), right.begin() + split), right_rank));
  ListAttribute("lhs_contracting_dims", Odd(Dims(left.begin() + split, left.end()), left_rank));
  ListAttribute("rhs_contracting_dims", Odd(Dims(right.begin() + split, right.end()), right_rank));
  if (random_.OneIn(6)) case_.result_type = AnyType();
}

void DimensionNumbersGenerator::MakeRaggedDot() {
  // Roles of the dimensions of the left side: batch, contracting, free.
  const int64_t batch = random_.In(0, 2), contracting = random_.In(0, 2), free = random_.In(0, 2);
  const int64_t rank = batch + contracting + free;
  const Dims lhs = SomeDims(rank, rank);
  const Dims order = Distinct(rank, rank);
  const auto left = [&](int64_t begin, int64_t count) {
    return Dims(order.begin() + static_cast<ptrdiff_t>(begin), order.begin() + static_cast<ptrdiff_t>(begin + count));
  };
  const Dims lhs_batch = left(0, batch), lhs_contracting = left(batch, contracting);
  const int64_t ragged = rank == 0 ? 0 : random_.In(0, rank - 1);
  const int64_t at = std::find(order.begin(), order.end(), ragged) - order.begin();
  const bool is_free = at >= batch + contracting;
  const int64_t right_free = random_.In(0, 2), right_rank = batch + contracting + right_free + (is_free ? 1 : 0);
  const Dims right = Distinct(right_rank, right_rank);
  Dims rhs = SomeDims(right_rank, right_rank);
  for (int64_t i = 0; i < batch + contracting; ++i) {
    rhs[static_cast<size_t>(right[static_cast<size_t>(i)])] = lhs[static_cast<size_t>(order[static_cast<size_t>(i)])];
  }
  const int64_t groups = random_.In(0, 4);
  if (is_free) rhs[static_cast<size_t>(right.back())] = groups;
  Dims sizes;
  if (random_.OneIn(2)) {
    // Group sizes of their own for the dimensions before the ragged one.
    for (int64_t d : lhs_batch) {
      if (d == ragged) break;
      sizes.push_back(lhs[static_cast<size_t>(d)]);
    }
    if (at >= batch && !is_free) {
      for (int64_t d : lhs_contracting) {
        if (d == ragged) break;
        sizes.push_back(lhs[static_cast<size_t>(d)]);
      }
    }
    for (int64_t d = 0; is_free && d < ragged; ++d) {
      if (std::find(order.begin(), order.begin() + static_cast<ptrdiff_t>(batch + contracting), d) ==
          order.begin() + static_cast<ptrdiff_t>(batch + contracting)) {
        sizes.push_back(lhs[static_cast<size_t>(d)]);
      }
    }
  }
  sizes.push_back(groups);
  const ElementType type = AnyType();
  AddOperand({type, lhs});
  AddOperand({Near(type), rhs});
  if (random_.OneIn(3)) {
    case_.has_overlaps = true;
    AddIndices({IndexType(), sizes}, 3);
  } else {
    int64_t count = 1;
    for (int64_t d : sizes) count *= d;
    std::vector<std::string> elements;
    for (int64_t i = 0; i < count; ++i) elements.push_back(StrCat(random_.In(0, 3)));
    AddValues({random_.OneIn(2) ? kS32 : kU8, sizes}, "", elements);
  }
  const auto right_part = [&](int64_t begin, int64_t count) {
    return Dims(right.begin() + static_cast<ptrdiff_t>(begin), right.begin() + static_cast<ptrdiff_t>(begin + count));
  };
  ListAttribute("lhs_batch_dims", Odd(lhs_batch, rank));
  ListAttribute("rhs_batch_dims", Odd(right_part(0, batch), right_rank));
  ListAttribute("lhs_contracting_dims", Odd(lhs_contracting, rank));
  ListAttribute("rhs_contracting_dims", Odd(right_part(batch, contracting), right_rank));
  ListAttribute("lhs_ragged_dims", Odd({ragged}, rank));
  ListAttribute("rhs_group_dims", Odd(is_free ? Dims{right.back()} : Dims(), right_rank));
  if (random_.OneIn(8)) case_.result_type = AnyType();
}

void DimensionNumbersGenerator::MakeConvolution() {
  const int64_t spatial = random_.In(0, 3), rank = spatial + 2;
  const int64_t groups = random_.OneIn(3) ? random_.In(1, 3) : 1;
  const bool batch_groups = random_.OneIn(2);
  const int64_t features = random_.OneIn(20) ? 0 : random_.In(1, 3);
  Dims image = SomeDims(spatial, spatial), kernel;
  for (int64_t d : image)
    kernel.push_back(random_.OneIn(30) ? 0 : random_.In(1, std::max<int64_t>(1, std::min<int64_t>(d, 4))));
  // Batch and feature, or input and output feature, then the spatial dimensions; then in the order of the labels.
  Dims input = {random_.In(0, 2) * (batch_groups ? groups : 1), features * (batch_groups ? 1 : groups)};
  Dims weights = {features, groups * random_.In(0, 2)};
  input.insert(input.end(), image.begin(), image.end());
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  const auto labels = [&](std::string_view first, const Dims& order) {
    std::string text;
    for (int64_t d : order) {
      text += d < 2 ? first[static_cast<size_t>(d)] : static_cast<char>('0' + d - 2);
    }
    if (random_.OneIn(60)) text[0] = random_.Of(std::vector<char>{'b', 'f', '0', '9', 'i', 'o', '?'});
    return text;
  };
  const auto ordered = [](const Dims& dims, const Dims& order) {
    Dims result;
    for (int64_t d : order) result.push_back(dims[static_cast<size_t>(d)]);
    return result;
  };
  const Dims input_order = Distinct(rank, rank), kernel_order = Distinct(rank, rank);
  const ElementType type = AnyType();
  AddOperand({type, ordered(input, input_order)});
  AddOperand({random_.OneIn(8) ? AnyType() : type, ordered(weights, kernel_order)});
  Window(image, kernel, /*dilated=*/true);
  Attribute("dim_labels", StrCat(labels("bf", input_order), "_", labels("io", kernel_order), "->",
                                 labels("bf", Distinct(rank, rank))));
  if (groups != 1) Attribute(batch_groups ? "batch_group_count" : "feature_group_count", StrCat(Number(groups)));
  if (random_.OneIn(6)) case_.result_type = AnyType();
}

bool DimensionNumbersGenerator::MakeAlgebra() {
  Dims batch = SomeDims(0, 2);
  const auto with = [&](int64_t m, int64_t n) {
    Dims dims = batch;
    dims.push_back(m);
    dims.push_back(n);
    return dims;
  };
  const bool complex = random_.OneIn(3);
  const ElementType type = complex ? (random_.OneIn(2) ? kC64 : kC128) : FloatType();
  if (case_.opcode == Opcode::kFft) {
    static const std::vector<std::string> kinds = {"FFT", "IFFT", "RFFT", "IRFFT"};
    const std::string kind = random_.Of(kinds);
    const Dims length = SomeDims(1, 3);
    for (size_t i = 0; i < length.size(); ++i) {
      const bool half = kind == "IRFFT" && i + 1 == length.size();
      batch.push_back(half ? length[i] / 2 + 1 : random_.OneIn(20) ? Size() : length[i]);
    }
    AddOperand({kind == "RFFT" ? (random_.OneIn(2) ? kF32 : kF64) : random_.OneIn(2) ? kC64 : kC128, batch});
    Attribute("fft_type", kind);
    Dims odd = length;
    for (int64_t& n : odd) n = Number(n);
    ListAttribute("fft_length", Odd(odd, 5));
    return true;
  }
  const int64_t n = Size();
  if (case_.opcode == Opcode::kCholesky) {
    AddOperand({type, with(n, n)});
    Attribute("lower", random_.OneIn(2) ? "true" : "false");
    return true;
  }
  if (case_.opcode != Opcode::kTriangularSolve) return false;
  static const std::vector<std::string> transposes = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  const bool left = random_.OneIn(2);
  const int64_t m = Size();
  AddOperand({type, with(n, n)});
  AddOperand({type, left ? with(n, m) : with(m, n)});
  Attribute("left_side", left ? "true" : "false");
  Attribute("lower", random_.OneIn(2) ? "true" : "false");
  Attribute("unit_diagonal", random_.OneIn(2) ? "true" : "false");
  Attribute("transpose_a", random_.Of(transposes));
  return true;
}

}  // namespace hlokit::random_test
