// SPDX-License-Identifier: Apache-2.0
// Image networks, with torchvision's parameter names.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tracer/models/blocks.h"
#include "tracer/models/model.h"
#include "tracer/nn/containers.h"
#include "tracer/nn/layers.h"

namespace hlokit::lazy::models {
namespace {

using nn::BatchNorm2d;
using nn::Conv2d;
using nn::Linear;
using nn::ModuleScope;

// A sequence of layers whose scopes are given.
class Chain : public nn::Sequential {
 public:
  Chain() : Sequential(ModuleScope(nullptr)) {}
  void AddRelu(const std::source_location& location = std::source_location::current()) {
    Append([](const LocatedTensor& x) { return Relu(x); }, location);
  }
  void AddRelu6(const std::source_location& location = std::source_location::current()) {
    Append([](const LocatedTensor& x) { return nn::Relu6(x); }, location);
  }
  void AddMaxPool(int64_t kernel, int64_t stride, int64_t padding = 0, bool ceil = false,
                  const std::source_location& location = std::source_location::current()) {
    Append([=](const LocatedTensor& x) { return nn::MaxPool(x, kernel, stride, padding, ceil); }, location);
  }
  void AddAvgPoolTo(int64_t size, const std::source_location& location = std::source_location::current()) {
    Append([=](const LocatedTensor& x) { return nn::AdaptiveAvgPool(x, size); }, location);
  }
  void AddDropout(double rate, const std::source_location& location = std::source_location::current()) {
    if (rate == 0) return;
    Append([rate](const LocatedTensor& x, bool training) { return Dropout(x, rate, training); }, location);
  }
  void AddFlatten(const std::source_location& location = std::source_location::current()) {
    Append([](const LocatedTensor& x) { return Flatten(x, 1); }, location);
  }
};

class Convnet : public Model {
 public:
  Convnet(const ModelConfig& config, Chain chain) : config_(config), chain_(std::move(chain)) {
    for (int64_t i = 0; i < chain_.size(); ++i) {
      AddStage([this, i](Tensors x, bool training) {
        x[0] = chain_.Apply(i, x[0], training);
        return x;
      });
    }
  }

  std::pair<Tensor, Tensor> Predictions(const Tensor& logits, const Batch& batch) const override {
    return {logits, batch.labels};
  }
  std::vector<BatchArray> BatchArrays() const override {
    if (config_.name == "mlp") return ImageArrays(config_, {config_.image * config_.image});
    return ImageArrays(config_, {config_.name == "lenet" ? 1 : 3, config_.image, config_.image});
  }

 private:
  ModelConfig config_;
  Chain chain_;
};

Chain Mlp(const ModelConfig& c, const ModuleScope& s) {
  Chain chain;
  chain.Append(Linear(s["fc1"], c.image * c.image, c.hidden));
  chain.AddRelu();
  chain.Append(Linear(s["fc2"], c.hidden, c.hidden));
  chain.AddRelu();
  chain.Append(Linear(s["fc3"], c.hidden, c.classes));
  return chain;
}

Chain Lenet(const ModelConfig& c, const ModuleScope& s) {
  Chain chain;
  chain.Append(Conv2d(s["conv1"], 1, 6, 5, 1, 2));
  chain.AddRelu();
  chain.AddMaxPool(2, 2);
  chain.Append(Conv2d(s["conv2"], 6, 16, 5));
  chain.AddRelu();
  chain.AddMaxPool(2, 2);
  chain.AddFlatten();
  const int64_t side = (c.image / 2 - 4) / 2;
  chain.Append(Linear(s["fc1"], 16 * side * side, 120));
  chain.AddRelu();
  chain.Append(Linear(s["fc2"], 120, 84));
  chain.AddRelu();
  chain.Append(Linear(s["fc3"], 84, c.classes));
  return chain;
}

Chain Alexnet(const ModelConfig& c, const ModuleScope& s) {
  Chain chain;
  const ModuleScope f = s["features"];
  chain.Append(Conv2d(f[0], 3, 64, 11, 4, 2));
  chain.AddRelu();
  chain.AddMaxPool(3, 2);
  chain.Append(Conv2d(f[3], 64, 192, 5, 1, 2));
  chain.AddRelu();
  chain.AddMaxPool(3, 2);
  chain.Append(Conv2d(f[6], 192, 384, 3, 1, 1));
  chain.AddRelu();
  chain.Append(Conv2d(f[8], 384, 256, 3, 1, 1));
  chain.AddRelu();
  chain.Append(Conv2d(f[10], 256, 256, 3, 1, 1));
  chain.AddRelu();
  chain.AddMaxPool(3, 2);
  chain.AddAvgPoolTo(6);
  chain.AddFlatten();
  const ModuleScope h = s["classifier"];
  chain.AddDropout(c.dropout);
  chain.Append(Linear(h[1], 256 * 36, 4096));
  chain.AddRelu();
  chain.AddDropout(c.dropout);
  chain.Append(Linear(h[4], 4096, 4096));
  chain.AddRelu();
  chain.Append(Linear(h[6], 4096, c.classes));
  return chain;
}

Chain Vgg16(const ModelConfig& c, const ModuleScope& s) {
  Chain chain;
  const ModuleScope f = s["features"];
  int64_t place = 0, in = 3;
  for (int64_t out : {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}) {
    if (out == 0) {
      chain.AddMaxPool(2, 2);
      ++place;
      continue;
    }
    chain.Append(Conv2d(f[place], in, out, 3, 1, 1));
    chain.AddRelu();
    place += 2;
    in = out;
  }
  chain.AddAvgPoolTo(7);
  chain.AddFlatten();
  const ModuleScope h = s["classifier"];
  chain.Append(Linear(h[0], 512 * 49, 4096));
  chain.AddRelu();
  chain.AddDropout(c.dropout);
  chain.Append(Linear(h[3], 4096, 4096));
  chain.AddRelu();
  chain.AddDropout(c.dropout);
  chain.Append(Linear(h[6], 4096, c.classes));
  return chain;
}

Chain Squeezenet(const ModelConfig& c, const ModuleScope& s) {
  Chain chain;
  const ModuleScope f = s["features"];
  chain.Append(Conv2d(f[0], 3, 64, 3, 2));
  chain.AddRelu();
  chain.AddMaxPool(3, 2, 0, true);
  const auto fire = [&](int64_t place, int64_t in, int64_t squeeze, int64_t expand) {
    const Conv2d reduce(f[place]["squeeze"], in, squeeze, 1);
    const Conv2d one(f[place]["expand1x1"], squeeze, expand, 1);
    const Conv2d three(f[place]["expand3x3"], squeeze, expand, 3, 1, 1);
    chain.Append([=](const Tensor& x, bool) {
      const Tensor small = Relu(reduce(x));
      return Cat({Relu(one(small)), Relu(three(small))}, 1);
    });
  };
  fire(3, 64, 16, 64);
  fire(4, 128, 16, 64);
  chain.AddMaxPool(3, 2, 0, true);
  fire(6, 128, 32, 128);
  fire(7, 256, 32, 128);
  chain.AddMaxPool(3, 2, 0, true);
  fire(9, 256, 48, 192);
  fire(10, 384, 48, 192);
  fire(11, 384, 64, 256);
  fire(12, 512, 64, 256);
  chain.AddDropout(c.dropout);
  chain.Append(Conv2d(s["classifier"][1], 512, c.classes, 1));
  chain.AddRelu();
  chain.AddAvgPoolTo(1);
  chain.AddFlatten();
  return chain;
}

Chain Resnet(const ModelConfig& c, const ModuleScope& s) {
  const bool bottleneck = c.name != "resnet18";
  const int64_t groups = c.name == "resnext50_32x4d" ? 32 : 1, base_width = groups == 1 ? 64 : 4;
  const std::vector<int64_t> blocks = bottleneck ? std::vector<int64_t>{3, 4, 6, 3} : std::vector<int64_t>{2, 2, 2, 2};
  const int64_t expansion = bottleneck ? 4 : 1;
  Chain chain;
  chain.Append(Conv2d(s["conv1"], 3, 64, 7, 2, 3, 1, false));
  chain.Append(BatchNorm2d(s["bn1"], 64));
  chain.AddRelu();
  chain.AddMaxPool(3, 2, 1);
  int64_t in = 64;
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    const int64_t planes = int64_t{64} << stage;
    for (int64_t i = 0; i < blocks[stage]; ++i) {
      const ModuleScope b = s["layer" + std::to_string(stage + 1)][i];
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1, out = planes * expansion;
      const int64_t width = planes * base_width / 64 * groups;
      Chain body;
      if (bottleneck) {
        body.Append(Conv2d(b["conv1"], in, width, 1, 1, 0, 1, false));
        body.Append(BatchNorm2d(b["bn1"], width));
        body.AddRelu();
        body.Append(Conv2d(b["conv2"], width, width, 3, stride, 1, groups, false));
        body.Append(BatchNorm2d(b["bn2"], width));
        body.AddRelu();
        body.Append(Conv2d(b["conv3"], width, out, 1, 1, 0, 1, false));
        body.Append(BatchNorm2d(b["bn3"], out, true));
      } else {
        body.Append(Conv2d(b["conv1"], in, planes, 3, stride, 1, 1, false));
        body.Append(BatchNorm2d(b["bn1"], planes));
        body.AddRelu();
        body.Append(Conv2d(b["conv2"], planes, planes, 3, 1, 1, 1, false));
        body.Append(BatchNorm2d(b["bn2"], planes, true));
      }
      Chain shortcut;
      if (stride != 1 || in != out) {
        shortcut.Append(Conv2d(b["downsample"][0], in, out, 1, stride, 0, 1, false));
        shortcut.Append(BatchNorm2d(b["downsample"][1], out));
      }
      chain.Append([=](const Tensor& x, bool training) {
        const Tensor y = body(x, training);
        return Relu(y + shortcut(x, training));
      });
      in = out;
    }
  }
  chain.AddAvgPoolTo(1);
  chain.AddFlatten();
  chain.Append(Linear(s["fc"], in, c.classes));
  return chain;
}

Chain MobilenetV2(const ModelConfig& c, const ModuleScope& s) {
  const ModuleScope f = s["features"];
  const auto conv = [](Chain* chain, const ModuleScope& p, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                       int64_t groups) {
    chain->Append(Conv2d(p[0], in, out, kernel, stride, (kernel - 1) / 2, groups, false));
    chain->Append(BatchNorm2d(p[1], out));
    chain->AddRelu6();
  };
  Chain chain;
  conv(&chain, f[0], 3, 32, 3, 2, 1);
  struct Setting {
    int64_t expand, out, count, stride;
  };
  int64_t in = 32, place = 1;
  for (const Setting& t : {Setting{1, 16, 1, 1}, Setting{6, 24, 2, 2}, Setting{6, 32, 3, 2}, Setting{6, 64, 4, 2},
                           Setting{6, 96, 3, 1}, Setting{6, 160, 3, 2}, Setting{6, 320, 1, 1}}) {
    for (int64_t i = 0; i < t.count; ++i, ++place) {
      const int64_t stride = i == 0 ? t.stride : 1, hidden = in * t.expand;
      const ModuleScope p = f[place]["conv"];
      Chain body;
      int64_t k = 0;
      if (t.expand != 1) conv(&body, p[k++], in, hidden, 1, 1, 1);
      conv(&body, p[k++], hidden, hidden, 3, stride, hidden);
      body.Append(Conv2d(p[k], hidden, t.out, 1, 1, 0, 1, false));
      body.Append(BatchNorm2d(p[k + 1], t.out));
      const bool residual = stride == 1 && in == t.out;
      chain.Append(
          [=](const Tensor& x, bool training) { return residual ? x + body(x, training) : body(x, training); });
      in = t.out;
    }
  }
  conv(&chain, f[18], in, 1280, 1, 1, 1);
  chain.AddAvgPoolTo(1);
  chain.AddFlatten();
  chain.AddDropout(c.dropout);
  chain.Append(Linear(s["classifier"][1], 1280, c.classes));
  return chain;
}

Chain Mnasnet(const ModelConfig& c, const ModuleScope& s) {
  const ModuleScope l = s["layers"];
  Chain chain;
  chain.Append(Conv2d(l[0], 3, 32, 3, 2, 1, 1, false));
  chain.Append(BatchNorm2d(l[1], 32));
  chain.AddRelu();
  chain.Append(Conv2d(l[3], 32, 32, 3, 1, 1, 32, false));
  chain.Append(BatchNorm2d(l[4], 32));
  chain.AddRelu();
  chain.Append(Conv2d(l[6], 32, 16, 1, 1, 0, 1, false));
  chain.Append(BatchNorm2d(l[7], 16));
  struct Setting {
    int64_t out, kernel, stride, expand, count;
  };
  int64_t in = 16, place = 8;
  for (const Setting& t : {Setting{24, 3, 2, 3, 3}, Setting{40, 5, 2, 3, 3}, Setting{80, 5, 2, 6, 3},
                           Setting{96, 3, 1, 6, 2}, Setting{192, 5, 2, 6, 4}, Setting{320, 3, 1, 6, 1}}) {
    for (int64_t i = 0; i < t.count; ++i) {
      const ModuleScope p = l[place][i]["layers"];
      const int64_t stride = i == 0 ? t.stride : 1, hidden = in * t.expand;
      Chain body;
      body.Append(Conv2d(p[0], in, hidden, 1, 1, 0, 1, false));
      body.Append(BatchNorm2d(p[1], hidden));
      body.AddRelu();
      body.Append(Conv2d(p[3], hidden, hidden, t.kernel, stride, t.kernel / 2, hidden, false));
      body.Append(BatchNorm2d(p[4], hidden));
      body.AddRelu();
      body.Append(Conv2d(p[6], hidden, t.out, 1, 1, 0, 1, false));
      body.Append(BatchNorm2d(p[7], t.out));
      const bool residual = stride == 1 && in == t.out;
      chain.Append(
          [=](const Tensor& x, bool training) { return residual ? body(x, training) + x : body(x, training); });
      in = t.out;
    }
    ++place;
  }
  chain.Append(Conv2d(l[14], in, 1280, 1, 1, 0, 1, false));
  chain.Append(BatchNorm2d(l[15], 1280));
  chain.AddRelu();
  chain.Append([](const Tensor& x, bool) { return Mean(x, {2, 3}); });
  chain.AddDropout(c.dropout);
  chain.Append(Linear(s["classifier"][1], 1280, c.classes));
  return chain;
}

}  // namespace

std::unique_ptr<Model> MakeConvnet(const ModelConfig& c, nn::ParameterRegistry* registry) {
  const ModuleScope root(registry);
  Chain chain = c.name == "mlp"             ? Mlp(c, root)
                : c.name == "lenet"         ? Lenet(c, root)
                : c.name == "alexnet"       ? Alexnet(c, root)
                : c.name == "vgg16"         ? Vgg16(c, root)
                : c.name == "squeezenet1_1" ? Squeezenet(c, root)
                : c.name == "mobilenet_v2"  ? MobilenetV2(c, root)
                : c.name == "mnasnet1_0"    ? Mnasnet(c, root)
                                            : Resnet(c, root);
  return std::make_unique<Convnet>(c, std::move(chain));
}

}  // namespace hlokit::lazy::models
