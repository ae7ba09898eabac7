// SPDX-License-Identifier: Apache-2.0
// torch.nn for scripts: modules with parameters, and those that call one op.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "tracer/dispatch/functions.h"
#include "tracer/graph/literal_scalar.h"
#include "tracer/graph/op.h"
#include "tracer/graph/schema.h"
#include "tracer/nn/layers.h"
#include "tracer/nn/multihead_attention.h"
#include "tracer/nn/recurrent_layers.h"
#include "tracer/script/native_functions.h"
#include "tracer/script/script_objects.h"

namespace hlokit::lazy::script {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 30;  // of a parameter
constexpr int64_t kMaxLayers = 1024;                // of a recurrent module

const Signature* SignatureOfForward(std::string_view parameters) {
  static auto* const known = new std::map<std::string_view, Signature>();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto [it, fresh] = known->try_emplace(parameters);
  if (fresh) it->second = *ParseSignature(StrCat("forward", parameters));
  return &it->second;
}

// Makes a module: its registry, in which the parameters are created.
class Builder {
 public:
  Builder(RunContext* context, const Value& dtype)
      : context_(*context),
        registry_(context->NewRegistry(dtype.none() ? ElementType::kF32
                                                    : *ElementTypeFromText(dtype.get<Value::Word>()->text))),
        scope_(registry_.get()) {}

  const nn::ModuleScope& scope() const { return scope_; }
  ElementType type() const { return registry_->type(); }

  // forward: "(Tensor input)".
  absl::StatusOr<Value> Finish(std::string_view forward, Module::Forward function) {
    context_.parameters += registry_->parameters().size();
    return Value(std::static_pointer_cast<Object>(
        std::make_shared<Module>(std::move(registry_), SignatureOfForward(forward), std::move(function))));
  }
  // Makes a module that applies a layer of tracer/nn to one tensor.
  template <typename Layer>
  absl::StatusOr<Value> FinishLayer(Layer layer) {
    return Finish("(Tensor input)", [layer = std::move(layer)](const Arguments& a, bool training) {
      if constexpr (std::is_invocable_v<const Layer&, const Tensor&, bool>) {
        return absl::StatusOr<Value>(layer(a.tensor(0), training));
      } else {
        return absl::StatusOr<Value>(layer(a.tensor(0)));
      }
    });
  }

 private:
  RunContext& context_;
  std::unique_ptr<nn::ParameterRegistry> registry_;
  nn::ModuleScope scope_;
};

// Returns an error unless all sizes are positive and a parameter of these sizes is not too large.
absl::Status CheckSizes(std::initializer_list<int64_t> sizes) {
  int64_t elements = 1;
  for (int64_t size : sizes) {
    if (size < 1) return absl::InvalidArgumentError(StrCat("sizes of a module must be positive, found ", size));
    elements = SaturatingMultiply(elements, size);
  }
  if (elements > kMaxElements) {
    return absl::ResourceExhaustedError(StrCat("a parameter has at most ", kMaxElements, " elements"));
  }
  return absl::OkStatus();
}

// Returns `count` numbers, for one or that many.
absl::StatusOr<std::vector<int64_t>> Repeated(std::vector<int64_t> numbers, size_t count, std::string_view name) {
  if (numbers.size() == 1) numbers.assign(count, int64_t{numbers[0]});
  if (numbers.size() != count) {
    return absl::InvalidArgumentError(
        StrCat("expected one number or ", count, " in `", name, "`, found ", numbers.size()));
  }
  return numbers;
}

absl::StatusOr<Value> Linear(RunContext& c, const Arguments& a) {
  if (absl::Status s = CheckSizes({a.integer(0), a.integer(1)}); !s.ok()) return s;
  Builder builder(&c, a[3]);
  return builder.FinishLayer(nn::Linear(builder.scope(), a.integer(0), a.integer(1), a.boolean(2)));
}

template <size_t kSpatial>
absl::StatusOr<Value> Conv(RunContext& c, const Arguments& a) {
  const int64_t in = a.integer(0), out = a.integer(1), groups = a.integer(6);
  std::vector<int64_t> lists[4];
  constexpr std::string_view kNames[] = {"kernel_size", "stride", "padding", "dilation"};
  for (size_t i = 0; i < 4; ++i) {
    absl::StatusOr<std::vector<int64_t>> list = Repeated(a.integers(i + 2), kSpatial, kNames[i]);
    if (!list.ok()) return list.status();
    lists[i] = *std::move(list);
  }
  if (groups < 1 || in % groups != 0 || out % groups != 0) {
    return absl::InvalidArgumentError(
        StrCat("in_channels (", in, ") and out_channels (", out, ") must be divisible by groups (", groups, ")"));
  }
  std::vector<int64_t> sizes = {out, in / groups};
  int64_t window = 1;
  for (int64_t size : lists[0]) {
    window = size < 1 ? 0 : SaturatingMultiply(window, size);
    sizes.push_back(size);
  }
  if (absl::Status s = CheckSizes({out, in / groups, window}); !s.ok()) return s;
  Builder builder(&c, a[8]);
  const Tensor weight = builder.scope().Parameter("weight", sizes, nn::ParameterKind::kWeight);
  const Tensor bias = a.boolean(7) ? builder.scope().Parameter("bias", {out}, nn::ParameterKind::kBias) : Tensor();
  return builder.FinishLayer(
      [weight, bias, stride = lists[1], padding = lists[2], dilation = lists[3], groups](const Tensor& x) {
        constexpr Op kOps[] = {Op::conv1d, Op::conv2d, Op::conv3d};
        return InvokeOp(kOps[kSpatial - 1], x, weight, bias, stride, padding, dilation, groups);
      });
}

template <int kSpatial>
absl::StatusOr<Value> ConvTranspose(RunContext& c, const Arguments& a) {
  const int64_t in = a.integer(0), out = a.integer(1), kernel = a.integer(2), groups = a.integer(6);
  if (groups < 1 || in % groups != 0 || out % groups != 0) {
    return absl::InvalidArgumentError("in_channels and out_channels must be divisible by groups");
  }
  int64_t window = 1;
  for (int i = 0; i < kSpatial; ++i) window = kernel < 1 ? 0 : SaturatingMultiply(window, kernel);
  if (absl::Status s = CheckSizes({in, out / groups, window}); !s.ok()) return s;
  Builder builder(&c, a[9]);
  return builder.FinishLayer(nn::ConvTransposeNd<kSpatial>(builder.scope(), in, out, kernel, a.integer(3), a.integer(4),
                                                           a.integer(5), groups, a.boolean(7), a.integer(8)));
}

absl::StatusOr<Value> BatchNorm(RunContext& c, const Arguments& a) {
  const int64_t features = a.integer(0);
  if (absl::Status s = CheckSizes({features}); !s.ok()) return s;
  Builder builder(&c, a[5]);
  const nn::ModuleScope& scope = builder.scope();
  Tensor weight, bias, mean, variance, count;
  if (a.boolean(3)) {
    weight = scope.Parameter("weight", {features}, nn::ParameterKind::kNormWeight);
    bias = scope.Parameter("bias", {features}, nn::ParameterKind::kBias);
  }
  if (a.boolean(4)) {
    mean = scope.Buffer("running_mean", {features}, 0);
    variance = scope.Buffer("running_var", {features}, 1);
    count = scope.IntegerBuffer("num_batches_tracked");
  }
  return builder.FinishLayer([=, eps = a.real(1), momentum = a.real(2)](const Tensor& x, bool training) {
    if (training && count.defined()) WriteInPlace(count, count + Scalar(1));
    return InvokeOp(Op::batch_norm, x, weight, bias, mean, variance, training || !mean.defined(), momentum, eps, false);
  });
}

absl::StatusOr<Value> InstanceNorm(RunContext& c, const Arguments& a) {
  if (absl::Status s = CheckSizes({a.integer(0)}); !s.ok()) return s;
  Builder builder(&c, a[5]);
  return builder.FinishLayer(
      nn::InstanceNorm(builder.scope(), a.integer(0), a.real(1), a.real(2), a.boolean(3), a.boolean(4)));
}

absl::StatusOr<Value> GroupNorm(RunContext& c, const Arguments& a) {
  if (absl::Status s = CheckSizes({a.integer(0), a.integer(1)}); !s.ok()) return s;
  if (a.integer(1) % a.integer(0) != 0) {
    return absl::InvalidArgumentError("num_channels must be divisible by num_groups");
  }
  Builder builder(&c, a[4]);
  return builder.FinishLayer(nn::GroupNorm(builder.scope(), a.integer(0), a.integer(1), a.real(2), a.boolean(3)));
}

absl::StatusOr<Value> LayerNorm(RunContext& c, const Arguments& a) {
  const std::vector<int64_t> sizes = a.integers(0);
  int64_t elements = 1;
  for (int64_t size : sizes) elements = size < 1 ? 0 : SaturatingMultiply(elements, size);
  if (absl::Status s = CheckSizes({elements}); !s.ok()) return s;
  Builder builder(&c, a[4]);
  Tensor weight, bias;
  if (a.boolean(2)) {
    weight = builder.scope().Parameter("weight", sizes, nn::ParameterKind::kNormWeight);
    if (a.boolean(3)) bias = builder.scope().Parameter("bias", sizes, nn::ParameterKind::kBias);
  }
  return builder.FinishLayer([weight, bias, sizes, eps = a.real(1)](const Tensor& x) {
    return InvokeOpMultiOutput(Op::native_layer_norm, x, sizes, weight, bias, eps)[0];
  });
}

absl::StatusOr<Value> RmsNorm(RunContext& c, const Arguments& a) {
  if (absl::Status s = CheckSizes({a.integer(0)}); !s.ok()) return s;
  Builder builder(&c, a[2]);
  return builder.FinishLayer(
      nn::RmsNorm(builder.scope(), a.integer(0), a.none(1) ? EpsilonOf(builder.type()) : a.real(1)));
}

absl::StatusOr<Value> Embedding(RunContext& c, const Arguments& a) {
  if (absl::Status s = CheckSizes({a.integer(0), a.integer(1)}); !s.ok()) return s;
  int64_t padding = a.none(2) ? -1 : a.integer(2);
  if (!a.none(2) && padding < 0) padding += a.integer(0);
  if (!a.none(2) && (padding < 0 || padding >= a.integer(0))) {
    return absl::InvalidArgumentError("padding_idx must be within num_embeddings");
  }
  Builder builder(&c, a[3]);
  const nn::Embedding layer(builder.scope(), a.integer(0), a.integer(1));
  return builder.FinishLayer(
      [layer, padding](const Tensor& ids) { return InvokeOp(Op::embedding, layer.weight, ids, padding); });
}

absl::StatusOr<Value> Dropout(RunContext& c, const Arguments& a) {
  if (!(a.real(0) >= 0 && a.real(0) <= 1)) {
    return absl::InvalidArgumentError("dropout probability has to be between 0 and 1");
  }
  return Builder(&c, Value::None()).FinishLayer(nn::Dropout(a.real(0)));
}

template <typename Layer>
absl::StatusOr<Value> FinishRecurrent(Builder builder, Layer layer, bool lstm) {
  return builder.Finish(
      lstm ? "(Tensor input, Tensor? h_0=none, Tensor? c_0=none)" : "(Tensor input, Tensor? h_0=none)",
      [layer = std::move(layer), lstm](const Arguments& a, bool training) {
        const nn::RecurrentOutput out = layer(a.tensor(0), training, a.tensor(1), lstm ? a.tensor(2) : Tensor());
        std::vector<Value> results = {out.output, out.h_n};
        if (lstm) results.emplace_back(out.c_n);
        return Value::ListOf(std::move(results), true);
      });
}

// Reads input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, and proj_size at `projection`.
absl::StatusOr<nn::RecurrentOptions> RecurrentOptionsOf(const Arguments& a, size_t first, size_t projection) {
  nn::RecurrentOptions options;
  options.num_layers = a.integer(first);
  options.bias = a.boolean(first + 1);
  options.batch_first = a.boolean(first + 2);
  options.dropout = a.real(first + 3);
  options.bidirectional = a.boolean(first + 4);
  if (projection != 0) options.proj_size = a.integer(projection);
  if (options.num_layers < 1 || options.num_layers > kMaxLayers) {
    return absl::InvalidArgumentError(StrCat("num_layers must be from 1 to ", kMaxLayers));
  }
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    return absl::InvalidArgumentError("dropout probability has to be between 0 and 1");
  }
  if (options.proj_size < 0 || (options.proj_size > 0 && options.proj_size >= a.integer(1))) {
    return absl::InvalidArgumentError("proj_size has to be smaller than hidden_size");
  }
  if (absl::Status s = CheckSizes({8, a.integer(0), a.integer(1)}); !s.ok()) return s;
  if (absl::Status s = CheckSizes({8, a.integer(1), a.integer(1)}); !s.ok()) return s;
  return options;
}

absl::StatusOr<Value> Rnn(RunContext& c, const Arguments& a) {
  const absl::StatusOr<nn::RecurrentOptions> options = RecurrentOptionsOf(a, 2, 0);
  if (!options.ok()) return options.status();
  if (a.text(7) != "tanh" && a.text(7) != "relu") return absl::InvalidArgumentError("nonlinearity is tanh or relu");
  Builder builder(&c, a[8]);
  nn::Rnn layer(builder.scope(), a.integer(0), a.integer(1), *options,
                a.text(7) == "relu" ? nn::Nonlinearity::kRelu : nn::Nonlinearity::kTanh);
  return FinishRecurrent(std::move(builder), std::move(layer), false);
}

absl::StatusOr<Value> Lstm(RunContext& c, const Arguments& a) {
  const absl::StatusOr<nn::RecurrentOptions> options = RecurrentOptionsOf(a, 2, 7);
  if (!options.ok()) return options.status();
  Builder builder(&c, a[8]);
  nn::Lstm layer(builder.scope(), a.integer(0), a.integer(1), *options);
  return FinishRecurrent(std::move(builder), std::move(layer), true);
}

absl::StatusOr<Value> Gru(RunContext& c, const Arguments& a) {
  const absl::StatusOr<nn::RecurrentOptions> options = RecurrentOptionsOf(a, 2, 0);
  if (!options.ok()) return options.status();
  Builder builder(&c, a[7]);
  nn::Gru layer(builder.scope(), a.integer(0), a.integer(1), *options);
  return FinishRecurrent(std::move(builder), std::move(layer), false);
}

absl::StatusOr<Value> MultiheadAttention(RunContext& c, const Arguments& a) {
  const int64_t width = a.integer(0), heads = a.integer(1);
  if (absl::Status s = CheckSizes({3, width, width}); !s.ok()) return s;
  if (heads < 1 || width % heads != 0) return absl::InvalidArgumentError("embed_dim must be divisible by num_heads");
  nn::MultiheadAttentionOptions options;
  options.dropout = a.real(2);
  options.bias = a.boolean(3);
  options.add_bias_kv = a.boolean(4);
  options.add_zero_attn = a.boolean(5);
  options.kdim = a.none(6) ? 0 : a.integer(6);
  options.vdim = a.none(7) ? 0 : a.integer(7);
  options.batch_first = a.boolean(8);
  for (int64_t size : {options.kdim, options.vdim}) {
    if (absl::Status s = CheckSizes({width, std::max<int64_t>(size, size == 0 ? 1 : size)}); !s.ok()) return s;
  }
  Builder builder(&c, a[9]);
  const nn::MultiheadAttention layer(builder.scope(), width, heads, options);
  return builder.Finish(
      "(Tensor query, Tensor key, Tensor value, Tensor? key_padding_mask=none, bool need_weights=true, Tensor? "
      "attn_mask=none, bool average_attn_weights=true)",
      [layer](const Arguments& in, bool training) -> absl::StatusOr<Value> {
        const nn::AttentionOutput out =
            layer(in.tensor(0), in.tensor(1), in.tensor(2), training, {in.tensor(3), in.tensor(5)}, in.boolean(6));
        std::vector<Value> results = {out.output};
        if (in.boolean(4)) results.emplace_back(out.weights);
        return Value::ListOf(std::move(results), true);
      });
}

// Modules given as arguments, or in lists.
absl::StatusOr<std::vector<std::shared_ptr<Module>>> ModulesIn(const Value& value) {
  std::vector<std::shared_ptr<Module>> modules;
  const std::vector<Value> one = {value};
  for (const Value& member : value.list() == nullptr ? one : value.list()->values) {
    if (member.list() != nullptr) {
      for (const Value& inner : member.list()->values) modules.push_back(inner.object<Module>());
    } else {
      modules.push_back(member.object<Module>());
    }
    if (modules.empty() || modules.back() == nullptr) {
      return absl::InvalidArgumentError(StrCat("expected modules, found ", member.KindName()));
    }
  }
  if (std::find(modules.begin(), modules.end(), nullptr) != modules.end()) {
    return absl::InvalidArgumentError("expected modules");
  }
  return modules;
}

absl::StatusOr<Value> Sequential(RunContext&, const Arguments& a) {
  const absl::StatusOr<std::vector<std::shared_ptr<Module>>> modules = ModulesIn(a[0]);
  if (!modules.ok()) return modules.status();
  auto whole = std::make_shared<Module>(nullptr, SignatureOfForward("(any input)"),
                                        [stages = *modules](const Arguments& in, bool) -> absl::StatusOr<Value> {
                                          Value x = in[0];
                                          for (const std::shared_ptr<Module>& stage : stages) {
                                            absl::StatusOr<Value> next = stage->CallWith(x);
                                            if (!next.ok()) return next.status();
                                            x = *std::move(next);
                                          }
                                          return x;
                                        });
  for (const std::shared_ptr<Module>& module : *modules) {
    if (absl::Status s = whole->AddChild(module); !s.ok()) return s;
  }
  return Value(std::static_pointer_cast<Object>(std::move(whole)));
}

absl::StatusOr<Value> Identity(RunContext& c, const Arguments&) {
  return Builder(&c, Value::None()).FinishLayer([](const Tensor& x) { return x; });
}

constexpr NativeRow kModules[] = {
    {"nn::Linear(int in_features, int out_features, bool bias=true, dtype? dtype=none)", Linear},
    {"nn::Conv1d(int in_channels, int out_channels, int[] kernel_size, int[] stride=1, int[] padding=0, int[] "
     "dilation=1, int groups=1, bool bias=true, dtype? dtype=none)",
     Conv<1>},
    {"nn::Conv2d(int in_channels, int out_channels, int[] kernel_size, int[] stride=1, int[] padding=0, int[] "
     "dilation=1, int groups=1, bool bias=true, dtype? dtype=none)",
     Conv<2>},
    {"nn::Conv3d(int in_channels, int out_channels, int[] kernel_size, int[] stride=1, int[] padding=0, int[] "
     "dilation=1, int groups=1, bool bias=true, dtype? dtype=none)",
     Conv<3>},
    {"nn::ConvTranspose1d(int in_channels, int out_channels, int kernel_size, int stride=1, int padding=0, int "
     "output_padding=0, int groups=1, bool bias=true, int dilation=1, dtype? dtype=none)",
     ConvTranspose<1>},
    {"nn::ConvTranspose2d(int in_channels, int out_channels, int kernel_size, int stride=1, int padding=0, int "
     "output_padding=0, int groups=1, bool bias=true, int dilation=1, dtype? dtype=none)",
     ConvTranspose<2>},
    {"nn::ConvTranspose3d(int in_channels, int out_channels, int kernel_size, int stride=1, int padding=0, int "
     "output_padding=0, int groups=1, bool bias=true, int dilation=1, dtype? dtype=none)",
     ConvTranspose<3>},
    {"nn::BatchNorm1d(int num_features, float eps=1e-5, float momentum=0.1, bool affine=true, bool "
     "track_running_stats=true, dtype? dtype=none)",
     BatchNorm},
    {"nn::BatchNorm2d(int num_features, float eps=1e-5, float momentum=0.1, bool affine=true, bool "
     "track_running_stats=true, dtype? dtype=none)",
     BatchNorm},
    {"nn::BatchNorm3d(int num_features, float eps=1e-5, float momentum=0.1, bool affine=true, bool "
     "track_running_stats=true, dtype? dtype=none)",
     BatchNorm},
    {"nn::InstanceNorm1d(int num_features, float eps=1e-5, float momentum=0.1, bool affine=false, bool "
     "track_running_stats=false, dtype? dtype=none)",
     InstanceNorm},
    {"nn::InstanceNorm2d(int num_features, float eps=1e-5, float momentum=0.1, bool affine=false, bool "
     "track_running_stats=false, dtype? dtype=none)",
     InstanceNorm},
    {"nn::InstanceNorm3d(int num_features, float eps=1e-5, float momentum=0.1, bool affine=false, bool "
     "track_running_stats=false, dtype? dtype=none)",
     InstanceNorm},
    {"nn::GroupNorm(int num_groups, int num_channels, float eps=1e-5, bool affine=true, dtype? dtype=none)", GroupNorm},
    {"nn::LayerNorm(int[] normalized_shape, float eps=1e-5, bool elementwise_affine=true, bool bias=true, dtype? "
     "dtype=none)",
     LayerNorm},
    {"nn::RMSNorm(int normalized_shape, float? eps=none, dtype? dtype=none)", RmsNorm},
    {"nn::Embedding(int num_embeddings, int embedding_dim, int? padding_idx=none, dtype? dtype=none)", Embedding},
    {"nn::Dropout(float p=0.5)", Dropout},
    {"nn::RNN(int input_size, int hidden_size, int num_layers=1, bool bias=true, bool batch_first=false, float "
     "dropout=0, bool bidirectional=false, str nonlinearity=\"tanh\", dtype? dtype=none)",
     Rnn},
    {"nn::LSTM(int input_size, int hidden_size, int num_layers=1, bool bias=true, bool batch_first=false, float "
     "dropout=0, bool bidirectional=false, int proj_size=0, dtype? dtype=none)",
     Lstm},
    {"nn::GRU(int input_size, int hidden_size, int num_layers=1, bool bias=true, bool batch_first=false, float "
     "dropout=0, bool bidirectional=false, dtype? dtype=none)",
     Gru},
    {"nn::MultiheadAttention(int embed_dim, int num_heads, float dropout=0, bool bias=true, bool add_bias_kv=false, "
     "bool add_zero_attn=false, int? kdim=none, int? vdim=none, bool batch_first=false, dtype? dtype=none)",
     MultiheadAttention},
    {"nn::Sequential(any *modules)", Sequential},
    {"nn::Identity()", Identity},
};

// A module that calls an op: its arguments are those of the op with the same names. `inputs`: tensors of a call, which
// are the first arguments of the op.
struct OpModule {
  std::string_view signature;
  Op op;
  std::string_view forward = "(Tensor input)";
};

constexpr std::string_view kLoss = "(Tensor input, Tensor target)";
constexpr OpModule kOpModules[] = {
    {"nn::ReLU()", Op::relu},
    {"nn::ReLU6()", Op::relu6},
    {"nn::GELU(str approximate=\"none\")", Op::gelu},
    {"nn::SiLU()", Op::silu},
    {"nn::Mish()", Op::mish},
    {"nn::Tanh()", Op::tanh},
    {"nn::Sigmoid()", Op::sigmoid},
    {"nn::Hardswish()", Op::hardswish},
    {"nn::Hardsigmoid()", Op::hardsigmoid},
    {"nn::SELU()", Op::selu},
    {"nn::ELU(number alpha=1)", Op::elu},
    {"nn::CELU(number alpha=1)", Op::celu},
    {"nn::LeakyReLU(number negative_slope=0.01)", Op::leaky_relu},
    {"nn::Hardtanh(number min_val=-1, number max_val=1)", Op::hardtanh},
    {"nn::Softplus(number beta=1, number threshold=20)", Op::softplus},
    {"nn::Threshold(number threshold, number value)", Op::threshold},
    {"nn::GLU(int dim=-1)", Op::glu},
    {"nn::Softmax(int dim=-1)", Op::softmax_int},
    {"nn::LogSoftmax(int dim=-1)", Op::log_softmax_int},
    {"nn::Flatten(int start_dim=1, int end_dim=-1)", Op::flatten_using_ints},
    {"nn::PixelShuffle(int upscale_factor)", Op::pixel_shuffle},
    {"nn::MaxPool1d(int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=false)",
     Op::max_pool1d},
    {"nn::MaxPool2d(int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=false)",
     Op::max_pool2d},
    {"nn::AvgPool1d(int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=false, bool "
     "count_include_pad=true)",
     Op::avg_pool1d},
    {"nn::AvgPool2d(int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=false, bool "
     "count_include_pad=true)",
     Op::avg_pool2d},
    {"nn::AdaptiveAvgPool2d(int[] output_size)", Op::adaptive_avg_pool2d_or_mean},
    {"nn::CrossEntropyLoss(Tensor? weight=none, int ignore_index=-100, str reduction=\"mean\", float "
     "label_smoothing=0)",
     Op::cross_entropy_loss, kLoss},
    {"nn::NLLLoss(Tensor? weight=none, int ignore_index=-100, str reduction=\"mean\")", Op::nll_loss_nd, kLoss},
    {"nn::MSELoss(str reduction=\"mean\")", Op::mse_loss, kLoss},
    {"nn::L1Loss(str reduction=\"mean\")", Op::l1_loss, kLoss},
    {"nn::SmoothL1Loss(str reduction=\"mean\", float beta=1)", Op::smooth_l1_loss, kLoss},
    {"nn::HuberLoss(str reduction=\"mean\", float delta=1)", Op::huber_loss, kLoss},
    {"nn::BCELoss(Tensor? weight=none, str reduction=\"mean\")", Op::binary_cross_entropy, kLoss},
    {"nn::BCEWithLogitsLoss(Tensor? weight=none, str reduction=\"mean\", Tensor? pos_weight=none)",
     Op::binary_cross_entropy_with_logits, kLoss},
    {"nn::KLDivLoss(str reduction=\"mean\", bool log_target=false)", Op::kl_div, kLoss},
};

// Returns a module's argument as the op's.
absl::StatusOr<IValue> OpArgument(const ArgSpec& spec, const Arguments& a, size_t i) {
  if (a.none(i)) return IValue();
  if (spec.name == "reduction") {
    constexpr std::string_view kReductions[] = {"none", "mean", "sum"};
    const auto* const found = std::find(std::begin(kReductions), std::end(kReductions), a.text(i));
    if (found == std::end(kReductions)) return absl::InvalidArgumentError("reduction is none, mean or sum");
    return IValue(static_cast<int64_t>(found - std::begin(kReductions)));
  }
  switch (spec.type) {
    case ArgType::kTensor:
      return IValue(a.tensor(i));
    case ArgType::kString:
      return IValue(a.text(i));
    case ArgType::kIntList: {
      std::vector<int64_t> list = a.integers(i);
      if (list.size() == 1 && a[i].list() == nullptr && spec.list_size > 1) {
        list.assign(static_cast<size_t>(spec.list_size), int64_t{list[0]});
      }
      return IValue(list);
    }
    case ArgType::kTensorList:
    case ArgType::kScalar:
    case ArgType::kInt:
    case ArgType::kFloat:
    case ArgType::kBool:
    case ArgType::kFloatList:
    case ArgType::kDtype:
      break;
  }
  return IValue(a.number(i));
}

absl::StatusOr<Value> MakeOpModule(const OpModule& row, const Signature& signature, RunContext* context,
                                   const Arguments& a) {
  const Schema& schema = SchemaOf(row.op);
  Args args(schema.args.size());
  for (size_t k = 0; k < schema.args.size(); ++k) args[k] = schema.args[k].default_value;
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    const int at = schema.Find(signature.parameters[i].name);
    if (at < 0) return absl::InternalError(StrCat("the op of ", row.signature, " has other arguments"));
    absl::StatusOr<IValue> value = OpArgument(schema.args[static_cast<size_t>(at)], a, i);
    if (!value.ok()) return value.status();
    args[static_cast<size_t>(at)] = *std::move(value);
  }
  return Builder(context, Value::None())
      .Finish(row.forward, [op = row.op, args](const Arguments& in, bool) -> absl::StatusOr<Value> {
        Args call = args;
        for (size_t k = 0; k < in.size(); ++k) call[k] = in.tensor(k);
        const Outputs outputs = Dispatch(op, std::move(call));
        return outputs.empty() ? Value() : Value(outputs[0]);
      });
}

}  // namespace

void AddModules(std::vector<NativeFunction>* functions) {
  for (const NativeRow& row : kModules) AddRow(row, functions);
  for (const OpModule& row : kOpModules) {
    NativeFunction& function = AddRow({row.signature, nullptr}, functions);
    function.call = [&row, signature = function.signature](RunContext& context, const Arguments& a) {
      return MakeOpModule(row, signature, &context, a);
    };
  }
}

}  // namespace hlokit::lazy::script
