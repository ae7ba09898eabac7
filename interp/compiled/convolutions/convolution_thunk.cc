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
#include "interp/compiled/convolutions/convolution_thunk.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/convolutions/convolution_pieces.h"
#include "interp/compiled/products/library_thunk.h"
#include "interp/compiled/products/product_thunk.h"
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
// contraction. `order`: dimensions of the result, the features of dst first and those of src last.
PrepareResult PreparePointwiseGradient(const OperandCopies& copies, const ConvolutionProblem& problem, View src,
                                       View dst, const Dims& order) {
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
  ProductKernel made = MakeProduct(product);
  if (made.params == nullptr || !HasThreadScratch(b, made.thread_scratch)) return PrepareResult::Unsupported();
  const ElementType type = spec.src.type == LibraryType::kBF16 ? ElementType::kBF16 : ElementType::kF32;
  std::optional<View> operands[2];
  for (int i : {0, 1}) {
    operands[i] = copies.To(type, i == 0 ? src : dst);
    if (!operands[i]) return PrepareResult::Failed();
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
  return PrepareResult::Prepared();
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
  return MakeProduct(product);
}

// A convolution of HLO as one of the library.
class ConvolutionPreparation {
 public:
  ConvolutionPreparation(CompiledComputationBuilder& b, PackedWeights* packed)
      : b_(b),
        packed_(packed),
        shape_(b.shape()),
        dims_(ConvolutionDims::Of(b.instruction())),
        window_(WindowView::Of(b.instruction())),
        input_(b.operand(0)),
        kernel_(b.operand(1)) {}

  // With arrays of bf16 if that is allowed and the library has fast ones, or with f32.
  PrepareResult Prepare(bool allow_bf16);

 private:
  enum class Direction : uint8_t { kForward, kBackwardData, kBackwardWeights };

  // Each returns an error, with the reason, if the library has no such convolution.
  absl::Status CheckOperands() const;
  absl::Status ReadGroups();
  absl::Status ReadWindow();
  absl::Status SetWindow(ConvolutionProblem* problem) const;

  void ChooseTypes(bool allow_bf16);
  // Sets the operation and its arrays. Returns false after an error report.
  bool SetArrays(ConvolutionProblem* problem);
  ConvolutionKernel ChooseKernel(const ConvolutionProblem& problem) const;
  PrepareResult Emit(const ConvolutionProblem& problem, ConvolutionKernel made);

  CompiledComputationBuilder& b_;
  PackedWeights* const packed_;
  const Shape shape_;
  const ConvolutionDims dims_;
  const WindowView window_;
  const View input_, kernel_;  // copied: what is emitted may move the builder's views

  int64_t groups_ = 1;  // of features or of the batch
  double work_ = 0;
  Direction direction_ = Direction::kForward;
  View turned_kernel_;  // in the order of the forward convolution

  ElementType type_ = ElementType::kF32, result_type_ = ElementType::kF32;
  LibraryType library_type_ = LibraryType::kF32, result_library_type_ = LibraryType::kF32;
  View plain_result_;
  Dims input_order_, kernel_order_, result_order_;
};

absl::Status ConvolutionPreparation::CheckOperands() const {
  if (!input_.shape.IsArray() || !kernel_.shape.IsArray() || !IsLibraryType(input_.type()) ||
      !IsLibraryType(kernel_.type()) || !IsLibraryType(shape_.element_type())) {
    return absl::UnimplementedError("type");
  }
  const int64_t spatial = dims_.spatial_rank();
  if (!dims_.ok() || !dims_.IsPermutation() || dims_.rank() != shape_.rank() || input_.shape.rank() != shape_.rank() ||
      kernel_.shape.rank() != shape_.rank() || !window_.ok() || window_.rank() != spatial || spatial < 1 ||
      spatial > LibrarySpec::kMaxSpatial || shape_.element_count() == 0 || input_.count() == 0 ||
      kernel_.count() == 0) {
    return absl::UnimplementedError("shape");
  }
  return absl::OkStatus();
}

absl::Status ConvolutionPreparation::ReadGroups() {
  const int64_t feature_groups = b_.instruction().int_attr(Attr::kFeatureGroupCount, 1);
  const int64_t batch_groups = b_.instruction().int_attr(Attr::kBatchGroupCount, 1);
  groups_ = std::max(feature_groups, batch_groups);
  const int64_t in_features = input_.dims()[dims_.input_feature];
  const int64_t out_features = kernel_.dims()[dims_.kernel_output_feature];
  const int64_t images = input_.dims()[dims_.input_batch];
  if (feature_groups < 1 || batch_groups < 1 || (feature_groups > 1 && batch_groups > 1) ||
      in_features % feature_groups != 0 || out_features % groups_ != 0 || images % batch_groups != 0 ||
      kernel_.dims()[dims_.kernel_input_feature] != in_features / feature_groups ||
      shape_.dim(dims_.output_feature) != out_features || shape_.dim(dims_.output_batch) != images / batch_groups) {
    return absl::UnimplementedError("shape");
  }
  work_ = static_cast<double>(images / batch_groups) * static_cast<double>(out_features) *
          static_cast<double>(in_features / feature_groups);
  return absl::OkStatus();
}

absl::Status ConvolutionPreparation::ReadWindow() {
  bool dilated = false, reversed = true, any_reversed = false, strided = false;
  double places = 1, results = 1;
  for (int64_t d = 0; d < dims_.spatial_rank(); ++d) {
    WindowDimension axis;
    axis.window = window_[d];
    axis.input = input_.dims()[dims_.input_spatial[d]];
    axis.output = shape_.dim(dims_.output_spatial[d]);
    if (!axis.Valid() || axis.window.size != kernel_.dims()[dims_.kernel_spatial[d]]) {
      return absl::UnimplementedError("shape");
    }
    dilated = dilated || axis.window.base_dilation > 1;
    strided = strided || axis.window.stride > 1;
    if (axis.window.size > 1) {
      any_reversed = any_reversed || axis.window.reversal;
      reversed = reversed && axis.window.reversal;
    }
    places *= static_cast<double>(axis.window.size);
    results *= static_cast<double>(axis.output);
  }
  work_ *= places * results;
  constexpr double kSmall = 32 * 32 * 32;
  if (work_ < kSmall) return absl::UnimplementedError("size");
  if (!ProductLibrary().ok()) return ProductLibrary().status();
  const bool batch_groups = b_.instruction().int_attr(Attr::kBatchGroupCount, 1) > 1;
  const bool feature_groups = b_.instruction().int_attr(Attr::kFeatureGroupCount, 1) > 1;
  if (!strided && !batch_groups && (dilated || (any_reversed && reversed))) {
    direction_ = Direction::kBackwardData;
  } else if (!dilated && !any_reversed && !strided && !feature_groups && places > results) {
    direction_ = Direction::kBackwardWeights;
  } else if (dilated || batch_groups) {
    return absl::UnimplementedError("window");
  }
  // The gradient of the input reads the kernel in reverse.
  Dims turned;
  for (int64_t d = 0; d < dims_.spatial_rank(); ++d) {
    const bool is_reversed = window_[d].reversal != (direction_ == Direction::kBackwardData);
    if (window_[d].size > 1 && is_reversed) turned.push_back(dims_.kernel_spatial[d]);
  }
  turned_kernel_ = turned.empty() ? kernel_ : Reversed(b_, kernel_, turned);
  return absl::OkStatus();
}

void ConvolutionPreparation::ChooseTypes(bool allow_bf16) {
  const auto is_bf16 = [](ElementType type) { return type == ElementType::kBF16; };
  const bool bf16 = allow_bf16 && is_bf16(input_.type()) && is_bf16(kernel_.type()) && HasFastBf16() &&
                    (is_bf16(shape_.element_type()) || shape_.element_type() == ElementType::kF32);
  type_ = bf16 ? ElementType::kBF16 : ElementType::kF32;
  library_type_ = bf16 ? LibraryType::kBF16 : LibraryType::kF32;
  // Gradients of weights are sums of those of the pieces.
  const bool bf16_result = bf16 && is_bf16(shape_.element_type()) && direction_ != Direction::kBackwardWeights;
  result_library_type_ = bf16_result ? LibraryType::kBF16 : LibraryType::kF32;
  result_type_ = bf16_result ? ElementType::kBF16 : ElementType::kF32;
}

bool ConvolutionPreparation::SetArrays(ConvolutionProblem* problem) {
  LibrarySpec& spec = problem->spec;
  problem->work = work_;
  plain_result_ = {b_.program_shapes().Array(result_type_, shape_.dims()), kNoSlot, nullptr, 0};
  if (direction_ == Direction::kBackwardWeights) {
    spec.op = LibraryOp::kConvolutionBackwardWeights;
    input_order_ = ImageOrder(dims_.input_feature, dims_.input_spatial, dims_.input_batch);
    kernel_order_ = ImageOrder(dims_.kernel_input_feature, dims_.kernel_spatial, dims_.kernel_output_feature);
    spec.src = ImageArray(input_.dims(), input_order_, library_type_);
    spec.dst = ImageArray(kernel_.dims(), kernel_order_, library_type_);
    spec.weights = WeightsArray(plain_result_, dims_.output_feature, dims_.output_batch, dims_.output_spatial, groups_,
                                false, result_library_type_);
    return true;
  }
  const OperandCopies planned(b_, /*planned=*/true);
  const std::optional<View> weights = WeightsOf(planned, turned_kernel_, dims_.kernel_spatial, type_, spec.reversed);
  if (!weights) return false;
  input_order_ = ImageOrder(dims_.input_batch, dims_.input_spatial, dims_.input_feature);
  result_order_ = ImageOrder(dims_.output_batch, dims_.output_spatial, dims_.output_feature);
  spec.src = ImageArray(input_.dims(), input_order_, library_type_);
  spec.dst = ImageArray(shape_.dims(), result_order_, result_library_type_);
  if (direction_ == Direction::kBackwardData) {
    spec.op = LibraryOp::kConvolutionBackwardData;
    std::swap(spec.src, spec.dst);
    spec.weights = WeightsArray(*weights, dims_.kernel_input_feature, dims_.kernel_output_feature, dims_.kernel_spatial,
                                groups_, true, library_type_);
  } else {
    spec.op = LibraryOp::kConvolution;
    spec.weights = WeightsArray(*weights, dims_.kernel_output_feature, dims_.kernel_input_feature, dims_.kernel_spatial,
                                groups_, false, library_type_);
  }
  return true;
}

absl::Status ConvolutionPreparation::SetWindow(ConvolutionProblem* problem) const {
  LibrarySpec& spec = problem->spec;
  for (int d = 0; d < problem->spatial_rank(); ++d) {
    const WindowDim w = window_[d];
    const int64_t x = input_.dims()[dims_.input_spatial[static_cast<size_t>(d)]];
    const int64_t y = shape_.dim(dims_.output_spatial[static_cast<size_t>(d)]);
    bool fits = false;
    switch (direction_) {
      case Direction::kBackwardWeights:
        spec.strides[d] = w.window_dilation;
        spec.dilations[d] = w.stride;
        fits = SetPadding(&spec, d, x, y, w.size, w.padding_low);
        break;
      case Direction::kBackwardData:
        spec.strides[d] = w.base_dilation;
        spec.dilations[d] = w.window_dilation;
        fits = SetPadding(&spec, d, y, w.size, x, (w.size - 1) * w.window_dilation - w.padding_low);
        break;
      case Direction::kForward:
        spec.strides[d] = w.stride;
        spec.dilations[d] = w.window_dilation;
        fits = SetPadding(&spec, d, x, w.size, y, w.padding_low);
        break;
    }
    if (!fits) return absl::UnimplementedError("window");
  }
  return absl::OkStatus();
}

ConvolutionKernel ConvolutionPreparation::ChooseKernel(const ConvolutionProblem& problem) const {
  if (direction_ == Direction::kBackwardWeights) return MakeWeightsGradient(problem);
  if (IsProductOfPositions(problem)) {
    const bool weights_reused = b_.IsUnchangedInLoop(kernel_) || b_.ConstantData(kernel_) != nullptr;
    ProductKernel product = MakeProductOfPositions(problem, weights_reused, MaxSharedScratch(b_));
    if (product.params != nullptr) {
      return {product.kernel, std::move(product.params), std::move(product.packed), product.thread_scratch};
    }
  }
  return MakeConvolution(problem);
}

PrepareResult ConvolutionPreparation::Prepare(bool allow_bf16) {
  if (!shape_.IsArray()) return PrepareResult::Unsupported();
  if (absl::Status status = CheckOperands(); !status.ok()) return PrepareResult::Unsupported(status);
  if (absl::Status status = ReadGroups(); !status.ok()) return PrepareResult::Unsupported(status);
  if (absl::Status status = ReadWindow(); !status.ok()) return PrepareResult::Unsupported(status);
  ChooseTypes(allow_bf16);
  ConvolutionProblem problem;
  if (!SetArrays(&problem)) return PrepareResult::Failed();
  if (absl::Status status = SetWindow(&problem); !status.ok()) return PrepareResult::Unsupported(status);
  if (direction_ == Direction::kBackwardWeights && IsPointwise(problem)) {
    const Dims order = ImageOrder(dims_.output_feature, dims_.output_spatial, dims_.output_batch);
    PrepareResult pointwise =
        PreparePointwiseGradient(OperandCopies(b_, /*planned=*/false), problem, Permuted(b_, input_, input_order_),
                                 Permuted(b_, kernel_, kernel_order_), order);
    if (!pointwise.unsupported()) return pointwise;
  }
  ConvolutionKernel made = ChooseKernel(problem);
  if (made.params == nullptr) return PrepareResult::Unsupported("oneDNN has no such convolution");
  if (!HasThreadScratch(b_, made.thread_scratch) || !PackedWeights::Fits(b_, made.packed)) {
    return PrepareResult::Unsupported("memory");
  }
  // Nothing was emitted so far: the exact engine could still have prepared the instruction.
  return Emit(problem, std::move(made));
}

PrepareResult ConvolutionPreparation::Emit(const ConvolutionProblem& problem, ConvolutionKernel made) {
  const bool of_weights = direction_ == Direction::kBackwardWeights;
  const OperandCopies emitted(b_, /*planned=*/false);
  const std::optional<View> first = ImagesOf(emitted, input_, input_order_, type_);
  if (!first) return PrepareResult::Failed();
  bool reversed[LibrarySpec::kMaxSpatial];
  std::copy(std::begin(problem.spec.reversed), std::end(problem.spec.reversed), reversed);
  std::optional<View> second = of_weights ? ImagesOf(emitted, kernel_, kernel_order_, type_)
                                          : WeightsOf(emitted, turned_kernel_, dims_.kernel_spatial, type_, reversed);
  if (!second) return PrepareResult::Failed();
  if (!made.packed.empty()) second = packed_->Pack(b_, *second, std::move(made.packed));
  Dims result_dims;
  for (int64_t d : result_order_) result_dims.push_back(shape_.dim(d));
  const Shape result = of_weights ? plain_result_.shape : b_.program_shapes().Array(result_type_, result_dims);
  const View arrays[] = {*first, *second};
  const View emitted_result = b_.EmitTo(made.kernel, std::move(made.params), arrays, {&result, 1})[0];
  SetConvertedResult(b_, emitted_result, result_order_);
  return PrepareResult::Prepared();
}

}  // namespace

PrepareResult PrepareConvolutionThunk(CompiledComputationBuilder& b, PackedWeights* packed) {
  if (b.instruction().operand_count() != 2) return PrepareResult::Unsupported();
  PrepareResult result = ConvolutionPreparation(b, packed).Prepare(/*allow_bf16=*/true);
  // The library may have the convolution in f32 only.
  const bool bf16 = b.operand(0).type() == ElementType::kBF16;
  return result.unsupported() && bf16 ? ConvolutionPreparation(b, packed).Prepare(/*allow_bf16=*/false) : result;
}

}  // namespace hlokit::interp::compiled
