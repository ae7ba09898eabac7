// SPDX-License-Identifier: Apache-2.0
// Convolutions by the library. HLO has one opcode for a convolution and for its gradients; this finds out which it is:
//
//   - dilation of the input, or a reversed window, is the gradient of the input of a convolution with that stride;
//   - a window without strides that is larger than the result is the gradient of the weights: its positions are
//     those of the result of the forward convolution, and the window's dilation is the stride.
//
// Pieces are images. Arrays with features as the minor dimension are read and written in place; the library chooses the
// layout of others, and of weights.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/compiled/engine_modules.h"
#include "interp/compiled/library_step.h"
#include "interp/exact/kernels/window_geometry.h"
#include "interp/exact/program_builder.h"
#include "interp/exact/run_context.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

struct ConvolutionPiecesPlan : ThunkParams {
  LibraryOp op = LibraryOp::kConvolution;
  std::unique_ptr<LibraryPrimitive> primitives[2];  // of the last piece: [1]
  int64_t images = 1;                               // of a piece
  int64_t pieces = 1;
  int64_t src_image = 0;  // strides, in elements
  int64_t dst_image = 0;
  // Scratch memory of a thread: of the primitive, then src and dst in its layout, in bytes.
  int64_t scratch = 0;
  int64_t src_packed = 0;
  int64_t dst_packed = 0;
  int64_t weights_packed = 0;  // 0: as they are
  int64_t weights_bytes = 0;   // of the weights as the primitive has them
  double cost = 1;

  const LibraryPrimitive& At(int64_t piece) const { return *primitives[piece + 1 == pieces]; }
};

std::byte* Elements(const std::byte* data, int64_t offset) {
  return const_cast<std::byte*>(data) + offset * int64_t{sizeof(float)};
}

// Runs one piece, with src and dst in the layout of the program.
bool RunPiece(const ConvolutionPiecesPlan& p, int64_t piece, const std::byte* src, std::byte* weights,
              const std::byte* dst) {
  const LibraryPrimitive& primitive = p.At(piece);
  std::byte* const memory = ThreadScratch(p.scratch + p.src_packed + p.dst_packed);
  if (memory == nullptr) return false;
  std::byte* const own_src = Elements(src, piece * p.images * p.src_image);
  std::byte* const own_dst = Elements(dst, piece * p.images * p.dst_image);
  std::byte* const in_src = p.src_packed > 0 ? memory + p.scratch : own_src;
  std::byte* const in_dst = p.dst_packed > 0 ? memory + p.scratch + p.src_packed : own_dst;
  const bool to_src = p.op == LibraryOp::kConvolutionBackwardData;
  const bool to_dst = p.op == LibraryOp::kConvolution;
  if (in_src != own_src && !to_src && !primitive.Pack(LibraryRole::kSrc, own_src, in_src, memory)) return false;
  if (in_dst != own_dst && !to_dst && !primitive.Pack(LibraryRole::kDst, own_dst, in_dst, memory)) return false;
  if (!primitive.Run(in_src, weights, in_dst, memory)) return false;
  if (in_src != own_src && to_src && !primitive.Unpack(LibraryRole::kSrc, in_src, own_src, memory)) return false;
  return in_dst == own_dst || !to_dst || primitive.Unpack(LibraryRole::kDst, in_dst, own_dst, memory);
}

// Operands and result: input and kernel of the instruction, its result.
void RunConvolutionPieces(const ThunkParams* plan, const std::byte* const* in, std::byte* const* out,
                          RunContext& context) {
  const auto& p = *static_cast<const ConvolutionPiecesPlan*>(plan);
  std::atomic<bool> ok = true;
  const bool to_src = p.op == LibraryOp::kConvolutionBackwardData;
  const bool to_weights = p.op == LibraryOp::kConvolutionBackwardWeights;
  // Gradients of weights: one for each piece, added in order.
  std::optional<Scratch> memory;
  const int64_t parts = to_weights ? p.pieces : 1;
  std::byte* weights = const_cast<std::byte*>(in[1]);
  if (p.weights_packed > 0 || (to_weights && parts > 1)) {
    memory.emplace(context, parts * AlignedBytes(p.weights_bytes));
    weights = memory->data();
    if (weights == nullptr) return;
    std::byte* const scratch = ThreadScratch(p.scratch);
    if (!to_weights) ok = scratch != nullptr && p.At(0).Pack(LibraryRole::kWeights, in[1], weights, scratch);
  } else if (to_weights) {
    weights = out[0];
  }
  const std::byte* const src = to_src ? out[0] : in[0];
  const std::byte* const dst = to_src ? in[0] : to_weights ? in[1] : out[0];
  context.ParallelFor(p.pieces, p.cost, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      if (context.ShouldStop()) return;
      std::byte* const own = to_weights ? weights + piece * AlignedBytes(p.weights_bytes) : weights;
      if (!RunPiece(p, piece, src, own, dst)) ok = false;
    }
  });
  if (to_weights && memory && !context.failed()) {
    float* const sum = reinterpret_cast<float*>(weights);
    context.ParallelFor(
        p.weights_bytes / int64_t{sizeof(float)}, 0.2 * static_cast<double>(parts), [&](int64_t begin, int64_t end) {
          for (int64_t part = 1; part < parts; ++part) {
            const float* const more = reinterpret_cast<const float*>(weights + part * AlignedBytes(p.weights_bytes));
            for (int64_t i = begin; i < end; ++i) sum[i] += more[i];
          }
        });
    if (p.weights_packed > 0) {
      std::byte* const scratch = ThreadScratch(p.scratch);
      ok = ok && scratch != nullptr && p.At(0).Unpack(LibraryRole::kWeights, weights, out[0], scratch);
    } else {
      std::copy_n(weights, p.weights_bytes, out[0]);
    }
  }
  if (!ok) context.Fail("oneDNN cannot compute a convolution");
}

// Sizes and strides of an array of images, by the dimensions of the instruction.
LibraryArray ImageArray(const View& view, int64_t batch, int64_t feature, absl::Span<const int64_t> spatial) {
  const Dims strides = StridesOf(view);
  LibraryArray array;
  for (int64_t d : {batch, feature}) array.Add(view.dims()[d], strides[d]);
  for (int64_t d : spatial) array.Add(view.dims()[d], strides[d]);
  // With features next to each other the library has kernels for the layout as it is.
  array.any_layout = array.strides[1] != 1;
  return array;
}

// Weights [group, out, in, spatial...]; the group dimension only if there are several. Groups divide the outputs, or
// the inputs where `group_inputs`.
LibraryArray WeightsArray(const View& view, int64_t out, int64_t in, absl::Span<const int64_t> spatial, int64_t groups,
                          bool group_inputs) {
  const Dims strides = StridesOf(view);
  LibraryArray array;
  int64_t sizes[] = {view.dims()[out], view.dims()[in]};
  if (groups > 1) {
    const int side = group_inputs ? 1 : 0;
    sizes[side] /= groups;
    array.Add(groups, sizes[side] * strides[side == 0 ? out : in]);
  }
  array.Add(sizes[0], strides[out]);
  array.Add(sizes[1], strides[in]);
  for (int64_t d : spatial) array.Add(view.dims()[d], strides[d]);
  array.any_layout = true;
  return array;
}

// Returns the view with its elements along some dimensions in reverse order, dense.
View Reversed(const OperandCopies& copies, View view, absl::Span<const int64_t> dims) {
  Dims strides = StridesOf(view);
  for (int64_t d : dims) {
    view.offset += (view.dims()[d] - 1) * strides[d] * BytesOf(view.type());
    strides[d] = -strides[d];
  }
  view.strides = copies.builder().NewStrides(strides, view.dims());
  return copies.MakeDense(view);
}

// Sets input and kernel as the primitive reads them, the kernel in reverse order along some dimensions. Returns false
// after an error report.
bool SetOperands(const OperandCopies& copies, absl::Span<const View> operands, absl::Span<const int64_t> turned,
                 View* input, View* kernel) {
  const std::optional<View> input_f32 = copies.ToF32(operands[0]);
  const std::optional<View> kernel_f32 = input_f32 ? copies.ToF32(operands[1]) : std::nullopt;
  if (!input_f32 || !kernel_f32) return false;
  const auto positive = [&](const View& view) {
    const Dims strides = StridesOf(view);
    const bool all = std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s > 0; });
    return all ? view : copies.MakeDense(view);
  };
  *input = positive(*input_f32);
  *kernel = positive(*kernel_f32);
  if (!turned.empty()) *kernel = Reversed(copies, *kernel, turned);
  return true;
}

// Sets the padding of the forward convolution so that its result has `result` positions. Returns false if the library
// has no such padding.
bool SetPadding(LibrarySpec* spec, int d, int64_t input, int64_t kernel, int64_t result, int64_t low) {
  const int64_t span = (kernel - 1) * spec->dilations[d] + 1;
  const int64_t least = (result - 1) * spec->strides[d] + span - input - low;
  spec->padding_low[d] = low;
  spec->padding_high[d] = std::max<int64_t>(least, 0);
  return low >= 0 && spec->padding_high[d] < least + spec->strides[d] && low < span && spec->padding_high[d] < span;
}

void SetImages(LibraryArray* array, int64_t images) { array->dims[0] = images; }

}  // namespace

bool PrepareConvolutionStep(CompiledComputationBuilder& b, std::string* why) {
  const Instruction instruction = b.instruction();
  const Shape shape = b.shape();
  const ConvolutionDims dims = ConvolutionDims::Of(instruction);
  const WindowView window = WindowView::Of(instruction);
  if (instruction.operand_count() != 2 || !shape.IsArray()) return false;
  View input = b.operand(0);
  View kernel = b.operand(1);
  *why = "type";
  if (!input.shape.IsArray() || !kernel.shape.IsArray() || !IsLibraryType(input.type()) ||
      !IsLibraryType(kernel.type()) || !IsLibraryType(shape.element_type())) {
    return false;
  }
  *why = "shape";
  const int64_t spatial = dims.spatial_rank();
  if (!dims.ok() || !dims.IsPermutation() || dims.rank() != shape.rank() || input.shape.rank() != shape.rank() ||
      kernel.shape.rank() != shape.rank() || !window.ok() || window.rank() != spatial || spatial < 1 ||
      spatial > LibrarySpec::kMaxSpatial || shape.element_count() == 0 || input.count() == 0 || kernel.count() == 0) {
    return false;
  }
  const int64_t feature_groups = instruction.int_attr(Attr::kFeatureGroupCount, 1);
  const int64_t batch_groups = instruction.int_attr(Attr::kBatchGroupCount, 1);
  const int64_t groups = std::max(feature_groups, batch_groups);
  const int64_t in_features = input.dims()[dims.input_feature];
  const int64_t out_features = kernel.dims()[dims.kernel_output_feature];
  const int64_t images = input.dims()[dims.input_batch];
  if (feature_groups < 1 || batch_groups < 1 || (feature_groups > 1 && batch_groups > 1) ||
      in_features % feature_groups != 0 || out_features % groups != 0 || images % batch_groups != 0 ||
      kernel.dims()[dims.kernel_input_feature] != in_features / feature_groups ||
      shape.dim(dims.output_feature) != out_features || shape.dim(dims.output_batch) != images / batch_groups) {
    return false;
  }
  bool dilated = false, reversed = true, any_reversed = false, strided = false;
  double places = 1, results = 1;
  for (int64_t d = 0; d < spatial; ++d) {
    WindowDimension axis;
    axis.window = window[d];
    axis.input = input.dims()[dims.input_spatial[d]];
    axis.output = shape.dim(dims.output_spatial[d]);
    if (!axis.Valid() || axis.window.size != kernel.dims()[dims.kernel_spatial[d]]) return false;
    dilated = dilated || axis.window.base_dilation > 1;
    strided = strided || axis.window.stride > 1;
    if (axis.window.size > 1) {
      any_reversed = any_reversed || axis.window.reversal;
      reversed = reversed && axis.window.reversal;
    }
    places *= static_cast<double>(axis.window.size);
    results *= static_cast<double>(axis.output);
  }
  const double work = places * results * static_cast<double>(images / batch_groups) *
                      static_cast<double>(out_features) * static_cast<double>(in_features / feature_groups);
  constexpr double kSmall = 32 * 32 * 32;
  *why = "size";
  if (work < kSmall) return false;
  if (ProductLibrary(why) == nullptr) return false;
  *why = "window";
  const bool backward_data = !strided && batch_groups == 1 && (dilated || (any_reversed && reversed));
  const bool backward_weights = !dilated && !any_reversed && !strided && feature_groups == 1 && places > results;
  if (!backward_data && !backward_weights && (dilated || batch_groups > 1)) return false;

  // The kernel in the order of the forward convolution: the gradient of the input reads it in reverse.
  Dims turned;
  for (int64_t d = 0; d < spatial; ++d) {
    if (window[d].size > 1 && window[d].reversal != backward_data) turned.push_back(dims.kernel_spatial[d]);
  }
  const View operands[] = {input, kernel};
  if (!SetOperands(OperandCopies(b, /*planned=*/true), operands, turned, &input, &kernel)) return true;
  const View result = {b.program_shapes().Array(ElementType::kF32, shape.dims()), kNoSlot, nullptr, 0};
  LibrarySpec spec;
  if (backward_weights) {
    spec.op = LibraryOp::kConvolutionBackwardWeights;
    spec.src = ImageArray(input, dims.input_feature, dims.input_batch, dims.input_spatial);
    spec.dst = ImageArray(kernel, dims.kernel_input_feature, dims.kernel_output_feature, dims.kernel_spatial);
    spec.weights = WeightsArray(result, dims.output_feature, dims.output_batch, dims.output_spatial, groups, false);
  } else if (backward_data) {
    spec.op = LibraryOp::kConvolutionBackwardData;
    spec.dst = ImageArray(input, dims.input_batch, dims.input_feature, dims.input_spatial);
    spec.src = ImageArray(result, dims.output_batch, dims.output_feature, dims.output_spatial);
    spec.weights =
        WeightsArray(kernel, dims.kernel_input_feature, dims.kernel_output_feature, dims.kernel_spatial, groups, true);
  } else {
    spec.op = LibraryOp::kConvolution;
    spec.src = ImageArray(input, dims.input_batch, dims.input_feature, dims.input_spatial);
    spec.dst = ImageArray(result, dims.output_batch, dims.output_feature, dims.output_spatial);
    spec.weights =
        WeightsArray(kernel, dims.kernel_output_feature, dims.kernel_input_feature, dims.kernel_spatial, groups, false);
  }
  for (int d = 0; d < spatial; ++d) {
    const WindowDim w = window[d];
    const int64_t x = input.dims()[dims.input_spatial[static_cast<size_t>(d)]];
    const int64_t y = shape.dim(dims.output_spatial[static_cast<size_t>(d)]);
    bool fits;
    if (backward_weights) {
      spec.strides[d] = w.window_dilation;
      spec.dilations[d] = w.stride;
      fits = SetPadding(&spec, d, x, y, w.size, w.padding_low);
    } else if (backward_data) {
      spec.strides[d] = w.base_dilation;
      spec.dilations[d] = w.window_dilation;
      fits = SetPadding(&spec, d, y, w.size, x, (w.size - 1) * w.window_dilation - w.padding_low);
    } else {
      spec.strides[d] = w.stride;
      spec.dilations[d] = w.window_dilation;
      fits = SetPadding(&spec, d, x, w.size, y, w.padding_low);
    }
    if (!fits) return false;
  }

  auto plan = std::make_unique<ConvolutionPiecesPlan>();
  plan->op = spec.op;
  const int64_t count = spec.src.dims[0];
  const double positions = backward_weights ? places : results;
  if (backward_weights) {
    constexpr double kManyPositions = 1024;
    const int64_t wanted = positions >= kManyPositions ? 8 : 2;
    plan->images = (count + wanted - 1) / wanted;
  } else if (backward_data) {
    constexpr double kPositions = 6000;
    plan->images = std::clamp<int64_t>(static_cast<int64_t>(kPositions / positions), 1, (count + 1) / 2);
  }
  plan->pieces = (count + plan->images - 1) / plan->images;
  plan->src_image = spec.src.strides[0];
  plan->dst_image = spec.dst.strides[0];
  plan->cost = 2e-2 * work / static_cast<double>(plan->pieces);
  const int64_t last = count - (plan->pieces - 1) * plan->images;
  for (int is_last : {0, 1}) {
    if (!is_last && plan->pieces == 1) continue;
    SetImages(&spec.src, is_last ? last : plan->images);
    SetImages(&spec.dst, is_last ? last : plan->images);
    const LibraryPrimitive* const like = is_last ? plan->primitives[0].get() : nullptr;
    plan->primitives[is_last].reset(ProductLibrary()->Create(spec, like));
    const LibraryPrimitive* const made = plan->primitives[is_last].get();
    *why = "oneDNN has no such convolution";
    if (made == nullptr) return false;
    plan->scratch = std::max(plan->scratch, AlignedBytes(made->scratch_bytes()));
    plan->src_packed = std::max(plan->src_packed, AlignedBytes(made->packed_bytes(LibraryRole::kSrc)));
    plan->dst_packed = std::max(plan->dst_packed, AlignedBytes(made->packed_bytes(LibraryRole::kDst)));
  }
  if (!HasThreadScratch(b, plan->scratch + plan->src_packed + plan->dst_packed)) {
    *why = "memory";
    return false;
  }
  const LibraryPrimitive& first = plan->At(0);
  for (LibraryRole role : {LibraryRole::kSrc, LibraryRole::kWeights, LibraryRole::kDst}) {
    // Both primitives must agree on what is packed.
    if ((first.packed_bytes(role) > 0) != (plan->At(plan->pieces - 1).packed_bytes(role) > 0)) return false;
  }
  plan->weights_packed = first.packed_bytes(LibraryRole::kWeights);
  int64_t weights = 1;
  for (int i = 0; i < spec.weights.rank; ++i) weights *= spec.weights.dims[i];
  plan->weights_bytes = plan->weights_packed > 0 ? plan->weights_packed : weights * int64_t{sizeof(float)};
  // Nothing was emitted so far: the exact engine could still have prepared the instruction.
  if (!SetOperands(OperandCopies(b, /*planned=*/false), operands, turned, &input, &kernel)) return true;
  const View arrays[] = {input, kernel};
  SetF32Result(b, b.EmitTo(RunConvolutionPieces, std::move(plan), arrays, {&result.shape, 1})[0]);
  return true;
}

}  // namespace hlokit::interp::compiled
