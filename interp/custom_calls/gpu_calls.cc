// SPDX-License-Identifier: Apache-2.0
#include "interp/custom_calls/gpu_calls.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "interp/custom_calls/call_arrays.h"
#include "interp/custom_calls/custom_call_device.h"
#include "interp/custom_calls/gpu_arrays.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/module.h"

namespace hlokit::interp {
namespace {

constexpr std::string_view kGemm = "__cublas$gemm", kMatmul = "__cublas$lt$matmul", kMatmulF8 = "__cublas$lt$matmul$f8",
                           kConvForward = "__cudnn$convForward", kConvInput = "__cudnn$convBackwardInput",
                           kConvFilter = "__cudnn$convBackwardFilter", kConvBias = "__cudnn$convBiasActivationForward",
                           kAttention = "__cudnn$fmhaSoftmax", kAttentionBias = "__cudnn$fmhaScaleBiasSoftmax",
                           kThreeFry = "cu_threefry2x32", kThreeFryFfi = "cu_threefry2x32_ffi",
                           kPartialReduce = "PartialReduce", kApproxTopK = "ApproxTopK";
constexpr std::string_view kGpuTargets[] = {kGemm,        kMatmul,        kMatmulF8,  kConvForward,   kConvInput,
                                            kConvFilter,  kConvBias,      kAttention, kAttentionBias, kThreeFry,
                                            kThreeFryFfi, kPartialReduce, kApproxTopK};

using Operands = absl::Span<const CustomCallOperand>;
using Results = absl::Span<const CustomCallResult>;

// Returns the function with results that are zero at first, and only of arrays.
CustomCallFunction OfArrays(CustomCallFunction function) {
  return [function = std::move(function)](Operands operands, Results results, std::string_view config) {
    if (absl::Status status = CheckArrays(operands, results); !status.ok()) return status;
    ZeroResults(operands, results);
    return function(operands, results, config);
  };
}

std::vector<int64_t> DimsOf(Shape shape) { return {shape.dims().begin(), shape.dims().end()}; }

// Results that are workspaces, of any value.
void ZeroFrom(size_t first, Results results) {
  for (size_t i = first; i < results.size(); ++i) WriteZeros(results[i]);
}

// ---- activations ----

double Gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

// By the names and numbers of cuDNN's modes. Returns nullopt for modes without a function.
std::optional<double> Activate(std::string_view mode, double x, double leaky) {
  if (mode.empty() || mode == "kNone" || mode == "0") return x;
  if (mode == "kSigmoid" || mode == "1") return 1 / (1 + std::exp(-x));
  if (mode == "kRelu" || mode == "2") return std::max(x, 0.0);
  if (mode == "kRelu6" || mode == "3") return std::min(std::max(x, 0.0), 6.0);
  if (mode == "kTanh" || mode == "5") return std::tanh(x);
  if (mode == "kElu" || mode == "7") return x > 0 ? x : std::expm1(x);
  if (mode == "kLeakyRelu" || mode == "8") return x > 0 ? x : leaky * x;
  return std::nullopt;
}

// ---- products ----

bool IsF8(Shape shape) { return IsFloat(shape.element_type()) && BytesOf(shape.element_type()) == 1; }
bool IsScalarF32(Shape shape) { return shape.rank() == 0 && shape.element_type() == ElementType::kF32; }

// Where the operands after a, b and c are: an index of 0 says that there is none.
struct GemmOperands {
  size_t a_scale = 0, b_scale = 0, bias = 0, d_scale = 0;
};

// Of f8 products these are a_scale, b_scale, then the bias and d_scale; in earlier versions of XLA a_scale, b_scale,
// c_scale, d_scale and the bias. Only an f8 result has a d_scale that counts.
absl::Status FindGemmOperands(Operands operands, Shape result, size_t next, bool scaled, bool with_bias,
                              GemmOperands* found) {
  const size_t bias = with_bias ? 1 : 0;
  if (!scaled) {
    if (with_bias) found->bias = next;
    return operands.size() == next + bias ? absl::OkStatus() : MissingForm("for this number of operands");
  }
  const auto is_scale = [&](size_t i) { return i < operands.size() && IsScalarF32(operands[i].shape); };
  if (!is_scale(next) || !is_scale(next + 1)) return MissingForm("for f8 operands without two f32 scales");
  found->a_scale = next;
  found->b_scale = next + 1;
  const size_t first = next + 2, rest = operands.size() - first;
  if (rest == 2 + bias && is_scale(first) && is_scale(first + 1)) {
    found->d_scale = first + 1;
    found->bias = with_bias ? first + 2 : 0;
  } else if (rest == bias || (rest == 1 + bias && is_scale(first + bias))) {
    found->bias = with_bias ? first : 0;
    found->d_scale = rest == bias ? 0 : first + bias;
  } else {
    return MissingForm("for these operands after the scales of f8");
  }
  if (!IsF8(result)) {
    found->d_scale = 0;
  } else if (found->d_scale == 0) {
    return MissingForm("for an f8 result without its scale");
  }
  return absl::OkStatus();
}

constexpr std::string_view kEpilogues[] = {"",          "DEFAULT", "0",         "1",        "BIAS",          "RELU",
                                           "BIAS_RELU", "GELU",    "BIAS_GELU", "GELU_AUX", "BIAS_GELU_AUX", "SILU",
                                           "BIAS_SILU"};

absl::Status Gemm(Operands operands, Results results, std::string_view backend_config) {
  if (operands.size() < 2 || results.empty()) return MissingForm("for fewer than two operands");
  const nlohmann::json config = ConfigOf(backend_config, "gemm_backend_config");
  const std::string epilogue = TextOf(config, "epilogue");
  const std::string_view mode = epilogue;
  if (std::find(std::begin(kEpilogues), std::end(kEpilogues), mode) == std::end(kEpilogues)) {
    return MissingForm(StrCat("for the epilogue ", mode));
  }
  const bool relu = mode.ends_with("RELU"), gelu = mode.find("GELU") != std::string_view::npos,
             silu = mode.find("SILU") != std::string_view::npos, aux = mode.ends_with("_AUX"),
             with_bias = mode.starts_with("BIAS");
  const std::string damax = TextOf(config, "damax_output");
  const bool with_amax = damax == "true" || damax == "1";
  const double beta = NumberOf(config, "beta", 0);
  const std::vector<int64_t> dims = DimsOf(results[0].shape);
  const auto count = static_cast<size_t>(results[0].shape.element_count());
  // c is an array of the dimensions of the result, the operand after a and b.
  const bool with_addend = beta != 0;
  if (with_addend && operands.size() < 3) return MissingForm("for an addend that is missing");
  if (with_addend && DimsOf(operands[2].shape) != dims) return MissingForm("for an addend of another size");
  GemmOperands places;
  const bool scaled = IsF8(operands[0].shape) && operands.size() > 2;
  if (absl::Status status =
          FindGemmOperands(operands, results[0].shape, with_addend ? 3 : 2, scaled, with_bias, &places);
      !status.ok()) {
    return status;
  }
  if (with_addend && IsF8(operands[2].shape)) return MissingForm("for an addend of f8");
  if (with_amax && aux) return MissingForm("for damax_output with the result of an epilogue");
  if (with_amax && (results.size() < 2 || !IsScalarF32(results[1].shape))) {
    return MissingForm("for damax_output without an f32 result for it");
  }
  if (aux && (results.size() < 2 || DimsOf(results[1].shape) != dims)) {
    return MissingForm("for an epilogue without its second result");
  }
  const NumberArray lhs = ReadArray(operands[0]), rhs = ReadArray(operands[1]);
  const auto numbers = config.is_object() ? config.find("dot_dimension_numbers") : config.end();
  const bool has_numbers = config.is_object() && numbers != config.end();
  NumberArray product;
  const ProductDims product_dims = ReadProductDims(has_numbers ? *numbers : nlohmann::json(), lhs, rhs);
  if (absl::Status status = Multiply(product_dims, lhs, rhs, &dims, &product); !status.ok()) return status;
  Complex alpha(NumberOf(config, "alpha_real", 1), NumberOf(config, "alpha_imag", 0));
  for (size_t scale : {places.a_scale, places.b_scale}) {
    if (scale != 0) alpha *= ReadArray(operands[scale]).values[0];
  }
  const Complex result_scale = places.d_scale == 0 ? 1 : ReadArray(operands[places.d_scale]).values[0];
  std::vector<Complex> added, bias;
  if (with_addend) added = ReadArray(operands[2]).values;
  if (places.bias != 0) {
    // Of the last dimensions of the result, which are those of b.
    const std::vector<int64_t> bias_dims = DimsOf(operands[places.bias].shape);
    const size_t own = rhs.dims.size() - product_dims.rhs_batch.size() - product_dims.rhs_contracting.size();
    if (bias_dims.empty() || bias_dims.size() > own ||
        !std::equal(bias_dims.rbegin(), bias_dims.rend(), dims.rbegin())) {
      return MissingForm("for a bias of another size");
    }
    bias = ReadArray(operands[places.bias]).values;
  }
  std::vector<Complex> before(aux ? count : 0);
  double amax = 0;
  for (size_t i = 0; i < count; ++i) {
    if (ShouldStopAfter(8)) return absl::OkStatus();
    Complex x = alpha * product.values[i];
    if (with_addend) x += beta * added[i];
    if (!bias.empty()) x += bias[i % bias.size()];
    if (aux) before[i] = x;
    if (relu) x = std::max(x.real(), 0.0);
    if (gelu) x = Gelu(x.real());
    if (silu) x = x.real() / (1 + std::exp(-x.real()));
    // The largest is of the values before their scale.
    if (with_amax && !(std::abs(x.real()) <= amax)) amax = std::isnan(amax) ? amax : std::abs(x.real());
    product.values[i] = x * result_scale;
  }
  WriteArray(product.values, results[0], /*saturate=*/true);
  size_t written = 1;
  if (aux) WriteArray(before, results[written++]);
  if (with_amax) WriteArray({amax}, results[written++]);
  ZeroFrom(written, results);
  return absl::OkStatus();
}

// ---- convolutions ----

struct Convolution {
  std::vector<int64_t> labels;
  std::vector<int64_t> window;
  int64_t groups = 1;
  std::string_view target;
};

// Calls f(input, kernel, output), places in arrays of the sizes, for every product of the convolution.
template <typename F>
bool ForEachProduct(const Convolution& call, const std::vector<int64_t>& input, const std::vector<int64_t>& kernel,
                    const std::vector<int64_t>& output, F f) {
  const ConvolutionDims dims(call.labels);
  const WindowView window(call.window);
  const auto rank = static_cast<size_t>(dims.rank());
  if (!dims.ok() || !dims.IsPermutation() || !window.ok() || window.rank() != dims.spatial_rank()) return false;
  if (input.size() != rank || kernel.size() != rank || output.size() != rank) return false;
  const auto at = [](const std::vector<int64_t>& sizes, int64_t d) { return sizes[static_cast<size_t>(d)]; };
  const auto strides_of = [](const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
    return strides;
  };
  const std::vector<int64_t> is = strides_of(input), ks = strides_of(kernel), os = strides_of(output);
  const int64_t features = at(kernel, dims.kernel_input_feature), outputs = at(kernel, dims.kernel_output_feature);
  if (call.groups < 1 || features * call.groups != at(input, dims.input_feature) || outputs % call.groups != 0 ||
      outputs != at(output, dims.output_feature) || at(input, dims.input_batch) != at(output, dims.output_batch)) {
    return false;
  }
  constexpr int64_t kFar = int64_t{1} << 31;
  for (int64_t d = 0; d < dims.spatial_rank(); ++d) {
    const WindowDim w = window[d];
    for (int64_t number : {w.stride, w.window_dilation, w.base_dilation, w.padding_low}) {
      if (number > kFar || number < -kFar) return false;
    }
    if (w.size != at(kernel, dims.kernel_spatial[static_cast<size_t>(d)])) return false;
  }
  constexpr int64_t kChunk = 64;
  int64_t places = 1, taps = 1;
  for (int64_t d = 0; d < dims.spatial_rank(); ++d) {
    places *= at(output, dims.output_spatial[static_cast<size_t>(d)]);
    taps *= at(kernel, dims.kernel_spatial[static_cast<size_t>(d)]);
  }
  for (int64_t place = 0; place < places; ++place) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t in = 0, k = 0, out = 0, rest_place = place, rest_tap = tap;
      bool inside = true;
      if (ShouldStopAfter(16)) return true;
      for (int64_t d = dims.spatial_rank() - 1; d >= 0; --d) {
        const int64_t id = dims.input_spatial[static_cast<size_t>(d)], kd = dims.kernel_spatial[static_cast<size_t>(d)],
                      od = dims.output_spatial[static_cast<size_t>(d)];
        const int64_t o = rest_place % at(output, od), t = rest_tap % at(kernel, kd);
        rest_place /= at(output, od);
        rest_tap /= at(kernel, kd);
        const WindowDim w = window[d];
        const int64_t position = o * w.stride + t * w.window_dilation - w.padding_low;
        if (position < 0 || w.base_dilation < 1 || position % w.base_dilation != 0 ||
            position / w.base_dilation >= at(input, id)) {
          inside = false;
          break;
        }
        in += position / w.base_dilation * is[static_cast<size_t>(id)];
        k += (w.reversal ? at(kernel, kd) - 1 - t : t) * ks[static_cast<size_t>(kd)];
        out += o * os[static_cast<size_t>(od)];
      }
      if (!inside) continue;
      for (int64_t b = 0; b < at(input, dims.input_batch); ++b) {
        for (int64_t o = 0; o < outputs; ++o) {
          const int64_t group = o / (outputs / call.groups);
          for (int64_t i = 0; i < features; ++i) {
            if (i % kChunk == 0 && ShouldStopAfter(kChunk)) return true;
            f(static_cast<size_t>(in + b * is[static_cast<size_t>(dims.input_batch)] +
                                  (group * features + i) * is[static_cast<size_t>(dims.input_feature)]),
              static_cast<size_t>(k + i * ks[static_cast<size_t>(dims.kernel_input_feature)] +
                                  o * ks[static_cast<size_t>(dims.kernel_output_feature)]),
              static_cast<size_t>(out + b * os[static_cast<size_t>(dims.output_batch)] +
                                  o * os[static_cast<size_t>(dims.output_feature)]));
          }
        }
      }
    }
  }
  return true;
}

absl::Status Convolve(const Convolution& call, Operands operands, Results results, std::string_view backend_config) {
  if (operands.size() < 2 || results.empty()) return MissingForm("for fewer than two operands");
  const nlohmann::json config = ConfigOf(backend_config, "cudnn_conv_backend_config");
  const ConvolutionDims labels(call.labels);
  const std::vector<int64_t> dims = DimsOf(results[0].shape);
  const bool with_bias = call.target == kConvBias;
  if (operands.size() > (with_bias ? 4u : 2u)) return MissingForm("for more operands than those of a convolution");
  if (with_bias) {
    const int64_t feature = labels.ok() ? labels.output_feature : -1;
    if (feature < 0 || feature >= static_cast<int64_t>(dims.size())) return MissingForm("for these dimension labels");
    if (operands.size() > 2 && operands[2].shape.element_count() != dims[static_cast<size_t>(feature)]) {
      return MissingForm("for a bias of another size");
    }
    if (operands.size() > 3 && DimsOf(operands[3].shape) != dims)
      return MissingForm("for a side input of another size");
  }
  const NumberArray a = ReadArray(operands[0]), b = ReadArray(operands[1]);
  std::vector<Complex> made(static_cast<size_t>(results[0].shape.element_count()));
  bool fits = false;
  if (call.target == kConvInput) {  // the gradient of the output, the kernel
    fits = ForEachProduct(call, dims, b.dims, a.dims,
                          [&](size_t in, size_t k, size_t out) { made[in] += a.values[out] * b.values[k]; });
  } else if (call.target == kConvFilter) {  // the input, the gradient of the output
    fits = ForEachProduct(call, a.dims, dims, b.dims,
                          [&](size_t in, size_t k, size_t out) { made[k] += a.values[in] * b.values[out]; });
  } else {
    fits = ForEachProduct(call, a.dims, b.dims, dims,
                          [&](size_t in, size_t k, size_t out) { made[out] += a.values[in] * b.values[k]; });
  }
  if (!fits) return MissingForm("for these sizes and dimension labels, as those of packed vectors");
  const double scale = NumberOf(config, "conv_result_scale", 1);
  for (Complex& x : made) x *= scale == 0 ? 1 : scale;
  if (with_bias) {
    const std::vector<Complex> bias = operands.size() > 2 ? ReadArray(operands[2]).values : std::vector<Complex>();
    const std::vector<Complex> side = operands.size() > 3 ? ReadArray(operands[3]).values : std::vector<Complex>();
    const double side_scale = NumberOf(config, "side_input_scale", 0);
    const std::string mode = TextOf(config, "activation_mode");
    const double leaky = NumberOf(config, "leakyrelu_alpha", 0);
    int64_t inner = 1;
    for (int64_t d = labels.output_feature + 1; d < static_cast<int64_t>(dims.size()); ++d) {
      inner *= dims[static_cast<size_t>(d)];
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (ShouldStopAfter(8)) return absl::OkStatus();
      if (!bias.empty()) made[i] += bias[i / static_cast<size_t>(inner) % bias.size()];
      if (!side.empty()) made[i] += side_scale * side[i];
      const std::optional<double> x = Activate(mode, made[i].real(), leaky);
      if (!x) return MissingForm(StrCat("for the activation ", mode));
      made[i] = *x;
    }
  }
  WriteArray(made, results[0]);
  ZeroFrom(1, results);
  return absl::OkStatus();
}

// ---- attention ----

absl::Status Attend(bool with_bias, Operands operands, Results results, std::string_view backend_config) {
  const nlohmann::json config = ConfigOf(backend_config, "cudnn_fmha_backend_config");
  const std::string mask = TextOf(config, "mask_type");
  const bool causal = mask == "CAUSAL";
  if (!causal && !mask.empty() && mask != "NO_MASK") return MissingForm(StrCat("for the mask ", mask));
  if (NumberOf(config, "dropout_rate", 0) != 0) return MissingForm("for a dropout");
  if (NumberOf(config, "sliding_window_length", 0) > 0) return MissingForm("for a sliding window");
  if (operands.size() != (with_bias ? 4u : 3u) || results.empty()) return MissingForm("for these operands");
  const NumberArray q = ReadArray(operands[0]), k = ReadArray(operands[1]), v = ReadArray(operands[2]);
  const auto numbers = [&](const char* name) {
    const auto found = config.is_object() ? config.find(name) : config.end();
    return config.is_object() && found != config.end() ? *found : nlohmann::json();
  };
  NumberArray weights, result;
  if (absl::Status status =
          Multiply(ReadProductDims(numbers("bmm1_dot_dimension_numbers"), q, k), q, k, nullptr, &weights);
      !status.ok()) {
    return status;
  }
  if (weights.dims.size() < 2) return MissingForm("for these sizes");
  const auto columns = static_cast<size_t>(weights.dims.back()),
             rows = static_cast<size_t>(weights.dims[weights.dims.size() - 2]);
  const double scale = NumberOf(config, "fmha_scale", 1);
  const NumberArray bias = with_bias ? ReadArray(operands[3]) : NumberArray();
  if (with_bias && bias.dims.size() != weights.dims.size()) return MissingForm("for a bias of another rank");
  for (size_t d = 0; with_bias && d < bias.dims.size(); ++d) {
    if (bias.dims[d] != 1 && bias.dims[d] != weights.dims[d]) return MissingForm("for a bias of another size");
  }
  std::vector<Complex> statistics;
  for (size_t row = 0; columns > 0 && row * columns < weights.values.size(); ++row) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      const size_t i = row * columns + c;
      if (ShouldStopAfter(16)) return absl::OkStatus();
      double x = weights.values[i].real() * scale;
      if (with_bias) {
        size_t place = 0, rest = i, stride = 1;
        for (size_t d = weights.dims.size(); d-- > 0;) {
          const size_t index = rest % static_cast<size_t>(weights.dims[d]);
          rest /= static_cast<size_t>(weights.dims[d]);
          place += (bias.dims[d] == 1 ? 0 : index) * stride;
          stride *= static_cast<size_t>(bias.dims[d]);
        }
        x += bias.values[place].real();
      }
      if (causal && c > row % rows) x = -std::numeric_limits<double>::infinity();
      weights.values[i] = x;
      largest = std::max(largest, x);
    }
    for (size_t c = 0; c < columns; ++c) sum += std::exp(weights.values[row * columns + c].real() - largest);
    for (size_t c = 0; c < columns; ++c) {
      Complex& x = weights.values[row * columns + c];
      x = std::exp(x.real() - largest) / sum;
    }
    statistics.emplace_back(largest + std::log(sum));
  }
  const std::vector<int64_t> dims = DimsOf(results[0].shape);
  if (absl::Status status =
          Multiply(ReadProductDims(numbers("bmm2_dot_dimension_numbers"), weights, v), weights, v, &dims, &result);
      !status.ok()) {
    return status;
  }
  WriteArray(result.values, results[0]);
  size_t written = 1;
  if (results.size() > 2 && IsFloat(results[1].shape.element_type()) &&
      results[1].shape.element_count() == static_cast<int64_t>(statistics.size())) {
    WriteArray(statistics, results[written++]);  // for the gradient: the logarithm of the sum
  }
  ZeroFrom(written, results);
  return absl::OkStatus();
}

// ---- random bits ----

void ThreeFryBlock(uint32_t k0, uint32_t k1, uint32_t* x0, uint32_t* x1) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  uint32_t a = *x0 + keys[0], b = *x1 + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      a += b;
      b = std::rotl(b, rotation) ^ a;
    }
    a += keys[(group + 1) % 3];
    b += keys[(group + 2) % 3] + group + 1;
  }
  *x0 = a;
  *x1 = b;
}

absl::Status ThreeFry(Operands operands, Results results, std::string_view) {
  if (operands.size() < 4 || results.size() < 2) return MissingForm("for fewer than four operands");
  const auto is_u32 = [](Shape s) { return s.IsArray() && s.element_type() == ElementType::kU32; };
  const auto count = static_cast<size_t>(results[0].shape.element_count());
  for (size_t i = 0; i < 4; ++i) {
    const auto size = static_cast<size_t>(operands[i].shape.element_count());
    if (!is_u32(operands[i].shape) || (size != count && size != 1)) return MissingForm("for these operands");
  }
  if (!is_u32(results[0].shape) || !is_u32(results[1].shape) ||
      results[1].shape.element_count() != results[0].shape.element_count()) {
    return MissingForm("for these results");
  }
  const auto load = [&](size_t operand, size_t i) {
    uint32_t x = 0;
    const size_t at = operands[operand].shape.element_count() == 1 ? 0 : i;
    std::memcpy(&x, operands[operand].data + at * sizeof(x), sizeof(x));
    return x;
  };
  for (size_t i = 0; i < count; ++i) {
    if (ShouldStopAfter(16)) break;
    uint32_t x0 = load(2, i), x1 = load(3, i);
    ThreeFryBlock(load(0, i), load(1, i), &x0, &x1);
    std::memcpy(results[0].data + i * sizeof(x0), &x0, sizeof(x0));
    std::memcpy(results[1].data + i * sizeof(x1), &x1, sizeof(x1));
  }
  return absl::OkStatus();
}

// ---- the first elements ----

// Sorts numbers, stably, unless the run ends.
template <typename Less>
void SortStably(std::vector<int64_t>* order, Less less) {
  constexpr size_t kRun = 32;
  std::vector<int64_t> merged(order->size());
  for (size_t low = 0; low < order->size(); low += kRun) {
    if (ShouldStopAfter(kRun * 8)) return;
    const size_t high = std::min(order->size(), low + kRun);
    std::stable_sort(order->begin() + static_cast<int64_t>(low), order->begin() + static_cast<int64_t>(high), less);
  }
  for (size_t width = kRun; width < order->size(); width *= 2) {
    for (size_t low = 0; low < order->size(); low += 2 * width) {
      const size_t middle = std::min(order->size(), low + width), high = std::min(order->size(), low + 2 * width);
      size_t left = low, right = middle;
      for (size_t to = low; to < high; ++to) {
        if (ShouldStopAfter(4)) return;
        const bool take_right = left == middle || (right < high && less((*order)[right], (*order)[left]));
        merged[to] = (*order)[take_right ? right++ : left++];
      }
    }
    order->swap(merged);
  }
}

// Operands are arrays, then initial values; results the first of each in the order of the first array.
absl::Status FirstInOrder(bool largest, Operands operands, Results results, std::string_view backend_config) {
  const size_t arrays = results.size();
  if (arrays == 0 || (operands.size() != arrays && operands.size() != 2 * arrays)) {
    return MissingForm("for these operands");
  }
  const nlohmann::json config = ConfigOf(backend_config, "approx_top_k");
  const Shape shape = operands[0].shape;
  const double named = NumberOf(config, "reduction_dim", -1);
  const int64_t given = std::abs(named) < 1e6 ? static_cast<int64_t>(named) : shape.rank();
  const int64_t dimension = given < 0 ? given + shape.rank() : given;
  if (dimension < 0 || dimension >= shape.rank() || results[0].shape.rank() != shape.rank()) {
    return MissingForm("for this dimension");
  }
  const int64_t from = shape.dim(dimension), to = results[0].shape.dim(dimension);
  if (to > from) return MissingForm("for a result of more elements than the operand has");
  std::vector<int64_t> result_dims = DimsOf(shape);
  result_dims[static_cast<size_t>(dimension)] = to;
  for (size_t k = 0; k < arrays; ++k) {
    if (DimsOf(operands[k].shape) != DimsOf(shape) || DimsOf(results[k].shape) != result_dims ||
        operands[k].shape.element_type() != results[k].shape.element_type()) {
      return MissingForm("for operands and results of other sizes or types");
    }
  }
  if (results[0].shape.element_count() == 0) return absl::OkStatus();
  int64_t inner = 1, outer = 1;
  for (int64_t d = dimension + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
  for (int64_t d = 0; d < dimension; ++d) outer *= shape.dim(d);
  const NumberArray keys = ReadArray(operands[0]);
  std::vector<int64_t> order(static_cast<size_t>(from));
  std::vector<std::byte> column;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto key = [&](int64_t n) { return keys.values[static_cast<size_t>((o * from + n) * inner + i)].real(); };
      std::iota(order.begin(), order.end(), int64_t{0});
      SortStably(&order, [&](int64_t a, int64_t b) {
        const double x = key(a), y = key(b);
        if (std::isnan(x) || std::isnan(y)) return !std::isnan(largest ? y : x);
        return largest ? x > y : x < y;
      });
      for (size_t k = 0; k < arrays; ++k) {
        // A result may be in the place of the operand: the elements are copied first.
        const auto bytes = static_cast<size_t>(BytesOf(results[k].shape.element_type()));
        column.resize(static_cast<size_t>(to) * bytes);
        for (int64_t n = 0; n < to; ++n) {
          if (ShouldStopAfter(4)) return absl::OkStatus();
          const int64_t source = (o * from + order[static_cast<size_t>(n)]) * inner + i;
          std::memcpy(&column[static_cast<size_t>(n) * bytes], operands[k].data + static_cast<size_t>(source) * bytes,
                      bytes);
        }
        for (int64_t n = 0; n < to; ++n) {
          std::memcpy(results[k].data + static_cast<size_t>((o * to + n) * inner + i) * bytes,
                      &column[static_cast<size_t>(n) * bytes], bytes);
        }
      }
    }
  }
  return absl::OkStatus();
}

// The comparator says whether the largest elements come first.
bool PutsLargestFirst(Instruction call) {
  bool largest = true;
  call.ForEachCallee([&](Computation callee) {
    const Instruction root = callee.root();
    if (root.opcode() != Opcode::kCompare) return;
    const auto direction = root.enum_attr(Attr::kDirection, ComparisonDirection::kGt);
    const bool greater = direction == ComparisonDirection::kGt || direction == ComparisonDirection::kGe;
    const bool in_order = root.operand(0).opcode() != Opcode::kParameter || root.operand(0).parameter_number() == 0;
    largest = greater == in_order;
  });
  return largest;
}

}  // namespace

absl::Span<const std::string_view> GpuCallTargets() { return kGpuTargets; }

CustomCallFunction GpuCallFor(Instruction call) {
  const std::string_view target = call.string_attr(Attr::kCustomCallTarget);
  if (target == kGemm || target == kMatmul || target == kMatmulF8) return OfArrays(Gemm);
  if (target == kThreeFry || target == kThreeFryFfi) return OfArrays(ThreeFry);
  if (target == kAttention || target == kAttentionBias) {
    return OfArrays([bias = target == kAttentionBias](Operands operands, Results results, std::string_view config) {
      return Attend(bias, operands, results, config);
    });
  }
  if (target == kPartialReduce || target == kApproxTopK) {
    return OfArrays([largest = PutsLargestFirst(call)](Operands operands, Results results, std::string_view config) {
      return FirstInOrder(largest, operands, results, config);
    });
  }
  for (std::string_view name : {kConvForward, kConvInput, kConvFilter, kConvBias}) {
    if (target != name) continue;
    const absl::Span<const int64_t> labels = call.list_attr(Attr::kDimLabels), window = call.list_attr(Attr::kWindow);
    const Convolution convolution = {std::vector<int64_t>(labels.begin(), labels.end()),
                                     std::vector<int64_t>(window.begin(), window.end()),
                                     call.int_attr(Attr::kFeatureGroupCount, 1), name};
    return OfArrays([convolution](Operands operands, Results results, std::string_view config) {
      return Convolve(convolution, operands, results, config);
    });
  }
  return nullptr;
}

}  // namespace hlokit::interp
