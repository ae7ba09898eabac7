// SPDX-License-Identifier: Apache-2.0
// Which dimensions of the operands and the result of a convolution are batch, feature and spatial ones:
// `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`, or the fields of `#stablehlo.conv raw<...>`.
#ifndef HLOKIT_PARSER_MLIR_CONVOLUTION_NUMBERS_H_
#define HLOKIT_PARSER_MLIR_CONVOLUTION_NUMBERS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parser/mlir/node.h"

namespace hlokit::mlir {

struct ConvolutionNumbers {
  // Of the input and the output: batch and feature; of the kernel: input and output feature.
  struct Part {
    int64_t first = 0, second = 0;
    std::vector<int64_t> spatial;
  };
  std::array<Part, 3> parts;  // input, kernel, output
};

// Each returns what is wrong, or "".
std::string ReadConvolutionNumbers(std::string_view text, ConvolutionNumbers* numbers);
std::string ReadConvolutionNumbers(const NodeTable& nodes, NodeId attribute, ConvolutionNumbers* numbers);

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_CONVOLUTION_NUMBERS_H_
