// SPDX-License-Identifier: Apache-2.0
// Shared by all tools: flags, reading inputs, printing diagnostics, exit codes. A tool is
//
//   int Run(int argc, char** argv) {
//     CLI::App app("Does something to HLO modules.", "hlo-tool");
//     cli::InputOptions input;
//     input.AddFlags(&app);
//     app.footer("Examples:\n  hlo-tool module.hlo");
//     if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
//     cli::DiagnosticReporter diagnostics(input);
//     for (const cli::InputPart& part : diagnostics.Read("-")) diagnostics.Parse(part);
//     return diagnostics.exit_code();
//   }
//   int main(int argc, char** argv) { return hlokit::cli::Main(Run, argc, argv); }
#ifndef HLOKIT_TOOLS_CLI_CLI_H_
#define HLOKIT_TOOLS_CLI_CLI_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/literal_fill.h"
#include "ir/graph/module.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "tools/cli/completion.h"

namespace hlokit::cli {

enum ExitCode : int {
  kOk = 0,
  kRejected = 1,  // the input was rejected, the tool's check failed, or output cannot be written
  kUsage = 2,     // usage error, or a file cannot be read
  kInternal = 3,  // internal error, or out of memory
};

// Runs `run` and converts uncaught exceptions (of the standard library, out of memory) to kInternal.
int Main(int (*run)(int argc, char** argv), int argc, char** argv);

// Parses the flags into `app`. Returns an exit code if the tool is done: that of PrintText after --help, --version or
// --complete, kUsage after a usage error, which is printed. `-` and `_` are equal in flag names: declare flags with
// `-`. `kinds`: kinds of values that only this tool has, in addition to CommonValueKinds.
std::optional<int> ParseFlags(CLI::App* app, int argc, char** argv, std::vector<ValueKind> kinds = {});

// Returns the long names of the options with their dashes, sorted.
std::vector<std::string> FlagNames(const CLI::App& app);

// Prints "tool: error: message" on standard error, with control characters and bytes that are no UTF-8 escaped, and
// returns kUsage.
int UsageError(std::string_view tool, std::string_view message);

// Writes to standard output, for a tool that prints nothing else. Returns kOk, or kRejected after an error, which is
// printed.
int PrintText(std::string_view text);

// Adds --fill-elided=zeros|iota|random, and xla if `xla` is set; `purpose` begins the description.
void AddFillElidedFlag(CLI::App* app, std::optional<FillKind>* kind, bool xla, std::string_view purpose);

constexpr uint64_t kMaxInputBytes = uint64_t{1} << 32;

struct InputOptions {
  InputOptions() { parse.check_shapes_after_errors = true; }

  ParseOptions parse;
  uint64_t max_bytes = kMaxInputBytes;  // of a file
  bool split_input_file = false;
  bool json_diagnostics = false;
  bool warn_of_elided = true;  // of constants without values, "{...}"

  // Adds --split-input-file, --max-input-bytes, --allow-unknown, --entry, --diagnostics=text|json.
  void AddFlags(CLI::App* app);
  // Adds --max-input-bytes, of a tool that reads other files than modules.
  void AddMaxInputBytesFlag(CLI::App* app);
};

// A file, or one chunk of it, as separated by "// -----". Offsets in diagnostics and in the module refer to the whole
// file, so that line numbers do too.
struct InputPart {
  std::shared_ptr<const SourceBuffer> source;
  std::string_view text;
  size_t index = 0;  // of the chunk, from 0
  size_t count = 1;  // chunks in the file

  // Returns "file.hlo", or "file.hlo#2" (from 1) with several chunks.
  std::string label() const;
};

// Reads inputs and prints diagnostics on standard error: immediately as text, or as one JSON array at Finish or
// destruction. Keeps the highest exit code.
class DiagnosticReporter {
 public:
  explicit DiagnosticReporter(const InputOptions& options) : options_(options) {}
  DiagnosticReporter(const DiagnosticReporter&) = delete;
  DiagnosticReporter& operator=(const DiagnosticReporter&) = delete;
  ~DiagnosticReporter() { Finish(); }

  const InputOptions& input() const { return options_; }

  // Returns the chunks of the file `path` ("-": standard input). Empty after an error, which is printed.
  std::vector<InputPart> Read(const std::string& path);
  // Returns the module of a chunk; null after errors. Prints errors and warnings. Modules with a shared context require
  // one thread, but compare faster.
  std::unique_ptr<Module> Parse(const InputPart& part, std::shared_ptr<Context> context = nullptr) {
    return ParseWithSizes(part, std::move(context), {});
  }
  // As Parse, of a program with open sizes of which `sizes` are known beside those of the options (ParseOptions).
  std::unique_ptr<Module> ParseWithSizes(const InputPart& part, std::shared_ptr<Context> context,
                                         const std::vector<std::string>& sizes);
  // As Parse, with what the file says beyond the module (ParseModuleAndParts).
  std::unique_ptr<Module> ParseWithParts(const InputPart& part, std::unique_ptr<const ForeignParts>* parts);
  // Verifies a parsed module. Prints errors and warnings. Returns false after errors.
  bool Verify(const InputPart& part, const Module& module, const VerifierOptions& verifier = {});
  // Prints an engine's diagnostics for a module of `source`.
  void Show(const DiagnosticSink& sink, const SourceBuffer& source);
  // Prints the error of an output that cannot be written; the message of `status` names it.
  void ShowOutputError(const absl::Status& status, ExitCode code = kRejected);
  // Prints an error without a location in a text.
  void ShowError(std::string_view where, std::string_view message, ExitCode code);

  // Prints a warning without a location in a text.
  void ShowWarning(std::string_view where, std::string_view message);

  // Returns kOk, or the highest code so far.
  int exit_code() const { return exit_code_; }
  // Raises exit_code() to at least `code`.
  void Fail(ExitCode code);
  void Finish();

 private:
  void ShowMessage(std::string_view severity, std::string_view where, std::string_view message);
  std::unique_ptr<Module> Finish(const InputPart& part, DiagnosticSink* sink, std::unique_ptr<Module> module);
  void AppendJson(std::string_view objects);

  const InputOptions options_;
  int exit_code_ = kOk;
  std::string json_;  // the objects so far, without the brackets
  bool finished_ = false;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_CLI_H_
