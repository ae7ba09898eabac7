// SPDX-License-Identifier: Apache-2.0
// Shared by the subcommands of hlo-inspect: inputs, and destination and format of the report.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_COMMAND_H_
#define HLOKIT_TOOLS_HLO_INSPECT_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/cli.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"

namespace hlokit::cli {

struct InspectFlags {
  InputOptions input;
  std::vector<std::string> files{"-"};
  std::string output = "-";
  bool json = false;
  bool verify = true;

  void AddTo(CLI::App* app) {
    app->add_option("FILE", files, "modules as HLO text, StableHLO, protocol buffers or JSON; - is standard input")
        ->type_name("FILE")
        ->default_str("-");
    app->add_flag("--json", json, "print JSON");
    const std::string group = "Input and output";
    app->add_option("-o,--output", output, "output file; - is standard output")
        ->type_name("FILE")
        ->default_str("-")
        ->group(group);
    app->add_flag("--verify,!--no-verify", verify, "verify the modules first (default on)")->group(group);
    input.AddFlags(app);
    app->parse_complete_callback([this] { input.parse.verify_stablehlo = verify; });
  }
};

// A subcommand with a file of its own.
struct InspectCommand {
  CLI::App* app;
  std::function<int()> run;
};

// Fills the output with `write`. Returns the exit code.
template <typename Write>
int WriteReport(const InspectFlags& flags, DiagnosticReporter* diagnostics, Write write) {
  WriteOutputFile(flags.output, diagnostics, write);
  return diagnostics->exit_code();
}

// Calls `use(part, module)` for each valid module.
template <typename Use>
void ForEachModule(const InspectFlags& flags, DiagnosticReporter* diagnostics, Use use) {
  for (const std::string& path : flags.files) {
    for (const InputPart& part : diagnostics->Read(path)) {
      const std::unique_ptr<Module> module = diagnostics->Parse(part);
      if (module == nullptr || (flags.verify && !diagnostics->Verify(part, *module))) continue;
      use(part, *module);
    }
  }
}

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_COMMAND_H_
