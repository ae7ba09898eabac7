// SPDX-License-Identifier: Apache-2.0
// What every tool does the same way: flags, reading inputs, showing diagnostics, exit codes. A tool is
//
//   int Run(int argc, char** argv) {
//     CLI::App app("Does something to HLO modules.", "hlo-tool");
//     cli::InputOptions input;
//     input.AddFlags(&app);
//     app.footer("Examples:\n  hlo-tool module.hlo");
//     if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
//     cli::DiagnosticReporter diagnostics(input);
//     ... for each of diagnostics.Read(path): diagnostics.Parse(part) ...
//     return diagnostics.exit_code();
//   }
//   int main(int argc, char** argv) { return hlokit::cli::Main(Run, argc, argv); }
#ifndef HLOKIT_TOOLS_CLI_CLI_H_
#define HLOKIT_TOOLS_CLI_CLI_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/literal_fill.h"
#include "ir/graph/module.h"
#include "parser/core/parser.h"
#include "tools/cli/completion.h"

namespace hlokit::cli {

enum ExitCode : int {
  kOk = 0,
  kRejected = 1,  // the input was rejected, or the check the tool makes failed
  kUsage = 2,     // wrong flags, or a file that cannot be read or written
  kInternal = 3,  // a defect of the tool, or memory ran out
};

// Runs `run` and turns exceptions that escape it (the standard library's, out of memory) into kInternal.
int Main(int (*run)(int argc, char** argv), int argc, char** argv);

// Parses the flags into `app`. The exit code if the tool is done: kOk after --help, --version or --complete, kUsage
// after a mistake, which is described on standard error. `-` and `_` are the same in flag names: declare flags with
// `-`. `kinds` are the values, beside CommonValueKinds, that only this tool takes.
std::optional<int> ParseFlags(CLI::App* app, int argc, char** argv, std::vector<ValueKind> kinds = {});

// Prints "tool: error: message" on standard error and returns kUsage.
int UsageError(std::string_view tool, std::string_view message);

// Adds --fill-elided=zeros|iota|random, and xla where a whole module is filled; described by `purpose` and these kinds.
void AddFillElidedFlag(CLI::App* app, std::optional<FillKind>* kind, bool xla, std::string_view purpose);

struct InputOptions {
  ParseOptions parse;
  bool split_input_file = false;
  bool json_diagnostics = false;

  // Adds --split-input-file, --allow-unknown, --diagnostics=text|json.
  void AddFlags(CLI::App* app);
};

// A file, or one of the groups of it that lines "// -----" separate. Offsets in diagnostics and in the module are those
// of the whole file, so lines are counted from its start.
struct InputPart {
  std::shared_ptr<const SourceBuffer> source;
  std::string_view text;
  size_t index = 0;  // of the group, from 0
  size_t count = 1;  // groups in the file

  // "file.hlo", or "file.hlo#2" (from 1) if there are several groups.
  std::string label() const;
};

// Reads inputs and shows what is wrong with them on standard error: as text as it comes, or as one JSON array when
// Finish is called or the object goes away. Remembers the exit code that the worst of it asks for.
class DiagnosticReporter {
 public:
  explicit DiagnosticReporter(const InputOptions& options) : options_(options) {}
  DiagnosticReporter(const DiagnosticReporter&) = delete;
  DiagnosticReporter& operator=(const DiagnosticReporter&) = delete;
  ~DiagnosticReporter() { Finish(); }

  // The parts of the file `path` ("-": standard input), empty if it cannot be read, which is shown.
  std::vector<InputPart> Read(const std::string& path);
  // The module of a part; null if there are errors. They and the warnings are shown. Modules that share a context can
  // share no thread, but compare faster.
  std::unique_ptr<Module> Parse(const InputPart& part, std::shared_ptr<Context> context = nullptr);
  // Shows what an engine found in a module of `source`.
  void Show(const DiagnosticSink& sink, const SourceBuffer& source);
  // Shows an error that belongs to no place in a text: a file that cannot be written, say.
  void ShowError(std::string_view where, std::string_view message, ExitCode code);

  // kOk, or the highest code so far.
  int exit_code() const { return exit_code_; }
  // Makes exit_code() at least `code`.
  void Fail(ExitCode code);
  void Finish();

 private:
  void AppendJson(std::string_view objects);

  const InputOptions options_;
  int exit_code_ = kOk;
  std::string json_;  // the objects so far, without the brackets
  bool finished_ = false;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_CLI_H_
