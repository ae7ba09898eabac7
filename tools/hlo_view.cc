// SPDX-License-Identifier: Apache-2.0
// hlo-view: the graph of a module as a page, as a picture, as Graphviz text or as data.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "passes/view/dot.h"
#include "passes/view/graph_document.h"
#include "passes/view/remark_lines.h"
#include "passes/view/subgraph.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/device_flag.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"
#include "tools/cli/pages/web_page.h"
#include "tools/hlo_view/programs.h"

namespace hlokit {
namespace {

constexpr std::string_view kTool = "hlo-view";

constexpr char kExamples[] = R"(Examples:
  hlo-view module.hlo -o graph.html --open    explore a module
  hlo-view --device=v5p module.hlo -o graph.html
                                              compiled, with simulated times
  hlo-opt --passes=default module.hlo | hlo-view - -o graph.html
  hlo-view --format=svg --of=fusion.3 module.hlo -o fusion.svg
                                              what a fusion computes
  hlo-view --format=dot --of=dot.7 --depth=2 module.hlo
                                              an instruction with its neighbors
  hlo-view --format=json module.hlo | jq '.[0].instructions.name')";

struct Flags {
  cli::InputOptions input;
  std::string file;
  std::string output = "-";
  std::string format = "html";
  std::string device;
  SubgraphOptions subgraph;
  bool open = false;
  bool verify = true;
};

// Writes the picture or its description. Returns false after an error, which is printed.
bool WritePicture(const Flags& flags, const Module& module, cli::DiagnosticReporter* diagnostics) {
  const absl::StatusOr<Subgraph> subgraph = SelectSubgraph(module, flags.subgraph);
  if (!subgraph.ok()) {
    diagnostics->ShowError(flags.file, std::string(subgraph.status().message()), cli::kUsage);
    return false;
  }
  std::string dot;
  {
    TextWriter out(&dot);
    PrintDot(out, *subgraph);
  }
  if (flags.format == "svg") {
    absl::StatusOr<std::string> svg = view::RunGraphviz(dot);
    if (!svg.ok()) {
      diagnostics->ShowError("dot", std::string(svg.status().message()), cli::kRejected);
      return false;
    }
    dot = *std::move(svg);
  }
  return cli::WriteOutputFile(flags.output, diagnostics, [&dot](TextWriter& out) { out << dot; });
}

int View(const Flags& flags) {
  cli::DiagnosticReporter diagnostics(flags.input);
  const std::vector<cli::InputPart> parts = diagnostics.Read(flags.file);
  if (parts.size() != 1) {
    if (!parts.empty()) diagnostics.ShowError(flags.file, "expected one module", cli::kUsage);
    return diagnostics.exit_code();
  }
  std::unique_ptr<Module> module = diagnostics.Parse(parts[0]);
  if (module == nullptr || (flags.verify && !diagnostics.Verify(parts[0], *module))) return diagnostics.exit_code();
  if (!module->entry().valid()) {
    diagnostics.ShowError(flags.file, "the module has no entry computation", cli::kRejected);
    return diagnostics.exit_code();
  }
  GraphDocumentOptions options;
  options.file = flags.file == "-" ? "standard input" : flags.file;
  if (!flags.device.empty()) {
    options.device = flags.device;
    RemarkFilter filter;
    filter.categories = (uint32_t{1} << kRemarkCategoryCount) - 1;
    RemarkCollector remarks(std::move(filter));
    std::optional<tpu::InstructionTimes> times =
        cli::TimeOnDevice(flags.device, module->name(), *module, &diagnostics, &remarks);
    if (!times) return diagnostics.exit_code();
    options.seconds = times->ByInstruction();
    options.remarks = RemarkLinesOf(*times->compiled, remarks.remarks());
    module = std::move(times->compiled);
  }
  if (flags.format == "svg" || flags.format == "dot") {
    WritePicture(flags, *module, &diagnostics);
    return diagnostics.exit_code();
  }
  const std::string text = GraphsJson({{module.get(), options}});
  const bool written = flags.format == "json" ? cli::WriteOutputFile(flags.output, &diagnostics,
                                                                     [&text](TextWriter& out) { out << text << '\n'; })
                                              : cli::WriteViewPage(flags.output, text, &diagnostics);
  if (written && flags.open) {
    if (const absl::Status s = view::OpenInBrowser(flags.output); !s.ok()) {
      diagnostics.ShowError(flags.output, std::string(s.message()), cli::kRejected);
    }
  }
  return diagnostics.exit_code();
}

// Returns the format that the suffix of an output names, html without a suffix; nullopt for other suffixes.
std::optional<std::string> FormatOfPath(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0) return "html";
  const std::string_view suffix = name.substr(dot + 1);
  for (const std::string_view format : {"html", "svg", "dot", "json"}) {
    if (suffix == format) return std::string(format);
  }
  return std::nullopt;
}

int Run(int argc, char** argv) {
  CLI::App app("show the graph of an HLO module as a page, or parts of it as pictures", std::string(kTool));
  Flags flags;
  app.add_option("FILE", flags.file, "the module; - is standard input")->type_name("FILE")->required();
  app.add_option("-o,--output", flags.output, "output file; - is standard output")->type_name("FILE")->default_str("-");
  CLI::Option* const format =
      app.add_option(
             "--format", flags.format,
             "html, a page that needs no network; of a part of the module svg, a picture by Graphviz, or dot, its "
             "text; json, the data of the page; by default as the suffix of the output says")
          ->type_name("html|svg|dot|json")
          ->check(CLI::IsMember({"html", "svg", "dot", "json"}))
          ->default_str("html");
  app.add_flag("--open", flags.open, "open the page in the browser");
  app.add_option(
         "--device", flags.device,
         "compile for this device, as hlo-run does, and show the simulated time of each instruction and the remarks "
         "of the passes on it")
      ->type_name("DEVICE");
  app.add_option("--of", flags.subgraph.name,
                 "for svg and dot: a computation, or an instruction: what it calls, or with --depth its neighbors "
                 "(default the entry computation)")
      ->type_name("NAME");
  cli::AddNumber(&app, "--depth,--hops", &flags.subgraph.hops,
                 "show instructions at most so many operands or users away", 0, int64_t{1} << 20)
      ->default_str("0");
  cli::AddNumber(&app, "--max-instructions", &flags.subgraph.max_instructions, "limit for svg and dot")
      ->default_str("400");
  app.add_flag("--verify,!--no-verify", flags.verify, "verify the module first (default on)");
  flags.input.AddFlags(&app);
  app.footer(kExamples);
  if (const std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  flags.input.parse.verify_stablehlo = flags.verify;
  if (format->count() == 0) {
    const std::optional<std::string> by_suffix = FormatOfPath(flags.output);
    if (!by_suffix) {
      return cli::UsageError(kTool, StrCat("-o ", flags.output,
                                           ": expected a name that ends with .html, .svg, .dot or .json; --format says "
                                           "what another name gets"));
    }
    flags.format = *by_suffix;
  }
  const bool picture = flags.format == "svg" || flags.format == "dot";
  if (!picture && !flags.subgraph.name.empty()) {
    return cli::UsageError(kTool, "--of requires --format=svg or dot");
  }
  if (flags.subgraph.hops > 0 && flags.subgraph.name.empty()) {
    return cli::UsageError(kTool, "--depth requires --of=INSTRUCTION");
  }
  if (!picture && app.count("--max-instructions") > 0) {
    return cli::UsageError(kTool, "--max-instructions requires --format=svg or dot");
  }
  if (flags.open && flags.format != "html") return cli::UsageError(kTool, "--open requires --format=html");
  if (flags.open && flags.output == "-") return cli::UsageError(kTool, "--open requires -o FILE");
  return View(flags);
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
