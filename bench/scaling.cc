// SPDX-License-Identifier: Apache-2.0
// Scaling of parsing, verifying, printing and fingerprinting with the module size: nanoseconds per instruction at two
// sizes, a factor of ten apart. Linear time is a ratio of 1; cache misses of larger modules add to it.
//
//   hlokit_bench_scaling [INSTRUCTIONS] [--rounds=N] [--passes[=PIPELINE]]
//
// With --passes, measures passes instead: each registered pass alone, or the given pipeline. A ratio of 1.2 or more at
// these sizes, caches aside, means that a pass grows faster than n log n. The module is generated: layers of a network
// with names, layouts, metadata and a call to a shared computation.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "interp/exact/instruction_evaluator.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "passes/core/pipeline.h"

namespace hlokit {
namespace {

// For a module of a million instructions.
constexpr int kTargetBytes = 150;  // per instruction, after parsing
constexpr double kTargetGrowth = 1.1;

std::string MakeModule(int64_t instructions) {
  std::string text =
      "HloModule growth\n\n%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
      "  ROOT %c = f32[] add(%a, %b)\n}\n\nENTRY %main (x: f32[8,64], w: f32[64,64]) -> f32[8,64] {\n"
      "  %x.0 = f32[8,64]{1,0} parameter(0)\n  %w = f32[64,64]{1,0} parameter(1)\n  %zero = f32[] constant(0)\n";
  for (int64_t n = 0; n < instructions / 8; ++n) {
    const std::string meta = StrCat(", metadata={op_type=\"op\" op_name=\"jit(f)/layer_", n % 97,
                                    "/body\" source_file=\"/f.py\" source_line=", n % 211 + 1, "}\n");
    StrAppend(&text, "  %dot.", n, " = f32[8,64]{1,0} dot(f32[8,64]{1,0} %x.", n,
              ", f32[64,64]{1,0} %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}", meta);
    StrAppend(&text, "  %abs.", n, " = f32[8,64]{1,0} abs(f32[8,64]{1,0} %dot.", n, ")", meta);
    StrAppend(&text, "  %tanh.", n, " = f32[8,64]{1,0} tanh(f32[8,64]{1,0} %abs.", n, ")", meta);
    StrAppend(&text, "  %red.", n, " = f32[8]{0} reduce(f32[8,64]{1,0} %tanh.", n,
              ", f32[] %zero), dimensions={1}, to_apply=%sum", meta);
    StrAppend(&text, "  %bc.", n, " = f32[8,64]{1,0} broadcast(f32[8]{0} %red.", n, "), dimensions={0}", meta);
    StrAppend(&text, "  %sub.", n, " = f32[8,64]{1,0} subtract(f32[8,64]{1,0} %tanh.", n, ", f32[8,64]{1,0} %bc.", n,
              ")", meta);
    StrAppend(&text, "  %t.", n, " = f32[64,8]{0,1} transpose(f32[8,64]{1,0} %sub.", n, "), dimensions={1,0}", meta);
    StrAppend(&text, "  %x.", n + 1, " = f32[8,64]{1,0} transpose(f32[64,8]{0,1} %t.", n, "), dimensions={1,0}", meta);
  }
  StrAppend(&text, "  ROOT %out = f32[8,64]{1,0} copy(f32[8,64]{1,0} %x.", instructions / 8, ")\n}\n");
  return text;
}

struct Times {
  size_t instructions = 0;
  size_t text_bytes = 0;
  double heap_bytes = 0;
  std::vector<double> parse, verify, print, to_string, fingerprint;
};

bool Measure(const std::shared_ptr<const SourceBuffer>& source, Times* times) {
  std::unique_ptr<Module> module;
  DiagnosticSink sink;
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  times->parse.push_back(bench::MillisecondsOf([&] { module = ParseModule(source, {}, &sink); }));
  if (module == nullptr) return false;
  times->heap_bytes = static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd - before);
  times->instructions = module->instruction_count();
  times->text_bytes = source->text().size();
  times->verify.push_back(bench::MillisecondsOf([&] { VerifyModule(*module, {}, &sink); }));
  // To a file, as tools do; then to a string, whose memory the system must supply first.
  size_t printed = 0, length = 0;
  times->print.push_back(bench::MillisecondsOf([&] {
    TextWriter out([&printed](std::string_view text) { printed += text.size(); });
    PrintModule(out, *module);
  }));
  times->to_string.push_back(bench::MillisecondsOf([&] { length = ToString(*module).size(); }));
  Digest digest;
  times->fingerprint.push_back(bench::MillisecondsOf([&] { digest = Fingerprint(*module); }));
  return !sink.has_errors() && printed > 0 && length == printed && digest != Digest();
}

// Returns the nanoseconds per instruction that the pipeline takes; negative, with a message, on errors.
double PassNanoseconds(const std::string& text, const Module& module, int rounds) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    Module clone = module.Clone();
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(text);
    absl::Status status = pipeline.status();
    const PipelineOptions options = {.context = interp::EvaluatingContext()};
    times.push_back(bench::MillisecondsOf([&] {
      if (pipeline.ok()) status = pipeline->Run(clone, options).status();
    }));
    if (!status.ok()) {
      std::fprintf(stderr, "%s: %s\n", text.c_str(), std::string(status.message()).c_str());
      return -1;
    }
  }
  return bench::Median(times) * 1e6 / static_cast<double>(module.instruction_count());
}

int MeasurePasses(const std::string& pipeline, int64_t instructions, int rounds) {
  std::vector<std::string> texts;
  if (!pipeline.empty()) {
    texts.push_back(pipeline);
  } else {
    for (const PassInfo* pass : PassRegistry::Get().passes()) texts.emplace_back(pass->name);
  }
  std::unique_ptr<Module> modules[2];
  for (int k = 0; k < 2; ++k) {
    DiagnosticSink sink;
    modules[k] = ParseModule(
        std::make_shared<const SourceBuffer>("growth", MakeModule(k == 0 ? instructions / 10 : instructions)), {},
        &sink);
    if (modules[k] == nullptr) return 3;
  }
  std::printf("%-36s %12zu %12zu\n", "instructions", modules[0]->instruction_count(), modules[1]->instruction_count());
  for (const std::string& text : texts) {
    double ns[2];
    for (int k = 0; k < 2; ++k) {
      ns[k] = PassNanoseconds(text, *modules[k], rounds);
      if (ns[k] < 0) return 1;
    }
    std::printf("%-36s %9.1f ns %9.1f ns   %.2f times linear\n", text.c_str(), ns[0], ns[1],
                ns[0] > 0 ? ns[1] / ns[0] : 0);
    std::fflush(stdout);
  }
  return 0;
}

int Run(int argc, char** argv) {
  int64_t instructions = 1000000;
  int rounds = 3;
  bool passes = false;
  std::string pipeline;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--rounds=")) {
      rounds = std::max(1, std::atoi(argv[i] + 9));
    } else if (argument == "--passes" || argument.starts_with("--passes=")) {
      passes = true;
      if (argument.size() > 9) pipeline = argument.substr(9);
    } else {
      instructions = std::max<int64_t>(1000, std::atoll(argv[i]));
    }
  }
  if (passes) return MeasurePasses(pipeline, instructions, rounds);
  Times times[2];
  std::shared_ptr<const SourceBuffer> sources[2];
  for (int k = 0; k < 2; ++k) {
    sources[k] = std::make_shared<const SourceBuffer>("growth", MakeModule(k == 0 ? instructions / 10 : instructions));
  }
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 2; ++k) {
      if (!Measure(sources[k], &times[k])) {
        std::fprintf(stderr, "the module made here is not right\n");
        return 3;
      }
    }
  }
  std::printf("%-12s %14zu %14zu\n", "instructions", times[0].instructions, times[1].instructions);
  const double bytes = times[1].heap_bytes / static_cast<double>(times[1].instructions);
  std::printf(
      "%-12s %14.0f %14.0f   heap bytes an instruction after parsing, %.2f of the target of %d; text of %zu aside\n",
      "memory", times[0].heap_bytes / static_cast<double>(times[0].instructions), bytes, bytes / kTargetBytes,
      kTargetBytes, times[1].text_bytes / times[1].instructions);
  const auto row = [&](const char* what, const std::vector<double> Times::*member) {
    double ns[2];
    for (int k = 0; k < 2; ++k)
      ns[k] = bench::Median(times[k].*member) * 1e6 / static_cast<double>(times[k].instructions);
    std::printf("%-12s %11.1f ns %11.1f ns   %.2f times linear, target %.1f\n", what, ns[0], ns[1], ns[1] / ns[0],
                kTargetGrowth);
  };
  row("parse", &Times::parse);
  row("verify", &Times::verify);
  row("print", &Times::print);
  row("to string", &Times::to_string);
  row("fingerprint", &Times::fingerprint);
  return 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
