// SPDX-License-Identifier: Apache-2.0
// Matmuls, decompositions, batch normalization, Fourier transforms and random numbers.
#include <string>
#include <utility>

#include "tests/random/module_generator.h"

namespace hlokit::random_test {

bool ModuleGenerator::EmitLinearAlgebra(Opcode opcode) {
  const std::string_view text = ToString(opcode);
  const ElementType real = random_.Of(kReals);
  const int64_t m = random_.In(1, 4), k = random_.In(1, 4), n = random_.In(1, 4), b = random_.In(1, 3);
  switch (InfoOf(opcode).shape_rule) {
    case ShapeRule::kDot: {
      const ElementType type = random_.Of(kNumbers);
      if (random_.OneIn(3)) {
        // As large as those of other kernels.
        const int64_t rows = Size(2), terms = random_.OneIn(8) ? random_.In(100, 300) : Size(2), columns = Size(2);
        Add({type, {b, rows, columns}}, text, {Need({type, {b, rows, terms}}), Need({type, {b, terms, columns}})},
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}");
        return true;
      }
      Add({type, {b, m, n}}, text, {Need({type, {b, m, k}}), Need({type, {n, k, b}})},
          StrCat("lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={2}, rhs_contracting_dims={1}",
                 BitsOf(type) == 8 && random_.OneIn(2) ? ", operand_precision={packed_nibble,packed_nibble}" : ""));
      return true;
    }
    case ShapeRule::kRaggedDot:
      Add({real, {m, n}}, text, {Need({real, {m, k}}), Need({real, {b, k, n}}), Need({kS32, {b}})},
          "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}");
      return true;
    case ShapeRule::kScaledDot:
      Add({kF32, {m, n}}, text,
          {Need({kF8E4M3FN, {m, 2 * k}}), Need({kF8E4M3FN, {n, 2 * k}}), Need({kF32, {m, k}}), Need({kF32, {n, k}})},
          "lhs_contracting_dims={1}, rhs_contracting_dims={1}");
      return true;
    case ShapeRule::kConvolution: {
      const ElementType type = random_.Of(kNumbers);
      const int64_t size = random_.In(1, 3), stride = random_.In(1, 2), low = random_.In(0, 1);
      const int64_t padded = m + 2 + low;
      const Array result{type, {b, (padded - size) / stride + 1, n}};
      const Dims kernel = {size, k, n};
      std::string attributes = StrCat("window={size=", size, " stride=", stride, " pad=", low, "_0",
                                      random_.OneIn(2) ? " rhs_reversal=1" : "", "}, dim_labels=b0f_0io->b0f");
      if (random_.OneIn(4)) {
        // One of each pair of features is kept: the first or the second.
        const std::string places = Add({kU8, kernel}, "convert", {Need({kPred, kernel})}).name;
        StrAppend(&attributes, ", sparsity_config={rhs={sparsity=1x2 dimension=1 stride=1 idx=2}}");
        Add(result, text, {Need({type, {b, m + 2, 2 * k}}), Need({type, kernel}), places}, attributes);
      } else {
        Add(result, text, {Need({type, {b, m + 2, k}}), Need({type, kernel})}, attributes);
      }
      return true;
    }
    case ShapeRule::kFft:
      Add({kC64, {b, m}}, text, {Need({kC64, {b, m}})},
          StrCat("fft_type=", random_.OneIn(2) ? "FFT" : "IFFT", ", fft_length={", m, "}"));
      return true;
    case ShapeRule::kCholesky: {
      const Array array{random_.OneIn(4) ? kC64 : real, {b, m, m}};
      Add(array, text, {Need(array)}, "lower=true");
      return true;
    }
    case ShapeRule::kTriangularSolve: {
      const Array right{real, {b, m, n}};
      Add(right, text, {Need({real, {b, m, m}}), Need(right)},
          "left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE");
      return true;
    }
    case ShapeRule::kBatchNormTraining:
      AddTuple({{kF32, {b, n}}, {kF32, {n}}, {kF32, {n}}}, text,
               {Need({kF32, {b, n}}), Need({kF32, {n}}), Need({kF32, {n}})}, "epsilon=0.01, feature_index=1");
      return true;
    case ShapeRule::kBatchNormInference:
      Add({kF32, {b, n}}, text,
          {Need({kF32, {b, n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {n}})},
          "epsilon=0.01, feature_index=1");
      return true;
    case ShapeRule::kBatchNormGrad:
      AddTuple({{kF32, {b, n}}, {kF32, {n}}, {kF32, {n}}}, text,
               {Need({kF32, {b, n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {n}}), Need({kF32, {b, n}})},
               "epsilon=0.01, feature_index=1");
      return true;
    case ShapeRule::kRng:
      // The order of several random instructions depends on the print order.
      if (std::exchange(draws_, true)) return true;
      Add({kF32, {m, n}}, text, {Scalar(kF32), Scalar(kF32)}, "distribution=rng_uniform");
      return true;
    case ShapeRule::kRngBitGenerator:
      AddTuple({{kU64, {2}}, {kU32, {m, n}}}, text, {Need({kU64, {2}})},
               StrCat("algorithm=", random_.OneIn(2) ? "rng_three_fry" : "rng_philox"));
      return true;
    case ShapeRule::kRngGetAndUpdateState:
      if (std::exchange(draws_, true)) return true;
      Add({kU64, {2}}, text, {}, StrCat("delta=", m));
      return true;
    default:
      return false;
  }
}

}  // namespace hlokit::random_test
