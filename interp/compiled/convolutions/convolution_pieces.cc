// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/convolutions/convolution_pieces.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/exact/machine/run_context.h"

namespace hlokit::interp::compiled {

void SetImageStrides(LibraryArray* images) {
  int64_t stride = images->dims[1];
  images->strides[1] = 1;
  for (int d = images->rank; d-- > 2;) {
    images->strides[d] = stride;
    stride *= images->dims[d];
  }
  images->strides[0] = stride;
}

int64_t BytesOfArray(const LibraryArray& array) {
  int64_t bytes = BytesOf(array.type);
  for (int d = 0; d < array.rank; ++d) bytes *= array.dims[d];
  return bytes;
}

namespace {

constexpr int64_t kBlock = 16;  // features, of LibraryArray::Layout::kFeatureBlocks

// Copies features next to each other of positions that are `stride` bytes apart into dense positions.
void CopyFeatures(const std::byte* from, int64_t positions, int64_t stride, int64_t bytes, std::byte* to) {
  for (int64_t i = 0; i < positions; ++i) {
    std::memcpy(to + i * bytes, from + i * stride, static_cast<size_t>(bytes));
  }
}

// Copies such features into blocks of 16 f32 features, image by image.
void CopyFeatureBlocks(const std::byte* from, int64_t images, int64_t positions, int64_t stride, int64_t features,
                       std::byte* to) {
  constexpr int64_t kBytes = kBlock * int64_t{sizeof(float)};
  const int64_t blocks = features / kBlock;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t i = 0; i < positions; ++i) {
      const std::byte* const at = from + (image * positions + i) * stride;
      std::byte* const first = to + (image * blocks * positions + i) * kBytes;
      for (int64_t b = 0; b < blocks; ++b) std::memcpy(first + b * positions * kBytes, at + b * kBytes, kBytes);
    }
  }
}

struct ImageParams : ThunkParams {
  LibraryOp op = LibraryOp::kConvolution;
  std::shared_ptr<const LibraryPrimitive> primitives[2];  // of the last piece: [1]
  int64_t images = 1;                                     // of a piece
  int64_t last_images = 1;
  int64_t pieces = 1;
  int64_t src_image = 0;  // bytes
  int64_t dst_image = 0;
  // Copies into blocks of features: positions and features of src and dst. Not copied: 0 features.
  int64_t src_positions = 0, src_features = 0;
  int64_t dst_positions = 0, dst_features = 0;
  // Scratch memory of a thread: of the primitive, then src and dst in its layout, in bytes.
  int64_t scratch = 0;
  int64_t src_packed = 0;
  int64_t dst_packed = 0;
  int64_t weights_packed = 0;  // of gradients of weights; 0: as they are
  int64_t weights_bytes = 0;   // of the weights as the primitive has them
  double cost = 1;

  const LibraryPrimitive& At(int64_t piece) const { return *primitives[piece + 1 == pieces]; }
  int64_t ImagesOf(int64_t piece) const { return piece + 1 == pieces ? last_images : images; }
};

std::byte* At(const std::byte* data, int64_t bytes) { return const_cast<std::byte*>(data) + bytes; }

// Runs one piece, with src and dst in the layout of the program. `memory`: scratch memory.
bool RunImages(const ImageParams& p, int64_t piece, const std::byte* src, std::byte* weights, const std::byte* dst,
               std::byte* memory) {
  const LibraryPrimitive& primitive = p.At(piece);
  std::byte* const own_src = At(src, piece * p.images * p.src_image);
  std::byte* const own_dst = At(dst, piece * p.images * p.dst_image);
  std::byte* const in_src = p.src_packed > 0 ? memory + p.scratch : own_src;
  std::byte* const in_dst = p.dst_packed > 0 ? memory + p.scratch + p.src_packed : own_dst;
  const bool to_src = p.op == LibraryOp::kConvolutionBackwardData;
  const bool to_dst = p.op == LibraryOp::kConvolution;
  if (p.src_features > 0) {
    CopyFeatureBlocks(own_src, p.ImagesOf(piece), p.src_positions, p.src_image / p.src_positions, p.src_features,
                      in_src);
    CopyFeatureBlocks(own_dst, p.ImagesOf(piece), p.dst_positions, p.dst_image / p.dst_positions, p.dst_features,
                      in_dst);
    return primitive.Run(in_src, weights, in_dst, memory);
  }
  if (in_src != own_src && !to_src && !primitive.Pack(LibraryRole::kSrc, own_src, in_src, memory)) return false;
  if (in_dst != own_dst && !to_dst && !primitive.Pack(LibraryRole::kDst, own_dst, in_dst, memory)) return false;
  if (!primitive.Run(in_src, weights, in_dst, memory)) return false;
  if (in_src != own_src && to_src && !primitive.Unpack(LibraryRole::kSrc, in_src, own_src, memory)) return false;
  return in_dst == own_dst || !to_dst || primitive.Unpack(LibraryRole::kDst, in_dst, own_dst, memory);
}

void FailConvolution(RunContext& context) { context.Fail("oneDNN cannot compute a convolution"); }

void RunImagePieces(const ImageParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  std::atomic<bool> ok = true;
  const bool to_src = p.op == LibraryOp::kConvolutionBackwardData;
  const bool to_weights = p.op == LibraryOp::kConvolutionBackwardWeights;
  // Gradients of weights: one for each piece, added in order.
  std::optional<Scratch> memory;
  const int64_t parts = to_weights ? p.pieces : 1;
  std::byte* weights = to_weights ? out[0] : const_cast<std::byte*>(in[1]);
  if (to_weights && (p.weights_packed > 0 || parts > 1)) {
    memory.emplace(context, parts * AlignedBytes(p.weights_bytes));
    weights = memory->data();
    if (weights == nullptr) return;
  }
  const std::byte* const src = to_src ? out[0] : in[0];
  const std::byte* const dst = to_src ? in[0] : to_weights ? in[1] : out[0];
  context.ParallelFor(p.pieces, p.cost, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      if (context.ShouldStop()) return;
      std::byte* const scratch = ThreadScratch(context, p.scratch + p.src_packed + p.dst_packed, "a convolution");
      if (scratch == nullptr) return;
      std::byte* const own = to_weights ? weights + piece * AlignedBytes(p.weights_bytes) : weights;
      if (!RunImages(p, piece, src, own, dst, scratch)) ok = false;
    }
  });
  if (memory && !context.failed()) {
    float* const sum = reinterpret_cast<float*>(weights);
    context.ParallelFor(
        p.weights_bytes / int64_t{sizeof(float)}, 0.2 * static_cast<double>(parts), [&](int64_t begin, int64_t end) {
          for (int64_t part = 1; part < parts; ++part) {
            const float* const more = reinterpret_cast<const float*>(weights + part * AlignedBytes(p.weights_bytes));
            for (int64_t i = begin; i < end; ++i) sum[i] += more[i];
          }
        });
    if (p.weights_packed > 0) {
      std::byte* const scratch = ThreadScratch(context, p.scratch, "a convolution");
      if (scratch == nullptr) return;
      ok = ok && p.At(0).Unpack(LibraryRole::kWeights, weights, out[0], scratch);
    } else {
      std::copy_n(weights, p.weights_bytes, out[0]);
    }
  }
  if (!ok) FailConvolution(context);
}

struct FeatureParams : ThunkParams {
  std::shared_ptr<const LibraryPrimitive> primitive;
  int64_t pieces = 1;
  bool blocks = false;
  int64_t images = 1;
  int64_t src_positions = 1, dst_positions = 1;           // of an image
  int64_t src_features = 1, dst_features = 1;             // of a piece
  int64_t src_stride = 0, dst_stride = 0;                 // of positions, in bytes
  int64_t src_image = 0;                                  // bytes
  int64_t dst_piece = 0;                                  // bytes of the features of a piece, of one position
  int64_t result_piece = 0;                               // bytes
  int64_t scratch = 0, dst_bytes = 0, weights_bytes = 0;  // scratch memory of a thread; weights 0: as they are
  double cost = 1;
};

// `memory`: scratch memory.
bool RunFeatures(const FeatureParams& p, int64_t piece, const std::byte* src, const std::byte* dst, std::byte* result,
                 std::byte* memory) {
  std::byte* const own_dst = memory + p.scratch;
  const std::byte* const from = dst + piece * p.dst_piece;
  if (p.blocks) {
    CopyFeatureBlocks(from, p.images, p.dst_positions, p.dst_stride, p.dst_features, own_dst);
  } else {
    CopyFeatures(from, p.images * p.dst_positions, p.dst_stride, p.dst_piece, own_dst);
  }
  std::byte* const to = result + piece * p.result_piece;
  std::byte* const weights = p.weights_bytes > 0 ? own_dst + p.dst_bytes : to;
  return p.primitive->Run(const_cast<std::byte*>(src), weights, own_dst, memory) &&
         (weights == to || p.primitive->Unpack(LibraryRole::kWeights, weights, to, memory));
}

void RunFeaturePieces(const FeatureParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  std::atomic<bool> ok = true;
  std::optional<Scratch> memory;
  const std::byte* src = in[0];
  if (p.blocks) {
    memory.emplace(context, p.images * p.src_image);
    if (memory->data() == nullptr) return;
    context.ParallelFor(p.images, 0.1 * static_cast<double>(p.src_image), [&](int64_t begin, int64_t end) {
      CopyFeatureBlocks(in[0] + begin * p.src_image, end - begin, p.src_positions, p.src_stride, p.src_features,
                        memory->data() + begin * p.src_image);
    });
    src = memory->data();
  }
  context.ParallelFor(p.pieces, p.cost, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      if (context.ShouldStop()) return;
      std::byte* const scratch = ThreadScratch(context, p.scratch + p.dst_bytes + p.weights_bytes, "a convolution");
      if (scratch == nullptr) return;
      if (!RunFeatures(p, piece, src, in[1], out[0], scratch)) ok = false;
    }
  });
  if (!ok) FailConvolution(context);
}

// Returns the number of images of a piece. A piece has work for some hundred microseconds, and so many positions that
// the primitive keeps its rate; there are two pieces at least.
int64_t ImagesOfPiece(const ConvolutionProblem& problem, LibraryArray::Layout layout) {
  const int64_t count = problem.spec.src.dims[0];
  const int64_t positions = ConvolutionProblem::Positions(problem.spec.dst);
  constexpr double kWork = 1.5e7;
  int64_t images = static_cast<int64_t>(kWork / (problem.work / static_cast<double>(count))) + 1;
  int64_t min_positions = 100;
  if (problem.spec.op == LibraryOp::kConvolutionBackwardWeights) {
    // The gradients of the pieces are added, which costs as much as some positions.
    min_positions = layout == LibraryArray::Layout::kFeatureBlocks ? 3000 : 1500;
    constexpr int64_t kMaxPieces = 8;
    images = std::max(images, (count + kMaxPieces - 1) / kMaxPieces);
  }
  images = std::max(images, (min_positions + positions - 1) / positions);
  return std::clamp<int64_t>(images, 1, (count + 1) / 2);
}

ConvolutionKernel TryImagePieces(const ConvolutionProblem& problem, LibraryArray::Layout layout) {
  LibrarySpec spec = problem.spec;
  spec.src.layout = spec.dst.layout = layout;
  auto params = std::make_unique<ImageParams>();
  params->op = spec.op;
  const int64_t count = spec.src.dims[0];
  params->images = ImagesOfPiece(problem, layout);
  params->pieces = (count + params->images - 1) / params->images;
  params->last_images = count - (params->pieces - 1) * params->images;
  params->src_image = BytesOfArray(spec.src) / count;
  params->dst_image = BytesOfArray(spec.dst) / count;
  params->cost = 8e-3 * problem.work / static_cast<double>(params->pieces);
  const bool blocks = layout == LibraryArray::Layout::kFeatureBlocks;
  if (blocks) {
    params->src_positions = ConvolutionProblem::Positions(spec.src);
    params->dst_positions = ConvolutionProblem::Positions(spec.dst);
    params->src_features = spec.src.dims[1];
    params->dst_features = spec.dst.dims[1];
  }
  ConvolutionKernel result;
  for (int is_last : {0, 1}) {
    if (!is_last && params->pieces == 1) continue;
    spec.src.dims[0] = spec.dst.dims[0] = is_last ? params->last_images : params->images;
    const std::shared_ptr<const LibraryPrimitive> made(
        (*ProductLibrary())->Create(spec, is_last ? params->primitives[0].get() : nullptr));
    if (made == nullptr) return result;
    params->primitives[is_last] = made;
    params->scratch = std::max(params->scratch, AlignedBytes(made->scratch_bytes()));
    if (blocks) {
      params->src_packed = std::max(params->src_packed, AlignedBytes(BytesOfArray(spec.src)));
      params->dst_packed = std::max(params->dst_packed, AlignedBytes(BytesOfArray(spec.dst)));
    } else {
      params->src_packed = std::max(params->src_packed, AlignedBytes(made->packed_bytes(LibraryRole::kSrc)));
      params->dst_packed = std::max(params->dst_packed, AlignedBytes(made->packed_bytes(LibraryRole::kDst)));
    }
  }
  const LibraryPrimitive& first = params->At(0);
  const LibraryPrimitive& last = params->At(params->pieces - 1);
  for (LibraryRole role : {LibraryRole::kSrc, LibraryRole::kDst}) {
    // Both primitives must agree on what is packed.
    if ((first.packed_bytes(role) > 0) != (last.packed_bytes(role) > 0)) return result;
  }
  if (first.weights_layout() != last.weights_layout()) return result;
  const int64_t packed = first.packed_bytes(LibraryRole::kWeights);
  params->weights_bytes = packed > 0 ? packed : BytesOfArray(spec.weights);
  if (spec.op == LibraryOp::kConvolutionBackwardWeights) {
    params->weights_packed = packed;
  } else if (packed > 0) {
    PackedWeights::Part part;
    part.primitive = params->primitives[params->pieces == 1];
    part.packed = packed;
    result.packed.push_back(std::move(part));
  }
  result.thread_scratch = params->scratch + params->src_packed + params->dst_packed;
  result.kernel = kKernel<RunImagePieces>;
  result.params = std::move(params);
  return result;
}

}  // namespace

ConvolutionKernel MakeImagePieces(const ConvolutionProblem& problem) {
  ConvolutionKernel kernel = TryImagePieces(problem, problem.spec.src.layout);
  // For some numbers of features the library has no kernels for features as the minor dimension.
  if (kernel.params == nullptr) kernel = TryImagePieces(problem, LibraryArray::Layout::kAny);
  return kernel;
}

ConvolutionKernel MakeFeaturePieces(const ConvolutionProblem& problem, int64_t pieces, bool feature_blocks) {
  LibrarySpec spec = problem.spec;
  auto params = std::make_unique<FeatureParams>();
  params->pieces = pieces;
  params->blocks = feature_blocks;
  params->images = spec.src.dims[0];
  params->src_positions = ConvolutionProblem::Positions(spec.src);
  params->dst_positions = ConvolutionProblem::Positions(spec.dst);
  const int64_t bytes = BytesOf(spec.src.type);
  params->src_features = spec.src.dims[1];
  params->src_stride = params->src_features * bytes;
  params->src_image = params->src_positions * params->src_stride;
  params->dst_stride = spec.dst.dims[1] * bytes;
  spec.dst.dims[1] /= pieces;
  spec.weights.dims[0] /= pieces;
  params->dst_features = spec.dst.dims[1];
  params->dst_piece = params->dst_features * bytes;
  params->result_piece = spec.weights.dims[0] * spec.weights.strides[0] * BytesOf(spec.weights.type);
  SetImageStrides(&spec.dst);
  if (feature_blocks) spec.src.layout = spec.dst.layout = LibraryArray::Layout::kFeatureBlocks;
  ConvolutionKernel result;
  params->primitive.reset((*ProductLibrary())->Create(spec, nullptr));
  if (params->primitive == nullptr) return result;
  params->scratch = AlignedBytes(params->primitive->scratch_bytes());
  params->dst_bytes = AlignedBytes(BytesOfArray(spec.dst));
  params->weights_bytes = AlignedBytes(params->primitive->packed_bytes(LibraryRole::kWeights));
  params->cost = 8e-3 * problem.work / static_cast<double>(pieces);
  result.thread_scratch = params->scratch + params->dst_bytes + params->weights_bytes;
  result.kernel = kKernel<RunFeaturePieces>;
  result.params = std::move(params);
  return result;
}

// Measured with oneDNN 2.6 for the layers of ResNet and MobileNet. Pieces of features add nothing, and read src again;
// with a stride, or large images, the library is faster on blocks of features, even if they are copied for it.
ConvolutionKernel MakeWeightsGradient(const ConvolutionProblem& problem) {
  const LibrarySpec& spec = problem.spec;
  const bool grouped = spec.weights.rank > spec.src.rank;
  const int64_t in = spec.src.dims[1];
  const int64_t out = spec.dst.dims[1];
  bool strided = false;
  for (int d = 0; d < problem.spatial_rank(); ++d) {
    strided = strided || (spec.strides[d] > 1 && spec.weights.dims[spec.weights.rank - problem.spatial_rank() + d] > 1);
  }
  ConvolutionKernel kernel;
  if (!grouped && in % kBlock == 0 && out % (4 * kBlock) == 0) {
    const int64_t positions = ConvolutionProblem::Positions(spec.dst);
    constexpr int64_t kLargeImage = 2000;
    if ((strided || positions >= kLargeImage) && spec.src.type == LibraryType::kF32) {
      constexpr int64_t kManyPositions = 500;
      if (positions < kManyPositions) {
        kernel = MakeFeaturePieces(problem, 4, /*feature_blocks=*/true);
      } else {
        kernel = TryImagePieces(problem, LibraryArray::Layout::kFeatureBlocks);
      }
    } else {
      kernel = MakeFeaturePieces(problem, out % (8 * kBlock) == 0 ? 8 : 4, /*feature_blocks=*/false);
    }
  }
  return kernel.params != nullptr ? std::move(kernel) : MakeImagePieces(problem);
}

}  // namespace hlokit::interp::compiled
