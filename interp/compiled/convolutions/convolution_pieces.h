// SPDX-License-Identifier: Apache-2.0
// Convolutions divided into pieces: images of batches, or features of the result for gradients of weights.
#ifndef HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_PIECES_H_
#define HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_PIECES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "interp/compiled/code/library_interface.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/program/program.h"

namespace hlokit::interp::compiled {

// A convolution as the library has it. Images are dense, with features as the minor dimension.
struct ConvolutionProblem {
  LibrarySpec spec;
  double work = 0;  // multiplications

  int spatial_rank() const { return spec.src.rank - 2; }
  // Returns the number of positions of an image.
  static int64_t Positions(const LibraryArray& images) {
    int64_t positions = 1;
    for (int d = 2; d < images.rank; ++d) positions *= images.dims[d];
    return positions;
  }
};

// Describes dense images [n, c, spatial..] with features as the minor dimension, as they are or in another layout.
void SetImageStrides(LibraryArray* images);

// A kernel with parameters for one convolution. Operands: those of the instruction, with weights packed in these parts
// if there are any; one result.
struct ConvolutionKernel {
  Kernel kernel = nullptr;
  std::unique_ptr<ThunkParams> params;  // null: the library has no such primitive
  std::vector<PackedWeights::Part> packed;
  int64_t thread_scratch = 0;
};

// Divides a convolution or a gradient by images.
ConvolutionKernel MakeImagePieces(const ConvolutionProblem& problem);
// Divides a convolution or the gradient of its input by features of the result.
ConvolutionKernel MakeResultFeaturePieces(const ConvolutionProblem& problem, int64_t pieces);
// Chooses among both by the shapes.
ConvolutionKernel MakeConvolution(const ConvolutionProblem& problem);
// Divides the gradient of weights by features of the forward convolution's result. `feature_blocks`: the library has
// the arrays in blocks of 16 features.
ConvolutionKernel MakeFeaturePieces(const ConvolutionProblem& problem, int64_t pieces, bool feature_blocks);
// Chooses among pieces of images and of features by the shapes.
ConvolutionKernel MakeWeightsGradient(const ConvolutionProblem& problem);

// Bytes of an array without gaps.
int64_t BytesOfArray(const LibraryArray& array);

}  // namespace hlokit::interp::compiled

#endif  // HLOKIT_INTERP_COMPILED_CONVOLUTIONS_CONVOLUTION_PIECES_H_
