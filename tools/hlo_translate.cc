// SPDX-License-Identifier: Apache-2.0
// hlo-translate: reads a module in any format and writes it in another.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/json/json_printer.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/core/foreign_format.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"
#include "parser/stablehlo/convert.h"
#include "parser/stablehlo/export.h"
#include "parser/stablehlo/verify.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_file.h"

namespace hlokit {
namespace {

constexpr std::string_view kTool = "hlo-translate";

constexpr char kExamples[] = R"(Examples:
  hlo-translate model.mlir -o model.hlo        StableHLO to HLO text
  hlo-translate --to=stablehlo model.mlir      check StableHLO and print it in MLIR's form
  hlo-translate --to=stablehlo --generic x.hlo HLO to StableHLO in the generic form
  hlo-translate dump.hlo -o dump.json          everything, for scripts
  jax-export.py | hlo-translate - -o out.hlo   from standard input)";

struct Flags {
  std::string path = "-";
  std::string output = "-";
  std::string to;
  bool generic = false;
  bool debug_info = false;
  bool verify = true;
  stablehlo::ConvertOptions convert;
};

// A format that modules are written in. Rows of formats that a further reader or writer brings stand beside these.
struct Format {
  std::string_view name;
  std::string_view suffix;  // of files in this format
  void (*write)(const Module&, const Flags&, TextWriter&);
};
constexpr Format kFormats[] = {
    {"hlo", ".hlo",
     [](const Module& module, const Flags&, TextWriter& out) { PrintModule(out, module, PrintOptions::Lossless()); }},
    {"json", ".json", [](const Module& module, const Flags&, TextWriter& out) { PrintJson(out, module); }},
};
constexpr std::string_view kStablehlo = "stablehlo";
constexpr std::string_view kStablehloSuffix = ".mlir";

// The format that flags ask for, by name or by the suffix of the output; "" if they ask for none that exists.
std::string_view FormatOf(const Flags& flags) {
  if (!flags.to.empty()) return flags.to;
  if (flags.output.ends_with(kStablehloSuffix)) return kStablehlo;
  for (const Format& format : kFormats) {
    if (flags.output.ends_with(format.suffix)) return format.name;
  }
  return "hlo";
}

const Format* Find(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

// Returns the StableHLO program of a part that is one; null after errors.
std::unique_ptr<mlir::Module> ParseProgram(const cli::InputPart& part, const Flags& flags,
                                           const cli::InputOptions& input, cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  mlir::MlirOptions options;
  options.max_literal_bytes = input.parse.max_literal_bytes;
  std::unique_ptr<mlir::Module> program = mlir::ParseMlir(part.source, part.text, options, &sink);
  if (program != nullptr && flags.verify) stablehlo::VerifyProgram(*program, &sink);
  diagnostics->Show(sink, *part.source);
  return sink.has_errors() ? nullptr : std::move(program);
}

int Run(int argc, char** argv) {
  CLI::App app("translate modules between HLO text, StableHLO and JSON", std::string(kTool));
  Flags flags;
  cli::InputOptions input;
  app.add_option("input", flags.path, "a module in any format; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("-o,--output", flags.output, "output file; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("--to", flags.to,
                 "format to write: hlo, stablehlo or json; by default that of the output's suffix, or hlo")
      ->check(CLI::IsMember({"hlo", "stablehlo", "json"}))
      ->type_name("FORMAT");
  app.add_flag("--generic", flags.generic, "write StableHLO in the generic form of MLIR");
  app.add_flag("--debug-info", flags.debug_info, "write the locations of StableHLO operations");
  app.add_flag("--verify,!--no-verify", flags.verify, "verify the module (default on)");
  app.add_flag("--return-tuple", flags.convert.return_tuple,
               "from StableHLO: the result is a tuple, even of one value");
  app.add_flag("--tuple-args", flags.convert.use_tuple_args, "from StableHLO: the parameters are one tuple");
  input.AddFlags(&app);
  app.footer(kExamples);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;

  cli::DiagnosticReporter diagnostics(input);
  const std::vector<cli::InputPart> parts = diagnostics.Read(flags.path);
  if (parts.empty()) return diagnostics.exit_code();
  const std::string_view to = FormatOf(flags);
  std::vector<std::string> texts;
  for (const cli::InputPart& part : parts) {
    std::string text;
    const bool from_mlir = LooksLikeMlir(part.text);
    if (from_mlir && to == kStablehlo) {
      const std::unique_ptr<mlir::Module> program = ParseProgram(part, flags, input, &diagnostics);
      if (program == nullptr) continue;
      text = mlir::PrintMlir(*program, {flags.generic, flags.debug_info});
    } else {
      std::unique_ptr<Module> module;
      if (from_mlir) {
        const std::unique_ptr<mlir::Module> program = ParseProgram(part, flags, input, &diagnostics);
        if (program == nullptr) continue;
        DiagnosticSink sink;
        module = stablehlo::ConvertToHlo(*program, flags.convert, &sink);
        diagnostics.Show(sink, *part.source);
      } else {
        module = diagnostics.Parse(part);
      }
      if (module == nullptr || (flags.verify && !diagnostics.Verify(part, *module))) continue;
      if (to == kStablehlo) {
        DiagnosticSink sink;
        const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(*module, &sink);
        diagnostics.Show(sink, *part.source);
        if (program == nullptr) continue;
        text = mlir::PrintMlir(*program, {flags.generic, flags.debug_info});
      } else {
        TextWriter out(&text);
        Find(to)->write(*module, flags, out);
      }
    }
    texts.push_back(std::move(text));
  }
  if (diagnostics.exit_code() != cli::kOk) return diagnostics.exit_code();
  cli::WriteOutputFile(flags.output, &diagnostics, [&](TextWriter& out) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i != 0) out << "// -----\n\n";
      out << texts[i];
    }
  });
  return diagnostics.exit_code();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
