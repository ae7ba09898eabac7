// SPDX-License-Identifier: Apache-2.0
// Speed of reading StableHLO text into HLO modules. The peer is the reader of HLO text: of the same program where the
// text has many operations, where the goal is 0.5 times its rate. Of 100 MB of constants the goal is 100 MB/s.
//
//   hlokit_bench_stablehlo [FILE.hlo...] [--operations=N] [--megabytes=N] [--rounds=N]
//
// Without files the operations are those of a program made here: elementwise operations, broadcasts, slices and
// products of matrices in functions of 1,000 operations each.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "io/files/read_file.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "parser/formats/parser.h"
#include "parser/mlir/module.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/export/export.h"
#include "parser/stablehlo/import/convert.h"

namespace hlokit {
namespace {

using bench::Median;
using bench::MillisecondsOf;

std::string ManyOperations(int operations) {
  constexpr int kPerFunction = 1000;
  std::string text;
  const int functions = std::max(1, operations / kPerFunction);
  for (int f = 0; f < functions; ++f) {
    StrAppend(&text, "func.func private @layer", f,
              "(%a: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {\n");
    std::string value = "%a";
    int id = 0;
    while (id + 6 < kPerFunction) {
      const auto next = [&] { return StrCat("%", id++); };
      const std::string dot = next(), slice = next(), wide = next(), sum = next(), tanh = next(), product = next();
      StrAppend(&text, "  ", dot, " = stablehlo.dot_general ", value,
                ", %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>\n");
      StrAppend(&text, "  ", slice, " = stablehlo.slice ", dot,
                " [0:1, 0:16] : (tensor<8x16xf32>) -> tensor<1x16xf32>\n");
      StrAppend(&text, "  ", wide, " = stablehlo.broadcast_in_dim ", slice,
                ", dims = [0, 1] : (tensor<1x16xf32>) -> tensor<8x16xf32>\n");
      StrAppend(&text, "  ", sum, " = stablehlo.add ", dot, ", ", wide, " : tensor<8x16xf32>\n");
      StrAppend(&text, "  ", tanh, " = stablehlo.tanh ", sum, " : tensor<8x16xf32>\n");
      StrAppend(&text, "  ", product, " = stablehlo.multiply ", tanh, ", ", value, " : tensor<8x16xf32>\n");
      value = product;
    }
    StrAppend(&text, "  return ", value, " : tensor<8x16xf32>\n}\n");
  }
  text += "func.func @main(%a: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {\n";
  std::string value = "%a";
  for (int f = 0; f < functions; ++f) {
    StrAppend(&text, "  %", f, " = call @layer", f, "(", value,
              ", %w) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>\n");
    value = StrCat("%", f);
  }
  return text + StrCat("  return ", value, " : tensor<8x16xf32>\n}\n");
}

// Programs of constants of a MiB each, as JAX prints them, or in decimal.
std::string LargeConstants(size_t bytes, bool hex) {
  constexpr size_t kElements = 1 << 18;
  std::string constant;
  uint32_t state = 1;
  for (size_t i = 0; i < kElements; ++i) {
    state = state * 1664525u + 1013904223u;
    if (hex) {
      static constexpr char kDigits[] = "0123456789ABCDEF";
      const uint32_t bits = 0x3f000000u | state >> 9;
      for (int shift = 0; shift < 32; shift += 8) {
        constant += kDigits[bits >> (shift + 4) & 15];
        constant += kDigits[bits >> shift & 15];
      }
    } else {
      StrAppend(&constant, i == 0 ? "" : ", ", "0.", 1000000 + state % 9000000, "e+00");
    }
  }
  std::string text = StrCat("func.func @main() -> tensor<", kElements, "xf32> {\n");
  for (size_t i = 0; text.size() < bytes; ++i) {
    StrAppend(&text, "  %c", i, " = stablehlo.constant dense<", hex ? "\"0x" : "[", constant, hex ? "\"" : "]",
              "> : tensor<", kElements, "xf32>\n");
  }
  return text + StrCat("  return %c0 : tensor<", kElements, "xf32>\n}\n");
}

class Benchmark {
 public:
  explicit Benchmark(int rounds) : rounds_(rounds) {}

  // The rate of reading a text, in MB/s.
  double Rate(const std::string& text) const {
    const auto source = std::make_shared<const SourceBuffer>("bench", text);
    std::vector<double> times;
    for (int round = 0; round < rounds_; ++round) {
      DiagnosticSink sink;
      times.push_back(MillisecondsOf([&] { ParseModule(source, {}, &sink); }));
      if (sink.has_errors()) {
        std::fprintf(stderr, "%s\n", sink.diagnostics()[0].message.c_str());
        return 0;
      }
    }
    return static_cast<double>(text.size()) / 1e3 / Median(times);
  }

  // The same for StableHLO's operations alone, without their conversion.
  double ProgramRate(const std::string& text) const {
    const auto source = std::make_shared<const SourceBuffer>("bench", text);
    std::vector<double> times;
    for (int round = 0; round < rounds_; ++round) {
      DiagnosticSink sink;
      times.push_back(MillisecondsOf([&] { mlir::ParseMlir(source, source->text(), {}, &sink); }));
    }
    return static_cast<double>(text.size()) / 1e3 / Median(times);
  }

  // `program`: the StableHLO text. Prints the rates of both texts.
  bool Compare(const std::string& name, const std::string& program) {
    DiagnosticSink sink;
    const std::unique_ptr<Module> module = ParseModule(std::make_shared<const SourceBuffer>(name, program), {}, &sink);
    if (module == nullptr) return false;
    const std::string hlo = ToString(*module, PrintOptions::Lossless());
    const double stablehlo_rate = Rate(program), hlo_rate = Rate(hlo);
    if (stablehlo_rate == 0 || hlo_rate == 0) return false;
    const double mb = static_cast<double>(program.size()) / 1e6, hlo_mb = static_cast<double>(hlo.size()) / 1e6;
    std::printf("%8.2f %10.0f %10.0f %10.2f %10.0f %10.2f %10.2f  %s\n", mb, stablehlo_rate, ProgramRate(program),
                hlo_mb, hlo_rate, stablehlo_rate / hlo_rate, (hlo_mb / hlo_rate) / (mb / stablehlo_rate), name.c_str());
    return true;
  }

 private:
  const int rounds_;
};

int Run(int argc, char** argv) {
  int rounds = 5, operations = 100000, megabytes = 100;
  std::vector<std::string> files;
  for (int a = 1; a < argc; ++a) {
    const std::string_view argument = argv[a];
    const auto number = [&](std::string_view flag, int* value) {
      if (!argument.starts_with(flag)) return false;
      *value = std::max(1, std::atoi(argument.substr(flag.size()).data()));
      return true;
    };
    if (number("--rounds=", &rounds) || number("--operations=", &operations) || number("--megabytes=", &megabytes))
      continue;
    files.emplace_back(argument);
  }
  Benchmark benchmark(rounds);
  std::printf("%8s %10s %10s %10s %10s %10s %10s  program\n", "MB", "MB/s", "MLIR MB/s", "HLO MB", "HLO MB/s",
              "by bytes", "by program");
  if (files.empty() && !benchmark.Compare(StrCat(operations, " operations"), ManyOperations(operations))) return 1;
  for (const std::string& file : files) {
    const absl::StatusOr<std::shared_ptr<const SourceBuffer>> text = ReadFile(file);
    if (!text.ok()) continue;
    DiagnosticSink sink;
    const std::unique_ptr<Module> module = ParseModule(*text, {}, &sink);
    if (module == nullptr) continue;
    const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(*module, &sink);
    const std::string name = file.substr(file.rfind('/') + 1);
    if (program == nullptr || !benchmark.Compare(name, mlir::PrintMlir(*program))) {
      std::fprintf(stderr, "%s: left out, as StableHLO cannot express it\n", name.c_str());
    }
  }
  const size_t bytes = static_cast<size_t>(megabytes) * 1000000;
  for (bool hex : {true, false}) {
    std::printf("%8d %10.0f %65s constants in %s\n", megabytes, benchmark.Rate(LargeConstants(bytes, hex)), "",
                hex ? "hexadecimal" : "decimal");
  }
  return 0;
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::Run(argc, argv); }
