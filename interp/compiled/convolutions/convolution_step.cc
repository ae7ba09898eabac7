// SPDX-License-Identifier: Apache-2.0
// Convolutions by the library. HLO has one opcode for a convolution and for its gradients; this finds out which it is:
//
//   - dilation of the input, or a reversed window, is the gradient of the input of a convolution with that stride;
//   - a window without strides that is larger than the result is the gradient of the weights: its positions are
//     those of the result of the forward convolution, and the window's dilation is the stride.
//
// Images are read and written with features as the minor dimension, whatever the order of the array's dimensions: a
// result is a view with permuted strides, and an operand in another order is copied once for all its readers. Weights
// are packed by a thunk of their own.
#include "interp/compiled/convolutions/convolution_step.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/convolutions/convolution_pieces.h"
#include "interp/compiled/products/library_step.h"
#include "interp/compiled/products/product_step.h"
#include "interp/compiled/programs/loop_layout.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/window_geometry.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

// Dimensions of an array of images: batch, spatial dimensions, features.
Dims ImageOrder(int64_t batch, absl::Span<const int64_t> spatial, int64_t feature) {
  Dims order = {batch};
  order.insert(order.end(), spatial.begin(), spatial.end());
  order.push_back(feature);
  return order;
}

// Describes images with these dimensions, by their order.
LibraryArray ImageArray(absl::Span<const int64_t> dims, absl::Span<const int64_t> order, LibraryType type) {
  LibraryArray array;
  array.type = type;
  array.Add(dims[static_cast<size_t>(order.front())], 0);
  array.Add(dims[static_cast<size_t>(order.back())], 0);
  for (int64_t d : order.subspan(1, order.size() - 2)) array.Add(dims[static_cast<size_t>(d)], 0);
  SetImageStrides(&array);
  return array;
}

// Weights [group, out, in, spatial...]; the group dimension only if there are several. Groups divide the outputs, or
// the inputs where `group_inputs`.
LibraryArray WeightsArray(const View& view, int64_t out, int64_t in, absl::Span<const int64_t> spatial, int64_t groups,
                          bool group_inputs, LibraryType type) {
  const Dims strides = StridesOf(view);
  LibraryArray array;
  array.type = type;
  int64_t sizes[] = {view.dims()[out], view.dims()[in]};
  if (groups > 1) {
    const int side = group_inputs ? 1 : 0;
    sizes[side] /= groups;
    array.Add(groups, sizes[side] * strides[side == 0 ? out : in]);
  }
  array.Add(sizes[0], strides[out]);
  array.Add(sizes[1], strides[in]);
  for (int64_t d : spatial) array.Add(view.dims()[d], strides[d]);
  array.layout = LibraryArray::Layout::kAny;
  return array;
}

// Returns the view with its elements along some dimensions in reverse order.
View Reversed(CompiledComputationBuilder& b, View view, absl::Span<const int64_t> dims) {
  Dims strides = StridesOf(view);
  for (int64_t d : dims) {
    view.offset += (view.dims()[d] - 1) * strides[d] * BytesOf(view.type());
    strides[d] = -strides[d];
  }
  view.strides = b.NewStrides(strides, view.dims());
  return view;
}

// Returns images of this type as the primitive reads them; nullopt after an error report.
std::optional<View> ImagesOf(const OperandCopies& copies, const View& view, absl::Span<const int64_t> order,
                             ElementType type) {
  const std::optional<View> images = copies.To(type, Permuted(copies.builder(), view, order));
  return images ? std::optional<View>(copies.MakeDense(*images)) : std::nullopt;
}

// Returns weights with positive strides, and which spatial dimensions of the view they have in reverse order; nullopt
// after an error report.
std::optional<View> WeightsOf(const OperandCopies& copies, const View& view, absl::Span<const int64_t> spatial,
                              ElementType type, bool* reversed) {
  std::optional<View> weights = copies.To(type, view);
  if (!weights) return weights;
  Dims backward;
  const Dims strides = StridesOf(*weights);
  for (size_t i = 0; i < spatial.size(); ++i) {
    reversed[i] = weights->dims()[spatial[i]] > 1 && strides[spatial[i]] < 0;
    if (strides[spatial[i]] < 0) backward.push_back(spatial[i]);
  }
  if (!backward.empty()) weights = Reversed(copies.builder(), *weights, backward);
  const Dims positive = StridesOf(*weights);
  if (std::all_of(positive.begin(), positive.end(), [](int64_t s) { return s > 0; })) return weights;
  return copies.MakeDense(*weights);
}

// Sets the padding of the forward convolution so that its result has `result` positions. Returns false if the library
// has no such padding.
bool SetPadding(LibrarySpec* spec, int d, int64_t input, int64_t kernel, int64_t result, int64_t low) {
  const int64_t span = (kernel - 1) * spec->dilations[d] + 1;
  const int64_t min_padding = (result - 1) * spec->strides[d] + span - input - low;
  spec->padding_low[d] = low;
  spec->padding_high[d] = std::max<int64_t>(min_padding, 0);
  return low >= 0 && spec->padding_high[d] < min_padding + spec->strides[d] && low < span &&
         spec->padding_high[d] < span;
}

// Returns true for the gradient of weights without a window and groups: a product of matrices.
bool IsPointwise(const ConvolutionProblem& problem) {
  const LibrarySpec& spec = problem.spec;
  if (spec.weights.rank != spec.src.rank) return false;
  for (int d = 0; d < problem.spatial_rank(); ++d) {
    if (spec.weights.dims[d + 2] != 1 || spec.padding_low[d] != 0) return false;
    if ((spec.dst.dims[d + 2] - 1) * spec.strides[d] >= spec.src.dims[d + 2]) return false;
  }
  constexpr int64_t kMinFeatures = 17;
  return std::min(spec.src.dims[1], spec.dst.dims[1]) >= kMinFeatures;
}

// Prepares the gradient of weights without a window as the product of src and dst, both of which have positions as the
// contraction. `order`: dimensions of the result, the features of dst first and those of src last. Returns false if the
// library has no such product.
bool PreparePointwiseGradient(const OperandCopies& copies, const ConvolutionProblem& problem, View src, View dst,
                              const Dims& order) {
  CompiledComputationBuilder& b = copies.builder();
  const LibrarySpec& spec = problem.spec;
  Dims strides = StridesOf(src);
  Dims dims(src.dims().begin(), src.dims().end());
  for (int d = 0; d < problem.spatial_rank(); ++d) {
    strides[d + 1] *= spec.strides[d];
    dims[d + 1] = spec.dst.dims[d + 2];
  }
  src.shape = b.program_shapes().Array(src.type(), dims);
  src.strides = b.NewStrides(strides, dims);
  // The library is faster if the left operand, which it transposes, is the one with few features.
  const int64_t in = spec.src.dims[1];
  const int64_t out = spec.dst.dims[1];
  constexpr int64_t kMaxSwappedFeatures = 128;
  const bool swapped = in <= kMaxSwappedFeatures && 2 * in <= out;
  MatrixProduct product;
  product.m = swapped ? in : out;
  product.n = swapped ? out : in;
  product.k = spec.dst.dims[0] * ConvolutionProblem::Positions(spec.dst);
  product.lhs = {1, product.m};
  product.rhs = {product.n, 1};
  product.lhs_type = product.rhs_type = spec.src.type;
  product.max_shared_scratch = MaxSharedScratch(copies.builder());
  ProductKernel made = MakeProduct(product, /*why=*/nullptr);
  if (made.params == nullptr || !HasThreadScratch(b, made.thread_scratch)) return false;
  const ElementType type = spec.src.type == LibraryType::kBF16 ? ElementType::kBF16 : ElementType::kF32;
  std::optional<View> operands[2];
  for (int i : {0, 1}) {
    operands[i] = copies.To(type, i == 0 ? src : dst);
    if (!operands[i]) return true;
    operands[i] = copies.MakeDense(*operands[i]);
  }
  const View arrays[] = {*operands[swapped ? 0 : 1], *operands[swapped ? 1 : 0]};
  Dims result_order = order;
  if (swapped) std::swap(result_order.front(), result_order.back());
  Dims result_dims;
  for (int64_t d : result_order) result_dims.push_back(b.shape().dim(d));
  const Shape shape = b.program_shapes().Array(ElementType::kF32, result_dims);
  const View result = b.EmitTo(made.kernel, std::move(made.params), arrays, {&shape, 1})[0];
  SetConvertedResult(b, b.MakeDense(PermutedBack(b, result, result_order)));
  return true;
}

// Returns true for a convolution, or its gradient of the input, without a window, strides and groups: positions of all
// images are rows of a product with the weights.
bool IsProductOfPositions(const ConvolutionProblem& problem) {
  const LibrarySpec& spec = problem.spec;
  if (spec.weights.rank != spec.src.rank) return false;
  for (int d = 0; d < problem.spatial_rank(); ++d) {
    if (spec.weights.dims[d + 2] != 1 || spec.strides[d] != 1 || spec.padding_low[d] != 0 ||
        spec.padding_high[d] != 0) {
      return false;
    }
  }
  // Measured: with fewer features the library is faster as a convolution.
  constexpr int64_t kMinFeatures = 128;
  return std::min(spec.src.dims[1], spec.dst.dims[1]) >= kMinFeatures &&
         (spec.weights.strides[0] == 1 || spec.weights.strides[1] == 1);
}

// That product, of images and weights with the strides of spec.weights.
ProductKernel MakeProductOfPositions(const ConvolutionProblem& problem, bool weights_reused,
                                     int64_t max_shared_scratch) {
  const LibrarySpec& spec = problem.spec;
  const bool to_src = spec.op == LibraryOp::kConvolutionBackwardData;
  const LibraryArray& from = to_src ? spec.dst : spec.src;
  const LibraryArray& to = to_src ? spec.src : spec.dst;
  MatrixProduct product;
  product.max_shared_scratch = max_shared_scratch;
  product.m = from.dims[0] * ConvolutionProblem::Positions(from);
  product.n = to.dims[1];
  product.k = from.dims[1];
  product.lhs = {product.k, 1};
  product.rhs = {spec.weights.strides[to_src ? 0 : 1], spec.weights.strides[to_src ? 1 : 0]};
  product.lhs_type = from.type;
  product.rhs_type = spec.weights.type;
  product.result_type = to.type;
  constexpr int64_t kManyRows = 128;  // outweigh packing the weights if the contraction is not contiguous
  product.reused = weights_reused || (product.rhs.row != 1 && product.m >= kManyRows);
  return MakeProduct(product, /*why=*/nullptr);
}

// Prepares the convolution with arrays of bf16 if the library has fast ones, or with f32.
bool PrepareConvolutionIn(bool allow_bf16, CompiledComputationBuilder& b, PackedWeights* packed, std::string* why) {
  const Instruction instruction = b.instruction();
  const Shape shape = b.shape();
  const ConvolutionDims dims = ConvolutionDims::Of(instruction);
  const WindowView window = WindowView::Of(instruction);
  if (!shape.IsArray()) return false;
  // Copied: what is emitted may move the builder's views.
  const View input = b.operand(0);
  const View kernel = b.operand(1);
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
  const auto is_bf16 = [](ElementType type) { return type == ElementType::kBF16; };
  const bool bf16 = allow_bf16 && is_bf16(input.type()) && is_bf16(kernel.type()) && HasFastBf16() &&
                    (is_bf16(shape.element_type()) || shape.element_type() == ElementType::kF32);
  const ElementType type = bf16 ? ElementType::kBF16 : ElementType::kF32;
  const LibraryType library_type = bf16 ? LibraryType::kBF16 : LibraryType::kF32;
  // Gradients of weights are sums of those of the pieces.
  const bool bf16_result = bf16 && is_bf16(shape.element_type()) && !backward_weights;
  const LibraryType result_library_type = bf16_result ? LibraryType::kBF16 : LibraryType::kF32;
  const ElementType result_type = bf16_result ? ElementType::kBF16 : ElementType::kF32;

  ConvolutionProblem problem;
  problem.work = work;
  LibrarySpec& spec = problem.spec;
  Dims input_order, kernel_order, result_order;
  const OperandCopies planned(b, /*planned=*/true), emitted(b, /*planned=*/false);
  const View turned_kernel = turned.empty() ? kernel : Reversed(b, kernel, turned);
  const View plain_result = {b.program_shapes().Array(result_type, shape.dims()), kNoSlot, nullptr, 0};
  if (backward_weights) {
    spec.op = LibraryOp::kConvolutionBackwardWeights;
    input_order = ImageOrder(dims.input_feature, dims.input_spatial, dims.input_batch);
    kernel_order = ImageOrder(dims.kernel_input_feature, dims.kernel_spatial, dims.kernel_output_feature);
    spec.src = ImageArray(input.dims(), input_order, library_type);
    spec.dst = ImageArray(kernel.dims(), kernel_order, library_type);
    spec.weights = WeightsArray(plain_result, dims.output_feature, dims.output_batch, dims.output_spatial, groups,
                                false, result_library_type);
  } else {
    spec.op = backward_data ? LibraryOp::kConvolutionBackwardData : LibraryOp::kConvolution;
    const std::optional<View> weights = WeightsOf(planned, turned_kernel, dims.kernel_spatial, type, spec.reversed);
    if (!weights) return true;
    input_order = ImageOrder(dims.input_batch, dims.input_spatial, dims.input_feature);
    result_order = ImageOrder(dims.output_batch, dims.output_spatial, dims.output_feature);
    spec.src = ImageArray(input.dims(), input_order, library_type);
    spec.dst = ImageArray(shape.dims(), result_order, result_library_type);
    if (backward_data) {
      std::swap(spec.src, spec.dst);
      spec.weights = WeightsArray(*weights, dims.kernel_input_feature, dims.kernel_output_feature, dims.kernel_spatial,
                                  groups, true, library_type);
    } else {
      spec.weights = WeightsArray(*weights, dims.kernel_output_feature, dims.kernel_input_feature, dims.kernel_spatial,
                                  groups, false, library_type);
    }
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

  if (backward_weights && IsPointwise(problem)) {
    const Dims order = ImageOrder(dims.output_feature, dims.output_spatial, dims.output_batch);
    if (PreparePointwiseGradient(emitted, problem, Permuted(b, input, input_order), Permuted(b, kernel, kernel_order),
                                 order)) {
      return true;
    }
  }
  ConvolutionKernel made;
  if (backward_weights) {
    made = MakeWeightsGradient(problem);
  } else if (IsProductOfPositions(problem)) {
    ProductKernel product = MakeProductOfPositions(
        problem, b.IsUnchangedInLoop(kernel) || b.ConstantData(kernel) != nullptr, MaxSharedScratch(b));
    made = {product.kernel, std::move(product.params), std::move(product.packed), product.thread_scratch};
  }
  if (made.params == nullptr && !backward_weights) made = MakeConvolution(problem);
  if (made.params == nullptr) {
    *why = "oneDNN has no such convolution";
    return false;
  }
  if (!HasThreadScratch(b, made.thread_scratch) || !PackedWeights::Fits(b, made.packed)) {
    *why = "memory";
    return false;
  }
  // Nothing was emitted so far: the exact engine could still have prepared the instruction.
  const std::optional<View> first = ImagesOf(emitted, input, input_order, type);
  if (!first) return true;
  std::optional<View> second = backward_weights
                                   ? ImagesOf(emitted, kernel, kernel_order, type)
                                   : WeightsOf(emitted, turned_kernel, dims.kernel_spatial, type, spec.reversed);
  if (!second) return true;
  if (!made.packed.empty()) second = packed->Pack(b, *second, std::move(made.packed));
  Dims result_dims;
  for (int64_t d : result_order) result_dims.push_back(shape.dim(d));
  const Shape result = backward_weights ? plain_result.shape : b.program_shapes().Array(result_type, result_dims);
  const View arrays[] = {*first, *second};
  SetConvertedResult(b, b.EmitTo(made.kernel, std::move(made.params), arrays, {&result, 1})[0], result_order);
  return true;
}

}  // namespace

bool PrepareConvolutionStep(CompiledComputationBuilder& b, PackedWeights* packed, std::string* why) {
  if (b.instruction().operand_count() != 2) return false;
  // The library may have the convolution in f32 only.
  const bool bf16 = b.operand(0).type() == ElementType::kBF16;
  return PrepareConvolutionIn(/*allow_bf16=*/true, b, packed, why) ||
         (bf16 && PrepareConvolutionIn(/*allow_bf16=*/false, b, packed, why));
}

}  // namespace hlokit::interp::compiled
