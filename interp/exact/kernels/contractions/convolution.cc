// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product: rows are output positions, columns output features, and the contraction runs over
// the kernel positions (row-major) and, innermost, the input features of a group.
//
// Positions in padding or between dilated elements contribute zeros, which has no effect if the weights are finite.
// Otherwise the product is computed position by position without them.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/emit.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/contractions/matrix_product.h"
#include "interp/exact/kernels/contractions/packed_operands.h"
#include "interp/exact/kernels/contractions/strided_source.h"
#include "interp/exact/kernels/reshape_view.h"
#include "interp/exact/kernels/window_geometry.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/ops/sparsity_config.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

struct ConvolutionParams : ThunkParams {
  ProductShape shape;                 // batch: groups
  std::vector<WindowDimension> axes;  // spatial dimensions
  Dims input_strides;                 // of these
  int64_t places = 1;                 // positions of the kernel
  int64_t features = 1;               // input features of a group
  int64_t batch_stride = 0;
  int64_t feature_stride = 0;
  int64_t group_stride = 0;  // in the input, from one group to the next
  int64_t positions = 1;     // output positions in one image
  OperandConversion conversion;
  StridedSource kernel;
  int64_t kernel_offset = 0;  // of the first kernel position, in bytes: reversed dimensions begin at their end
  int64_t kernel_count = 0;
  ElementType kernel_type = ElementType::kF32;
  ElementType result = ElementType::kF32;
};

// Computes the offset of the element at kernel position `place` of the window at output position `position`. Returns
// false if there is none.
bool ElementUnder(const ConvolutionParams& p, int64_t position, int64_t place, int64_t* offset) {
  *offset = 0;
  for (size_t d = p.axes.size(); d-- > 0;) {
    const WindowDimension& axis = p.axes[d];
    const int64_t element = axis.ElementAt(position % axis.output, place % axis.window.size);
    if (element < 0) return false;
    position /= axis.output;
    place /= axis.window.size;
    *offset += element * p.input_strides[d];
  }
  return true;
}

// Patches of the input as rows.
class PatchPanels : public PanelSource {
 public:
  PatchPanels(const ConvolutionParams& params, const std::byte* input) : p_(params), input_(input) {}

  void Pack(int64_t group, int64_t first, int64_t count, int64_t k_begin, int64_t k_count, int64_t width,
            std::byte* to) const override {
    const int64_t bytes = p_.conversion.to_bytes();
    const int64_t from_bytes = p_.conversion.from_bytes();
    std::memset(to, 0, static_cast<size_t>((count + width - 1) / width * width * k_count * bytes));
    std::vector<std::byte> elements(static_cast<size_t>(std::min(p_.features, k_count) * bytes));
    std::vector<int64_t> feature_offsets(static_cast<size_t>(p_.features));
    for (int64_t i = 0; i < p_.features; ++i) feature_offsets[i] = i * p_.feature_stride;
    if (HasContiguousRows()) {
      PackRows(group, first, count, k_begin, k_count, width, to);
      return;
    }
    for (int64_t line = first; line < first + count; ++line) {
      const int64_t image = line / p_.positions;
      const int64_t position = line % p_.positions;
      const int64_t at = line - first;
      std::byte* row = to + (at / width * k_count * width + at % width) * bytes;
      for (int64_t k = k_begin; k < k_begin + k_count;) {
        const int64_t place = k / p_.features;
        const int64_t feature = k % p_.features;
        const int64_t n = std::min(p_.features - feature, k_begin + k_count - k);
        int64_t offset;
        if (ElementUnder(p_, position, place, &offset)) {
          offset += image * p_.batch_stride + group * p_.group_stride;
          GatherConvert(p_.conversion, input_ + offset * from_bytes, feature_offsets.data() + feature, n,
                        elements.data());
          std::byte* target = row + (k - k_begin) * width * bytes;
          SpreadAll(elements.data(), n, target, width, bytes);
        }
        k += n;
      }
    }
  }

 private:
  // Returns true if a row of the window, along its last dimension and the features, is contiguous in the input.
  bool HasContiguousRows() const {
    if (p_.axes.empty() || p_.feature_stride != 1 || p_.input_strides.back() != p_.features) return false;
    const WindowDim& window = p_.axes.back().window;
    return window.window_dilation == 1 && window.base_dilation == 1;
  }

  // Packs like Pack, in long runs. Requires: `to` is zero.
  void PackRows(int64_t group, int64_t first, int64_t count, int64_t k_begin, int64_t k_count, int64_t width,
                std::byte* to) const {
    const WindowDimension& axis = p_.axes.back();
    const int64_t bytes = p_.conversion.to_bytes();
    const int64_t row_size = axis.window.size * p_.features;
    std::vector<std::byte> elements(static_cast<size_t>(std::min(row_size, k_count) * bytes));
    std::vector<int64_t> offsets(static_cast<size_t>(row_size));
    for (int64_t i = 0; i < row_size; ++i) offsets[static_cast<size_t>(i)] = i;
    for (int64_t line = first; line < first + count; ++line) {
      const int64_t position = line % p_.positions;
      const int64_t base = line / p_.positions * p_.batch_stride + group * p_.group_stride;
      // Positions [low, high) of a row are in the input.
      const int64_t start = position % axis.output * axis.window.stride - axis.window.padding_low;
      const int64_t low = std::clamp<int64_t>(-start, 0, axis.window.size);
      const int64_t high = std::clamp<int64_t>(axis.input - start, 0, axis.window.size);
      if (low >= high) continue;
      const int64_t at = line - first;
      std::byte* column = to + (at / width * k_count * width + at % width) * bytes;
      for (int64_t k = k_begin; k < k_begin + k_count;) {
        const int64_t row = k / row_size;
        const int64_t within = k % row_size;
        const int64_t n = std::min(row_size - within, k_begin + k_count - k);
        const int64_t begin = std::max(within, low * p_.features);
        const int64_t end = std::min(within + n, high * p_.features);
        int64_t offset;
        if (begin < end && ElementUnder(p_, position, row * axis.window.size + low, &offset)) {
          offset += base + begin - low * p_.features;
          GatherConvert(p_.conversion, input_ + offset * p_.conversion.from_bytes(), offsets.data(), end - begin,
                        elements.data());
          SpreadAll(elements.data(), end - begin, column + (k - k_begin + begin - within) * width * bytes, width,
                    bytes);
        }
        k += n;
      }
    }
  }

  static void SpreadAll(const std::byte* from, int64_t n, std::byte* to, int64_t stride, int64_t bytes) {
    switch (bytes) {
      case 4:
        return Spread<uint32_t>(from, n, to, stride);
      case 8:
        return Spread<uint64_t>(from, n, to, stride);
      default:
        return Spread<std::complex<double>>(from, n, to, stride);
    }
  }

  template <typename T>
  static void Spread(const std::byte* from, int64_t n, std::byte* to, int64_t stride) {
    const T* f = reinterpret_cast<const T*>(from);
    T* t = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) t[i * stride] = f[i];
  }

  const ConvolutionParams& p_;
  const std::byte* input_;
};

// One row of another source of rows, or all columns of one of columns, restricted to some kernel positions.
class SelectedIndices : public PanelSource {
 public:
  SelectedIndices(const PanelSource& source, int64_t group, int64_t line, const std::vector<int64_t>& places,
                  int64_t features, int64_t bytes)
      : source_(source), group_(group), line_(line), places_(places), features_(features), bytes_(bytes) {}

  void Pack(int64_t, int64_t first, int64_t count, int64_t k_begin, int64_t k_count, int64_t width,
            std::byte* to) const override {
    const int64_t lines = (count + width - 1) / width * width;
    std::vector<std::byte> one(static_cast<size_t>(lines * bytes_));
    for (int64_t k = k_begin; k < k_begin + k_count; ++k) {
      const int64_t from_k = places_[k / features_] * features_ + k % features_;
      source_.Pack(group_, line_ + first, count, from_k, 1, width, one.data());
      for (int64_t panel = 0; panel < lines / width; ++panel) {
        std::memcpy(to + (panel * k_count + k - k_begin) * width * bytes_, one.data() + panel * width * bytes_,
                    static_cast<size_t>(width * bytes_));
      }
    }
  }

 private:
  const PanelSource& source_;
  const int64_t group_;
  const int64_t line_;
  const std::vector<int64_t>& places_;
  const int64_t features_;
  const int64_t bytes_;
};

bool AllFinite(ElementType type, const std::byte* data, int64_t count) {
  return VisitType(type, [&]<typename T>(std::type_identity<T>) {
    const T* x = reinterpret_cast<const T*>(data);
    if constexpr (AnyFloat<T>) {
      // x - x is 0 unless x is infinite or NaN.
      float wrong = 0;
      for (int64_t i = 0; i < count; ++i) {
        const auto v = static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x[i]);
        wrong += static_cast<float>(v - v);
      }
      return wrong == 0;
    } else if constexpr (AnyComplex<T>) {
      for (int64_t i = 0; i < count; ++i) {
        if (!std::isfinite(x[i].real()) || !std::isfinite(x[i].imag())) return false;
      }
    }
    return true;
  });
}

// Returns true if a finite value of one type may be infinite, or NaN, as another.
bool MayOverflow(ElementType from, ElementType to) {
  const auto largest = [](ElementType type) {
    return VisitType(type, []<typename T>(std::type_identity<T>) {
      if constexpr (AnyComplex<T>) {
        return static_cast<double>(std::numeric_limits<typename T::value_type>::max());
      } else {
        return static_cast<double>(std::numeric_limits<T>::max());
      }
    });
  };
  return largest(from) > largest(to);
}

bool HasHoles(const ConvolutionParams& p) {
  for (const WindowDimension& axis : p.axes) {
    if (axis.window.base_dilation != 1 || axis.ElementAt(0, 0) < 0 ||
        axis.ElementAt(axis.output - 1, axis.window.size - 1) < 0) {
      return true;
    }
  }
  return false;
}

void RunConvolution(const ConvolutionParams& p, const std::byte* const* in, std::byte* const* out,
                    RunContext& context) {
  const PatchPanels patches(p, in[0]);
  const StridedPanels kernel(p.kernel, in[1] + p.kernel_offset);
  if (!HasHoles(p) || (!MayOverflow(p.kernel_type, p.result) && AllFinite(p.kernel_type, in[1], p.kernel_count))) {
    MultiplyMatrices(p.shape, patches, kernel, p.result, out[0], context);
    return;
  }
  const int64_t bytes = p.conversion.to_bytes();
  for (int64_t group = 0; group < p.shape.batch; ++group) {
    for (int64_t row = 0; row < p.shape.m; ++row) {
      if (!context.CheckTime()) return;
      std::vector<int64_t> places;
      int64_t offset;
      for (int64_t i = 0; i < p.places; ++i) {
        if (ElementUnder(p, row % p.positions, i, &offset)) places.push_back(i);
      }
      const SelectedIndices patch(patches, group, row, places, p.features, bytes);
      const SelectedIndices weights(kernel, group, 0, places, p.features, bytes);
      const ProductShape shape = {1, 1, p.shape.n, static_cast<int64_t>(places.size()) * p.features};
      std::byte* to = out[0] + (group * p.shape.m + row) * p.shape.n * BytesOf(p.result);
      MultiplyMatrices(shape, patch, weights, p.result, to, context);
    }
  }
}

// Returns true for integers of 8 to 32 bits, whose sums are computed in 64 bits and saturate; others wrap.
bool Saturates(ElementType type) { return IsInteger(type) && BitsOf(type) >= 8 && BitsOf(type) < 64; }
ElementType SumType(ElementType result) {
  if (!Saturates(result)) return result;
  return IsSigned(result) ? ElementType::kS64 : ElementType::kU64;
}

// Emits the saturated sums, dense, as values of `result`.
std::optional<View> EmitSaturation(CompiledComputationBuilder& b, const View& sums, ElementType result) {
  auto* bounds = b.program().program().arena.AllocateArray<int64_t>(2);
  const int bits = BitsOf(result) - (IsSigned(result) ? 1 : 0);
  bounds[1] = static_cast<int64_t>((uint64_t{1} << bits) - 1);
  bounds[0] = IsSigned(result) ? -bounds[1] - 1 : 0;
  const Shape scalar = b.program_shapes().Array(sums.type(), {});
  const View operands[] = {b.Constant(scalar, reinterpret_cast<const std::byte*>(&bounds[0])), sums,
                           b.Constant(scalar, reinterpret_cast<const std::byte*>(&bounds[1]))};
  const std::optional<View> clamped = EmitElementwise(b, Opcode::kClamp, b.instruction(), operands, sums.shape);
  if (!clamped) return std::nullopt;
  const Shape shape = b.program_shapes().Array(result, sums.dims());
  return EmitElementwise(b, Opcode::kConvert, b.instruction(), {&*clamped, 1}, shape);
}

// Converts the operand to the result's type if sums have a wider type. Returns false after an error.
bool ConvertOperand(CompiledComputationBuilder& b, ElementType result, View* operand) {
  if (!Saturates(result) || operand->type() == result) return true;
  const Shape shape = b.program_shapes().Array(result, operand->dims());
  const std::optional<View> converted = EmitElementwise(b, Opcode::kConvert, b.instruction(), {operand, 1}, shape);
  if (!converted) return false;
  *operand = *converted;
  return true;
}

// Returns the kernel, made dense if it is sparse; nullopt after an error report.
std::optional<View> PlainKernel(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const absl::StatusOr<SparsityConfig> config = SparsityConfig::Parse(instruction.string_attr(Attr::kSparsityConfig));
  if (!config.ok()) {
    b.Fail(std::string(config.status().message()));
    return std::nullopt;
  }
  const Instruction kernel = instruction.operand(1);
  if (!config->lhs && !config->rhs) {
    if (instruction.operand_count() == 2 && kernel.shape().IsArray()) return b.operand(1);
    b.Fail("expected two array operands of a convolution without sparsity_config");
    return std::nullopt;
  }
  if (config->lhs) {
    b.Fail("XLA defines no values for a convolution with a sparse input");
    return std::nullopt;
  }
  const TensorSparsityConfig& side = *config->rhs;
  // The positions are another operand, or the second half of a pair.
  const int64_t operands = instruction.operand_count();
  const bool pair = side.indices_operand == 0 && operands == 2 && kernel.shape().IsTuple() &&
                    kernel.shape().tuple_size() == 2 && b.leaves(kernel).size() == 2;
  const bool separate = operands == 3 && side.indices_operand == 2 && kernel.shape().IsArray();
  if (!pair && !separate) {
    b.Fail(
        "a sparse kernel is a pair of elements and places, or its places are operand 2 and sparsity_config has idx=2");
    return std::nullopt;
  }
  const ConvolutionDims dims = ConvolutionDims::Of(instruction);
  if (side.dimension != dims.kernel_input_feature) {
    b.Fail(StrCat("a kernel can be sparse along its input features only, dimension ", dims.kernel_input_feature,
                  ", and sparsity_config has dimension=", side.dimension));
    return std::nullopt;
  }
  return EmitDensified(b, b.leaves(kernel)[0], pair ? b.leaves(kernel)[1] : b.leaves(instruction.operand(2))[0], side);
}

// How features and images are divided into groups.
struct ConvolutionGroups {
  int64_t feature_groups = 1, batch_groups = 1;
  int64_t images = 0, features = 0, output_features = 0;  // of all groups

  int64_t count() const { return feature_groups * batch_groups; }
  int64_t group_images() const { return images / batch_groups; }
  int64_t group_features() const { return features / feature_groups; }
  int64_t group_output_features() const { return output_features / count(); }
};

// Returns nullopt after an error report.
std::optional<ConvolutionGroups> GroupsOf(CompiledComputationBuilder& b, const ConvolutionDims& dims, Shape input,
                                          Shape kernel) {
  ConvolutionGroups groups;
  groups.feature_groups = b.instruction().int_attr(Attr::kFeatureGroupCount, 1);
  groups.batch_groups = b.instruction().int_attr(Attr::kBatchGroupCount, 1);
  groups.output_features = kernel.dim(dims.kernel_output_feature);
  groups.images = input.dim(dims.input_batch);
  groups.features = input.dim(dims.input_feature);
  if (groups.feature_groups < 1 || groups.batch_groups < 1 || (groups.feature_groups > 1 && groups.batch_groups > 1) ||
      groups.output_features % groups.count() != 0 || groups.features % groups.feature_groups != 0 ||
      groups.images % groups.batch_groups != 0 || kernel.dim(dims.kernel_input_feature) != groups.group_features()) {
    b.FailMismatch("group counts that divide the batch and features of the operands");
    return std::nullopt;
  }
  return groups;
}

// Adds the spatial dimensions to the parameters. Returns false after an error report.
bool AddSpatialDimensions(CompiledComputationBuilder& b, const ConvolutionDims& dims, const View& input,
                          const View& kernel, ConvolutionParams* params) {
  const WindowView window = WindowView::Of(b.instruction());
  const Dims input_strides = StridesOf(input);
  const Dims kernel_strides = StridesOf(kernel);
  for (int64_t d = 0; d < dims.spatial_rank(); ++d) {
    WindowDimension axis;
    if (window.rank() != 0) axis.window = window[d];
    axis.input = input.shape.dim(dims.input_spatial[d]);
    axis.output = b.shape().dim(dims.output_spatial[d]);
    axis.Normalize();
    if (!axis.Valid()) {
      b.Fail("the window is too large");
      return false;
    }
    if (axis.window.size != kernel.shape.dim(dims.kernel_spatial[d])) {
      b.FailMismatch("a window of the spatial dimensions of the kernel");
      return false;
    }
    const int64_t stride = kernel_strides[dims.kernel_spatial[d]];
    if (axis.window.reversal && axis.window.size > 0) {
      params->kernel_offset += (axis.window.size - 1) * stride * BytesOf(kernel.type());
      params->kernel.contracting.Add(axis.window.size, -stride);
    } else {
      params->kernel.contracting.Add(axis.window.size, stride);
    }
    params->places *= axis.window.size;
    params->positions *= axis.output;
    params->input_strides.push_back(input_strides[dims.input_spatial[d]]);
    params->axes.push_back(axis);
  }
  return true;
}

// The product has dimensions group, image, positions, feature of the group. Returns it in the order of the result, with
// the output feature split into group and feature.
View InResultOrder(CompiledComputationBuilder& b, const ConvolutionDims& dims, View product) {
  const Dims from = StridesOf(product);
  const absl::Span<const int64_t> sizes = product.dims();
  Dims split_dims, split_strides;
  const auto add = [&](size_t d) {
    split_dims.push_back(sizes[d]);
    split_strides.push_back(from[d]);
  };
  for (int64_t d = 0; d < b.shape().rank(); ++d) {
    if (d == dims.output_batch) {
      add(1);
    } else if (d == dims.output_feature) {
      add(0);
      add(sizes.size() - 1);
    } else {
      add(2 + static_cast<size_t>(std::find(dims.output_spatial.begin(), dims.output_spatial.end(), d) -
                                  dims.output_spatial.begin()));
    }
  }
  product.shape = b.program_shapes().Array(product.type(), split_dims);
  product.strides = b.NewStrides(split_strides, split_dims);
  return product;
}

}  // namespace

void PrepareConvolution(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const Shape shape = b.shape();
  const ConvolutionDims dims = ConvolutionDims::Of(instruction);
  const WindowView window = WindowView::Of(instruction);
  const std::optional<OperandPacking> packing = OperandPackingOf(b);
  if (!packing) return;
  View input = b.operand(0);
  std::optional<View> plain_kernel = PlainKernel(b);
  if (!plain_kernel) return;
  View kernel = *plain_kernel;
  if (*packing == OperandPacking::kNibbles && dims.ok()) {
    // The nibbles of a feature are adjacent, so that feature groups remain contiguous.
    input = EmitNibbles(b, input, dims.input_feature);
    kernel = EmitNibbles(b, kernel, dims.kernel_input_feature);
  }
  if (!ConvertOperand(b, shape.element_type(), &input) || !ConvertOperand(b, shape.element_type(), &kernel)) return;
  kernel = b.MakeDense(kernel);
  if (!dims.ok() || !dims.IsPermutation() || dims.rank() != shape.rank() || input.shape.rank() != shape.rank() ||
      kernel.shape.rank() != shape.rank() || !window.ok() ||
      (window.rank() != dims.spatial_rank() && window.rank() != 0)) {
    b.FailMismatch("dimension labels and a window of the rank of the operands and the result");
    return;
  }
  const std::optional<ConvolutionGroups> groups = GroupsOf(b, dims, input.shape, kernel.shape);
  if (!groups) return;
  auto params = std::make_unique<ConvolutionParams>();
  const Dims input_strides = StridesOf(input);
  const Dims kernel_strides = StridesOf(kernel);
  const int64_t images = groups->group_images(), output_features = groups->group_output_features();
  params->features = groups->group_features();
  params->batch_stride = input_strides[dims.input_batch];
  params->feature_stride = input_strides[dims.input_feature];
  params->group_stride =
      groups->feature_groups > 1 ? params->features * params->feature_stride : images * params->batch_stride;
  params->kernel.batch.Add(groups->count(), output_features * kernel_strides[dims.kernel_output_feature]);
  params->kernel.free.Add(output_features, kernel_strides[dims.kernel_output_feature]);
  if (!AddSpatialDimensions(b, dims, input, kernel, params.get())) return;
  params->kernel.contracting.Add(params->features, kernel_strides[dims.kernel_input_feature]);
  params->result = SumType(shape.element_type());
  params->kernel_type = kernel.type();
  params->kernel_count = kernel.count();
  params->shape = {groups->count(), images * params->positions, output_features, params->places * params->features};
  if (!params->conversion.Init(input.type(), params->result) ||
      !params->kernel.conversion.Init(kernel.type(), params->result) ||
      params->shape.batch * params->shape.m * params->shape.n != shape.element_count() ||
      shape.dim(dims.output_batch) != images || shape.dim(dims.output_feature) != groups->output_features) {
    b.FailMismatch("operands whose types convert to that of the result and whose sizes give its number of elements");
    return;
  }
  const View operands[] = {input, kernel};
  if (shape.element_count() == 0) {
    b.Emit(RunNothing, nullptr, operands);
    return;
  }
  Dims product_dims = {groups->count(), images};
  for (const WindowDimension& axis : params->axes) product_dims.push_back(axis.output);
  product_dims.push_back(output_features);
  const Shape product_shape = b.program_shapes().Array(params->result, product_dims);
  View product = b.EmitTo(kKernel<RunConvolution>, std::move(params), operands, {&product_shape, 1})[0];
  if (product.type() != shape.element_type()) {
    const std::optional<View> saturated = EmitSaturation(b, product, shape.element_type());
    if (!saturated) return;
    product = *saturated;
  }
  b.SetResult(ReshapeView(b, InResultOrder(b, dims, product), shape));
}

}  // namespace hlokit::interp
