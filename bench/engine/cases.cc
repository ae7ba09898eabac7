// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "bench/engine/case.h"
#include "bench/engine/machine.h"
#include "bench/engine/programs.h"
#include "bench/measure.h"
#include "check/arguments/argument_generator.h"
#include "interp/program/compile.h"
#include "io/files/read_file.h"
#include "ir/core/diagnostic.h"
#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"

namespace hlokit::bench {
namespace {

absl::StatusOr<TrainingProgram> FromText(const std::string& text) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(text);
  if (!module.ok()) return module.status();
  TrainingProgram program;
  program.module = *std::move(module);
  program.arguments = interp::MakeFakeArguments(*program.module, 1);
  return program;
}

absl::StatusOr<TrainingProgram> FromFile(const std::string& file) {
  absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = ReadFile(file);
  if (!source.ok()) return source.status();
  absl::StatusOr<TrainingProgram> program = FromText(std::string((*source)->text()));
  if (!program.ok()) return program.status();
  DiagnosticSink sink;
  interp::CompileOptions compile;
  compile.engine = interp::EngineKind::kFast;
  compile.verification = interp::Verification::kVerify;
  absl::StatusOr<interp::LoweredProgram> lowered = interp::Lower(std::move(program->module), compile, {}, &sink);
  if (!lowered.ok()) return lowered.status();
  program->module = std::move(lowered->owned);
  return program;
}

Peer CopyPeer(double bytes, double goal, double times = 1) {
  Peer peer{.name = "copy of the same bytes", .goal = goal, .times = times};
  peer.make = [bytes](int threads, const Module&) -> std::function<void()> {
    auto copy = std::make_shared<Copy>(static_cast<int64_t>(bytes));
    return [copy, threads] { copy->Run(threads); };
  };
  return peer;
}

Peer TorchPeer(double goal, bool alternative = false) {
  return {.kind = Peer::Kind::kTorch, .name = "torch", .goal = goal, .alternative = alternative};
}

// A program whose result is small.
Case OfWholeText(std::string name, std::string text, std::vector<Peer> peers) {
  return {
      .name = std::move(name), .make = [text = std::move(text)] { return FromText(text); }, .peers = std::move(peers)};
}

Case OfText(std::string name, const std::string& text, std::vector<Peer> peers) {
  return OfWholeText(std::move(name), WithSmallResult(text), std::move(peers));
}

enum class Form { kPlain, kTransposed, kGradient };

void AddProduct(const ProductSizes& sizes, Form form, std::vector<Case>* cases) {
  std::string name = "product ";
  if (sizes.batch > 1) StrAppend(&name, sizes.batch, "x ");
  StrAppend(&name, sizes.rows, "x", sizes.columns, "x", sizes.depth);
  if (form == Form::kTransposed) name += " rhs'";
  if (form == Form::kGradient) name += " lhs'";
  std::vector<Peer> peers(1);
  peers[0].name = "oneDNN, any layout";
  peers[0].goal = 0.95;
  peers[0].make = [sizes](int threads, const Module&) { return LibraryProduct(sizes, threads); };
  if (sizes.rows >= 256 && sizes.columns >= 256 && sizes.depth >= 64) {
    peers.push_back({.kind = Peer::Kind::kPeak, .name = "FMA peak", .goal = 0.8});
  }
  cases->push_back(OfText(name, ProductText(sizes, form == Form::kTransposed, form == Form::kGradient), peers));
  cases->back().flops = sizes.flops();
}

void AddConvolution(const ConvolutionSizes& s, Gradient gradient, bool channels_minor, std::vector<Case>* cases) {
  const char* const kind = gradient == Gradient::kNone   ? ""
                           : gradient == Gradient::kData ? " data gradient"
                                                         : " weights gradient";
  std::vector<Peer> peers(1);
  peers[0].name = "oneDNN, any layout";
  peers[0].goal = channels_minor ? 0.95 : 0;  // without: the arrays have to be converted
  peers[0].make = [s, gradient](int threads, const Module&) { return LibraryConvolution(s, gradient, threads); };
  peers.push_back({.kind = Peer::Kind::kPeak, .name = "FMA peak"});
  cases->push_back(
      OfText(absl::StrFormat("convolution %dx%d%s %d-%d %d%s%s", s.kernel, s.kernel, s.stride == 1 ? "" : " s2",
                             s.inputs, s.outputs, s.size, channels_minor ? "" : " NCHW", kind),
             ConvolutionText(s, gradient, channels_minor), peers));
  cases->back().flops = s.flops();
}

void AddContractions(std::vector<Case>* cases) {
  for (const int64_t n : {256, 512, 1024, 2048}) AddProduct({1, n, n, n}, Form::kPlain, cases);
  for (const ProductSizes& s : std::initializer_list<ProductSizes>{{1, 1024, 768, 768},
                                                                   {1, 1024, 2304, 768},
                                                                   {1, 1024, 3072, 768},
                                                                   {1, 1024, 768, 3072},
                                                                   {1, 128, 512, 784},
                                                                   {1, 128, 10, 512},
                                                                   {1, 8, 768, 768},
                                                                   {1, 1, 768, 768},
                                                                   {1, 1, 4096, 4096}}) {
    AddProduct(s, Form::kPlain, cases);
  }
  AddProduct({1, 1024, 3072, 768}, Form::kTransposed, cases);
  AddProduct({1, 1, 4096, 4096}, Form::kTransposed, cases);
  AddProduct({1, 768, 3072, 1024}, Form::kGradient, cases);
  AddProduct({1, 8, 768, 768}, Form::kTransposed, cases);
  AddProduct({96, 128, 128, 64}, Form::kTransposed, cases);
  AddProduct({96, 128, 64, 128}, Form::kPlain, cases);
  AddProduct({96, 128, 64, 128}, Form::kGradient, cases);
  constexpr ConvolutionSizes kSizes[] = {
      {8, 3, 64, 224, 7, 2, 3},   {8, 64, 64, 56, 3, 1, 1},    {8, 64, 128, 56, 3, 2, 1}, {8, 128, 128, 28, 3, 1, 1},
      {8, 256, 256, 14, 3, 1, 1}, {8, 512, 512, 7, 3, 1, 1},   {8, 64, 256, 56, 1, 1, 0}, {8, 256, 64, 56, 1, 1, 0},
      {8, 512, 128, 28, 1, 1, 0}, {8, 1024, 256, 14, 1, 1, 0}, {8, 2048, 512, 7, 1, 1, 0}};
  for (const ConvolutionSizes& s : kSizes) {
    for (const Gradient gradient : {Gradient::kNone, Gradient::kData, Gradient::kWeights}) {
      if (gradient == Gradient::kData && s.inputs == 3) continue;  // nobody needs it
      AddConvolution(s, gradient, true, cases);
    }
  }
  for (const Gradient gradient : {Gradient::kNone, Gradient::kData, Gradient::kWeights}) {
    AddConvolution(kSizes[1], gradient, false, cases);
  }
}

// What moves elements, with an elementwise instruction after it.
void AddMoved(std::vector<Case>* cases) {
  constexpr int64_t kRows = 16384, kColumns = 1024;
  constexpr double kBytes = 4.0 * kRows * kColumns;
  for (const auto& [how, name] :
       {std::pair(Moved::kConcatenate, "concatenate"), std::pair(Moved::kPad, "pad"),
        std::pair(Moved::kDynamicSlice, "dynamic slice"), std::pair(Moved::kGatherRows, "gather rows")}) {
    cases->push_back(OfText(StrCat(name, ", doubled"), MovedText(how, kRows, kColumns), {CopyPeer(2 * kBytes, 0.85)}));
  }
  for (const char* const type : {"bf16", "f8e4m3fn", "f8e5m2"}) {
    const double bytes = type[0] == 'b' ? 1.5 * kBytes : 1.25 * kBytes;
    for (const bool back : {false, true}) {
      cases->push_back(OfText(back ? StrCat(type, " to f32") : StrCat("f32 to ", type),
                              NarrowText(type, kRows * kColumns, back), {CopyPeer(bytes, 0.85)}));
    }
  }
  cases->push_back(OfText("arg max 16384x1024", ArgMaxText(kRows, kColumns), {CopyPeer(kBytes, 0.85)}));
  constexpr int64_t kVocabulary = 262144;
  cases->push_back(OfText("arg max 8x262144", ArgMaxText(8, kVocabulary), {CopyPeer(4.0 * 8 * kVocabulary, 0.85)}));
}

void AddMemoryBound(std::vector<Case>* cases) {
  constexpr int64_t kElements = int64_t{1} << 24;
  constexpr double kFloat = 4;
  cases->push_back(
      OfText("chain of 10", ChainText(kElements, false), {CopyPeer(3 * kFloat * kElements, 0.85), TorchPeer(0)}));
  cases->push_back(
      OfText("chain of 10, three functions", ChainText(kElements, true), {CopyPeer(3 * kFloat * kElements, 0.40)}));
  cases->push_back({.name = "softmax 64x12x128x128",
                    .make =
                        [] {
                          std::ifstream in(HLOKIT_SOURCE_DIR "/bench/programs/softmax_64x12x128x128.hlo");
                          return FromText(WithSmallResult({std::istreambuf_iterator<char>(in), {}}));
                        },
                    .peers = {CopyPeer(2 * kFloat * 64 * 12 * 128 * 128, 0.80), TorchPeer(0)}});
  cases->push_back(OfText("layer norm 4096x1024", LayerNormText(4096, 1024),
                          {CopyPeer(2 * kFloat * 4096 * 1024, 0.80), TorchPeer(0)}));
  for (const bool channels_minor : {true, false}) {
    const char* const suffix = channels_minor ? "" : " NCHW";
    for (const auto& [channels, size] : {std::pair<int64_t, int64_t>{64, 112}, {64, 56}, {256, 14}}) {
      const double images = kFloat * static_cast<double>(8 * channels * size * size);
      // Statistics need a pass over the operands of their own.
      cases->push_back(OfText(StrCat("batch norm ", channels, "x", size, suffix),
                              BatchNormText(channels, size, false, channels_minor), {CopyPeer(3 * images, 0.85)}));
      cases->push_back(OfText(StrCat("batch norm gradient ", channels, "x", size, suffix),
                              BatchNormText(channels, size, true, channels_minor), {CopyPeer(5 * images, 0.85)}));
    }
    const double images = kFloat * 8 * 64 * 112 * 112;
    for (const bool gradient : {false, true}) {
      const char* const kind = gradient ? " gradient" : "";
      cases->push_back(OfText(StrCat("max pool 3x3 s2", kind, suffix), MaxPoolText(64, 112, gradient, channels_minor),
                              {CopyPeer((gradient ? 2.25 : 1.25) * images, 0.85)}));
      cases->push_back(OfText(StrCat("average pool 2x2 s2", kind, suffix),
                              AveragePoolText(64, 112, gradient, channels_minor), {CopyPeer(1.25 * images, 0.85)}));
    }
  }
}

// All products of a program, each in the library.
Peer ProductsPeer(double goal) {
  Peer peer{.name = "its products, oneDNN", .goal = goal, .alternative = true};
  peer.make = [](int threads, const Module& module) -> std::function<void()> {
    std::vector<std::function<void()>> works;
    std::vector<std::pair<ProductSizes, size_t>> made;
    for (const ProductSizes& sizes : ProductsOf(module)) {
      size_t i = 0;
      while (i < made.size() && made[i].first != sizes) ++i;
      if (i < made.size()) {
        works.push_back(works[made[i].second]);
        continue;
      }
      std::function<void()> work = LibraryProduct(sizes, threads);
      if (!work) return nullptr;
      made.emplace_back(sizes, works.size());
      works.push_back(std::move(work));
    }
    return [works = std::move(works)] {
      for (const std::function<void()>& work : works) work();
    };
  };
  return peer;
}

void AddSteps(std::vector<Case>* cases) {
  const auto add = [&](lazy::models::ModelConfig config, std::vector<Peer> peers) {
    cases->push_back({.name = StrCat("step ", config.name),
                      .make = [config] { return TraceTrainingStep(config); },
                      .peers = std::move(peers)});
  };
  add({.name = "mlp", .batch = 128}, {TorchPeer(1.25)});
  add({.name = "resnet18", .batch = 8}, {TorchPeer(1.25)});
  add({.name = "resnet50", .batch = 8}, {TorchPeer(1.25)});
  for (const char* const name : {"bert-base", "gpt2", "vit"}) {
    add({.name = name, .batch = 8}, {TorchPeer(1.15, true), ProductsPeer(0.97)});
  }
}

void AddLoops(std::vector<Case>* cases) {
  const DecodeSizes sizes;
  // A copy reads half of its bytes.
  cases->push_back(
      OfWholeText("decode loop", DecodeText(sizes),
                  {CopyPeer(static_cast<double>(sizes.weight_bytes()), 0.8, static_cast<double>(sizes.tokens))}));
  constexpr int64_t kSteps = 2000;
  cases->push_back(OfWholeText("small step", SmallStepsText(kSteps),
                               {{.kind = Peer::Kind::kLimit, .name = "limit", .goal = 1, .limit = 0.0002}}));
  cases->back().per = kSteps;
  cases->push_back({.name = "while of 100k trips",
                    .make = [] { return FromFile(HLOKIT_SOURCE_DIR "/bench/programs/while_scalar_100k.hlo"); },
                    .peers = {{.kind = Peer::Kind::kLimit, .name = "limit", .goal = 1, .limit = 5}}});
}

}  // namespace

std::vector<Case> EngineCases() {
  std::vector<Case> cases;
  AddContractions(&cases);
  AddMemoryBound(&cases);
  AddMoved(&cases);
  AddLoops(&cases);
  AddSteps(&cases);
  return cases;
}

Case FileCase(const std::string& file) {
  return {.name = ProgramName(file),
          .make = [file] { return FromFile(file); },
          .peers = {{.kind = Peer::Kind::kExact, .name = "exact engine", .goal = 10}}};
}

}  // namespace hlokit::bench
