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
bool IsScalarF32(const CustomCallOperand& o) {
  return o.shape.IsArray() && o.shape.rank() == 0 && o.shape.element_type() == ElementType::kF32;
}

absl::Status Gemm(Operands operands, Results results, std::string_view backend_config) {
  if (operands.size() < 2 || results.empty()) return MissingForm("for fewer than two operands");
  const nlohmann::json config = ConfigOf(backend_config, "gemm_backend_config");
  const NumberArray lhs = ReadArray(operands[0]), rhs = ReadArray(operands[1]);
  const auto numbers = config.is_object() ? config.find("dot_dimension_numbers") : config.end();
  const bool has_numbers = config.is_object() && numbers != config.end();
  NumberArray product;
  if (!Multiply(ReadProductDims(has_numbers ? *numbers : nlohmann::json(), lhs, rhs), lhs, rhs, &product)) {
    return MissingForm("for dimensions that do not fit");
  }
  const auto count = static_cast<size_t>(results[0].shape.element_count());
  if (product.values.size() != count) return MissingForm("for a result of another size");
  Complex alpha(NumberOf(config, "alpha_real", 1), NumberOf(config, "alpha_imag", 0));
  const double beta = NumberOf(config, "beta", 0);
  size_t next = 2;
  // c is an array of the size of the result.
  std::vector<Complex> added(count);
  if (beta != 0 && next < operands.size()) {
    const NumberArray c = ReadArray(operands[next++]);
    if (c.values.size() != count) return MissingForm("for an addend of another size");
    for (size_t i = 0; i < count; ++i) added[i] = beta * c.values[i];
  }
  // The scales of f8: of a, b and, if the result is one too, of the result.
  Complex result_scale = 1;
  if (IsF8(operands[0].shape)) {
    for (int scale = 0; next < operands.size() && IsScalarF32(operands[next]); ++scale, ++next) {
      const Complex value = ReadArray(operands[next]).values[0];
      const bool last = next + 1 == operands.size() || !IsScalarF32(operands[next + 1]);
      if (scale < 2) alpha *= value;
      if (scale >= 2 && last && IsF8(results[0].shape)) result_scale = value;
    }
  }
  const std::string epilogue = TextOf(config, "epilogue");
  const std::string_view mode = epilogue;
  std::vector<Complex> bias;
  if (mode.starts_with("BIAS")) {
    if (next >= operands.size()) return MissingForm("for a bias that is missing");
    bias = ReadArray(operands[next++]).values;
    if (bias.empty() || count % bias.size() != 0) return MissingForm("for a bias of another size");
  }
  const bool relu = mode.ends_with("RELU"), gelu = mode.find("GELU") != std::string_view::npos,
             silu = mode.find("SILU") != std::string_view::npos, aux = mode.ends_with("_AUX");
  if (!mode.empty() && mode != "DEFAULT" && mode != "0" && mode != "1" && mode != "BIAS" && !relu && !gelu && !silu) {
    return MissingForm(StrCat("for the epilogue ", mode));
  }
  std::vector<Complex> before(count);
  for (size_t i = 0; i < count; ++i) {
    Complex x = alpha * product.values[i] + added[i];
    if (!bias.empty()) x += bias[i % bias.size()];
    before[i] = x;
    if (relu) x = std::max(x.real(), 0.0);
    if (gelu) x = Gelu(x.real());
    if (silu) x = x.real() / (1 + std::exp(-x.real()));
    product.values[i] = x * result_scale;
  }
  WriteArray(product.values, results[0]);
  size_t written = 1;
  if (aux && results.size() > 1) WriteArray(before, results[written++]);
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
  int64_t places = 1, taps = 1;
  for (int64_t d = 0; d < dims.spatial_rank(); ++d) {
    places *= at(output, dims.output_spatial[static_cast<size_t>(d)]);
    taps *= at(kernel, dims.kernel_spatial[static_cast<size_t>(d)]);
  }
  for (int64_t place = 0; place < places; ++place) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t in = 0, k = 0, out = 0, rest_place = place, rest_tap = tap;
      bool inside = true;
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
      if (ShouldStopCustomCall()) return true;
      for (int64_t b = 0; b < at(input, dims.input_batch); ++b) {
        for (int64_t o = 0; o < outputs; ++o) {
          const int64_t group = o / (outputs / call.groups);
          for (int64_t i = 0; i < features; ++i) {
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
  const NumberArray a = ReadArray(operands[0]), b = ReadArray(operands[1]);
  const std::vector<int64_t> dims(results[0].shape.dims().begin(), results[0].shape.dims().end());
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
  if (call.target == kConvBias) {
    const ConvolutionDims numbers(call.labels);
    const std::vector<Complex> bias = operands.size() > 2 ? ReadArray(operands[2]).values : std::vector<Complex>();
    const std::vector<Complex> side = operands.size() > 3 ? ReadArray(operands[3]).values : std::vector<Complex>();
    const double side_scale = NumberOf(config, "side_input_scale", 0);
    const std::string mode = TextOf(config, "activation_mode");
    int64_t inner = 1;
    for (int64_t d = numbers.output_feature + 1; d < static_cast<int64_t>(dims.size()); ++d) {
      inner *= dims[static_cast<size_t>(d)];
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (!bias.empty()) made[i] += bias[i / static_cast<size_t>(inner) % bias.size()];
      if (side.size() == made.size()) made[i] += side_scale * side[i];
      const std::optional<double> x = Activate(mode, made[i].real(), NumberOf(config, "leakyrelu_alpha", 0));
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
  if (!Multiply(ReadProductDims(numbers("bmm1_dot_dimension_numbers"), q, k), q, k, &weights) ||
      weights.dims.size() < 2) {
    return MissingForm("for these sizes");
  }
  const auto columns = static_cast<size_t>(weights.dims.back()),
             rows = static_cast<size_t>(weights.dims[weights.dims.size() - 2]);
  const double scale = NumberOf(config, "fmha_scale", 1);
  const NumberArray bias = with_bias ? ReadArray(operands[3]) : NumberArray();
  if (with_bias && bias.dims.size() != weights.dims.size()) return MissingForm("for a bias of another rank");
  std::vector<Complex> statistics;
  for (size_t row = 0; columns > 0 && row * columns < weights.values.size(); ++row) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      const size_t i = row * columns + c;
      double x = weights.values[i].real() * scale;
      if (with_bias) {
        size_t place = 0, rest = i, stride = 1;
        for (size_t d = weights.dims.size(); d-- > 0;) {
          const size_t index = rest % static_cast<size_t>(weights.dims[d]);
          rest /= static_cast<size_t>(weights.dims[d]);
          place += (bias.dims[d] == 1 ? 0 : index) * stride;
          stride *= static_cast<size_t>(bias.dims[d]);
        }
        if (place >= bias.values.size()) return MissingForm("for a bias of another size");
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
  if (!Multiply(ReadProductDims(numbers("bmm2_dot_dimension_numbers"), weights, v), weights, v, &result) ||
      result.values.size() != static_cast<size_t>(results[0].shape.element_count())) {
    return MissingForm("for these sizes");
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
    uint32_t x0 = load(2, i), x1 = load(3, i);
    ThreeFryBlock(load(0, i), load(1, i), &x0, &x1);
    std::memcpy(results[0].data + i * sizeof(x0), &x0, sizeof(x0));
    std::memcpy(results[1].data + i * sizeof(x1), &x1, sizeof(x1));
  }
  return absl::OkStatus();
}

// ---- the first elements ----

// Operands are arrays, then initial values; results the first of each in the order of the first array.
absl::Status FirstInOrder(bool largest, Operands operands, Results results, std::string_view backend_config) {
  const size_t arrays = results.size();
  if (arrays == 0 || operands.size() < arrays) return MissingForm("for these operands");
  const nlohmann::json config = ConfigOf(backend_config, "approx_top_k");
  const Shape shape = operands[0].shape;
  const auto given = static_cast<int64_t>(NumberOf(config, "reduction_dim", -1));
  const int64_t dimension = given < 0 ? given + shape.rank() : given;
  if (dimension < 0 || dimension >= shape.rank() || results[0].shape.rank() != shape.rank()) {
    return MissingForm("for this dimension");
  }
  const int64_t from = shape.dim(dimension), to = results[0].shape.dim(dimension);
  if (to > from) return MissingForm("for a result of more elements than the operand has");
  int64_t inner = 1, outer = 1;
  for (int64_t d = dimension + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
  for (int64_t d = 0; d < dimension; ++d) outer *= shape.dim(d);
  const NumberArray keys = ReadArray(operands[0]);
  std::vector<int64_t> order(static_cast<size_t>(from));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto key = [&](int64_t n) { return keys.values[static_cast<size_t>((o * from + n) * inner + i)].real(); };
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const double x = key(a), y = key(b);
        if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y) && largest;
        return largest ? x > y : x < y;
      });
      for (size_t k = 0; k < arrays; ++k) {
        const auto bytes = static_cast<size_t>(BytesOf(results[k].shape.element_type()));
        for (int64_t n = 0; n < to; ++n) {
          std::memcpy(
              results[k].data + static_cast<size_t>((o * to + n) * inner + i) * bytes,
              operands[k].data + static_cast<size_t>((o * from + order[static_cast<size_t>(n)]) * inner + i) * bytes,
              bytes);
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
  if (target == kGemm || target == kMatmul || target == kMatmulF8) return Gemm;
  if (target == kThreeFry || target == kThreeFryFfi) return ThreeFry;
  if (target == kAttention || target == kAttentionBias) {
    return [bias = target == kAttentionBias](Operands operands, Results results, std::string_view config) {
      return Attend(bias, operands, results, config);
    };
  }
  if (target == kPartialReduce || target == kApproxTopK) {
    return [largest = PutsLargestFirst(call)](Operands operands, Results results, std::string_view config) {
      return FirstInOrder(largest, operands, results, config);
    };
  }
  for (std::string_view name : {kConvForward, kConvInput, kConvFilter, kConvBias}) {
    if (target != name) continue;
    const absl::Span<const int64_t> labels = call.list_attr(Attr::kDimLabels), window = call.list_attr(Attr::kWindow);
    const Convolution convolution = {std::vector<int64_t>(labels.begin(), labels.end()),
                                     std::vector<int64_t>(window.begin(), window.end()),
                                     call.int_attr(Attr::kFeatureGroupCount, 1), name};
    return [convolution](Operands operands, Results results, std::string_view config) {
      return Convolve(convolution, operands, results, config);
    };
  }
  return nullptr;
}

}  // namespace hlokit::interp
