// SPDX-License-Identifier: Apache-2.0
// What the subcommands of hlo-inspect share: inputs, where the report goes and in which form.
#ifndef HLOKIT_TOOLS_CLI_INSPECT_COMMAND_H_
#define HLOKIT_TOOLS_CLI_INSPECT_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/cli.h"
#include "tools/cli/json_writer.h"
#include "tools/cli/output_file.h"

namespace hlokit::cli {

struct InspectFlags {
  InputOptions input;
  std::vector<std::string> files{"-"};
  std::string output = "-";
  bool json = false;

  void AddTo(CLI::App* app) {
    app->add_option("FILE", files, "HLO texts; - is standard input")->type_name("FILE")->default_str("-");
    app->add_flag("--json", json, "print JSON");
    app->add_option("-o,--output", output, "output file; - is standard output")->type_name("FILE")->default_str("-");
    input.AddFlags(app);
  }
};

// A subcommand in a file of its own.
struct InspectCommand {
  CLI::App* app;
  std::function<int()> run;
};

// Opens the output, lets `write` fill it, and makes it visible. The exit code.
template <typename Write>
int WriteReport(const InspectFlags& flags, DiagnosticReporter* diagnostics, Write write) {
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(flags.output);
  absl::Status status = file.status();
  if (file.ok()) {
    write((*file)->writer());
    status = (*file)->Commit();
  }
  if (!status.ok()) {
    diagnostics->ShowError("", std::string_view(status.message().data(), status.message().size()), kUsage);
  }
  return diagnostics->exit_code();
}

// Calls `use(part, module)` for each module that can be read.
template <typename Use>
void ForEachModule(const InspectFlags& flags, DiagnosticReporter* diagnostics, Use use) {
  for (const std::string& path : flags.files) {
    for (const InputPart& part : diagnostics->Read(path)) {
      const std::unique_ptr<Module> module = diagnostics->Parse(part);
      if (module != nullptr) use(part, *module);
    }
  }
}

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_INSPECT_COMMAND_H_
