// SPDX-License-Identifier: Apache-2.0
// hlo-lsp-server: HLO text, StableHLO, pipelines and machine descriptions in editors, by the Language Server Protocol.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string_view>

#include "tools/cli/cli.h"
#include "tools/cli/number_flag.h"
#include "tools/hlo_lsp_server/server.h"

namespace hlokit {
namespace {

constexpr std::string_view kTool = "hlo-lsp-server";

constexpr char kExamples[] = R"(Editors start it; docs/editors.md has their configurations.

Examples:
  hlo-lsp-server --stdio                    speak the protocol on standard input and output
  hlo-lsp-server --delay=500                report errors half a second after the last key)";

int Run(int argc, char** argv) {
  CLI::App app(
      "serve editors by the Language Server Protocol: HLO text, StableHLO, pipelines of passes, machine descriptions",
      std::string(kTool));
  lsp::ServerOptions options;
  bool stdio = true;
  app.add_flag("--stdio", stdio, "speak on standard input and output, which it always does");
  cli::AddNumber(&app, "--delay", &options.delay_milliseconds,
                 "milliseconds from the last change of a document to its diagnostics", 0, 60000)
      ->default_str("150");
  app.footer(kExamples);
  if (const std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  signal(SIGPIPE, SIG_IGN);
  return lsp::Server(STDIN_FILENO, STDOUT_FILENO, options).Run();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
