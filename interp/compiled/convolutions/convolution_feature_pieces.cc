// SPDX-License-Identifier: Apache-2.0
// Convolutions and gradients of their inputs divided by features of the result: each piece computes some features of
// all images, with its own part of the weights.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/convolutions/convolution_pieces.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/exact/machine/run_context.h"

namespace hlokit::interp::compiled {
namespace {

struct ResultFeatureParams : ThunkParams {
  std::shared_ptr<const LibraryPrimitive> primitive;
  bool to_src = false;
  int64_t pieces = 1;
  int64_t positions = 1;       // of all images of the result
  int64_t position_bytes = 0;  // of the result
  int64_t piece_bytes = 0;     // of one position of a piece
  int64_t weights_piece = 0;   // bytes
  int64_t scratch = 0;         // of the primitive; the result of a piece follows
  double cost = 1;
};

void RunResultFeatures(const ResultFeatureParams& p, const std::byte* const* in, std::byte* const* out,
                       RunContext& context) {
  std::atomic<bool> ok = true;
  context.ParallelFor(p.pieces, p.cost, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      if (context.ShouldStop()) return;
      std::byte* const memory = ThreadScratch(context, p.scratch + p.positions * p.piece_bytes, "a convolution");
      if (memory == nullptr) return;
      auto* const from = const_cast<std::byte*>(in[0]);
      auto* const weights = const_cast<std::byte*>(in[1]) + piece * p.weights_piece;
      std::byte* const made = memory + p.scratch;
      if (!p.primitive->Run(p.to_src ? made : from, weights, p.to_src ? from : made, memory)) {
        ok = false;
        continue;
      }
      std::byte* to = out[0] + piece * p.piece_bytes;
      for (int64_t i = 0; i < p.positions; ++i, to += p.position_bytes) {
        std::memcpy(to, made + i * p.piece_bytes, static_cast<size_t>(p.piece_bytes));
      }
    }
  });
  if (!ok) context.Fail("oneDNN cannot compute a convolution");
}

}  // namespace

ConvolutionKernel MakeResultFeaturePieces(const ConvolutionProblem& problem, int64_t pieces) {
  LibrarySpec spec = problem.spec;
  ConvolutionKernel result;
  auto params = std::make_unique<ResultFeatureParams>();
  params->to_src = spec.op == LibraryOp::kConvolutionBackwardData;
  LibraryArray& to = params->to_src ? spec.src : spec.dst;
  const int features = params->to_src ? 1 : 0;  // the dimension of weights
  params->pieces = pieces;
  params->positions = to.dims[0] * ConvolutionProblem::Positions(to);
  params->position_bytes = to.dims[1] * BytesOf(to.type);
  to.dims[1] /= pieces;
  spec.weights.dims[features] /= pieces;
  params->piece_bytes = to.dims[1] * BytesOf(to.type);
  SetImageStrides(&to);
  params->primitive.reset((*ProductLibrary())->Create(spec, nullptr));
  if (params->primitive == nullptr) return result;
  const int64_t packed = params->primitive->packed_bytes(LibraryRole::kWeights);
  if (packed == 0) return result;
  params->weights_piece = AlignedBytes(packed);
  for (int64_t piece = 0; piece < pieces; ++piece) {
    PackedWeights::Part part;
    part.primitive = params->primitive;
    part.from = piece * spec.weights.dims[features] * spec.weights.strides[features] * BytesOf(spec.weights.type);
    part.to = piece * params->weights_piece;
    part.packed = packed;
    result.packed.push_back(std::move(part));
  }
  params->scratch = AlignedBytes(params->primitive->scratch_bytes());
  params->cost = 8e-3 * problem.work / static_cast<double>(pieces);
  result.thread_scratch = params->scratch + params->positions * params->piece_bytes;
  result.kernel = kKernel<RunResultFeatures>;
  result.params = std::move(params);
  return result;
}

// Measured: with one image there are two pieces of features rather than one; with few positions an image, pieces of
// images read all weights for too few positions.
ConvolutionKernel MakeConvolution(const ConvolutionProblem& problem) {
  const LibrarySpec& spec = problem.spec;
  const bool to_src = spec.op == LibraryOp::kConvolutionBackwardData;
  const LibraryArray& to = to_src ? spec.src : spec.dst;
  const int64_t positions = ConvolutionProblem::Positions(to);
  constexpr double kWork = 3e7;
  constexpr int64_t kMaxPositions = 64;
  constexpr int64_t kMinFeatures = 32;
  const bool grouped = spec.weights.rank > spec.src.rank;
  int64_t pieces = 1;
  if (to.dims[0] == 1 && problem.work >= kWork) pieces = 2;
  if (to.dims[0] > 1 && positions <= kMaxPositions && to.dims[1] >= 4 * kMaxPositions) pieces = to_src ? 4 : 2;
  if (!grouped && pieces > 1 && to.dims[1] % (pieces * kMinFeatures) == 0) {
    ConvolutionKernel kernel = MakeResultFeaturePieces(problem, pieces);
    if (kernel.params != nullptr) return kernel;
  }
  return MakeImagePieces(problem);
}

}  // namespace hlokit::interp::compiled
