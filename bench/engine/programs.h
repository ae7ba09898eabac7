// SPDX-License-Identifier: Apache-2.0
// Programs of one kind of work, as HLO text.
#ifndef HLOKIT_BENCH_ENGINE_PROGRAMS_H_
#define HLOKIT_BENCH_ENGINE_PROGRAMS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/engine/library.h"

namespace hlokit::bench {

// `transposed`: the right operand is columns x depth. `transposed_lhs`: the left one is depth x rows, as in gradients
// of weights.
std::string ProductText(const ProductSizes& sizes, bool transposed, bool transposed_lhs = false);
// Activations have the channels as last dimension, or width ("NCHW").
std::string ConvolutionText(const ConvolutionSizes& sizes, Gradient gradient, bool channels_minor);

// Ten elementwise instructions, with one transcendental function or three, on two arrays.
std::string ChainText(int64_t elements, bool three_functions);
std::string LayerNormText(int64_t rows, int64_t columns);

// Images of 8 x channels x size x size.
std::string BatchNormText(int64_t channels, int64_t size, bool gradient, bool channels_minor);
// 3 x 3 maxima, or 2 x 2 averages, with stride 2.
std::string MaxPoolText(int64_t channels, int64_t size, bool gradient, bool channels_minor);
std::string AveragePoolText(int64_t channels, int64_t size, bool gradient, bool channels_minor);

// An array of f32, rows x columns, that instructions move together from elsewhere, doubled.
enum class Moved { kConcatenate, kPad, kDynamicSlice, kGatherRows };
std::string MovedText(Moved how, int64_t rows, int64_t columns);
// Converts f32 to a narrower type, scaled, or back.
std::string NarrowText(std::string_view type, int64_t elements, bool back);
// The position of the greatest element of each row of f32, as JAX writes it.
std::string ArgMaxText(int64_t rows, int64_t columns);

// A loop that generates tokens with a model in the style of Llama and a cache of keys and values.
struct DecodeSizes {
  int64_t layers = 4;
  int64_t hidden = 1024;
  int64_t feed_forward = 2816;
  int64_t vocabulary = 8192;
  int64_t positions = 128;
  int64_t tokens = 8;

  // Bytes of weights that a token takes.
  int64_t weight_bytes() const {
    return 4 * (layers * (4 * hidden * hidden + 3 * hidden * feed_forward) + hidden * vocabulary);
  }
};
std::string DecodeText(const DecodeSizes& sizes);

// Returns the program with one element of its result, or of its first one, as the only result, behind a barrier that
// keeps all of them in the program's memory: so a run has no results to copy.
std::string WithSmallResult(const std::string& text);

// Products of 2 x 2 matrices, each of the one before.
std::string SmallStepsText(int64_t count);

}  // namespace hlokit::bench

#endif  // HLOKIT_BENCH_ENGINE_PROGRAMS_H_
