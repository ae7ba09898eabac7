// SPDX-License-Identifier: Apache-2.0
// hlo-opt: reads a module, verifies it, runs passes, prints it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/expected_diagnostics.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "tools/cli/cli.h"
#include "tools/cli/flags/given_flag.h"
#include "tools/cli/flags/pass_flags.h"
#include "tools/cli/flags/print_flags.h"
#include "tools/cli/module_file.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/output_file.h"

namespace hlokit {
namespace {

constexpr int64_t kMaxPartitions = int64_t{1} << 20;

constexpr char kExamples[] = R"(Examples:
  hlo-opt dump.hlo                          verify a dump and print it
  hlo-opt --print=default dump.hlo          print it as XLA would, with large constants elided
  hlo-opt --passes=dce,cse dump.hlo -o -    run two passes
  hlo-opt --passes=simplify --stats x.hlo   run a pipeline and print statistics of each pass
  hlo-opt --passes=simplify --print-changed=diff x.hlo -o /dev/null
                                            watch what each pass changes
  hlo-opt --passes=spmd --partitions=8 x.pb write the program of one of eight devices
  hlo-opt --print=short dump.hlo -o out.hlo XLA's short form, all constants in full
  hlo-opt --print=json dump.hlo             everything, for scripts
  hlo-opt --no-verify --allow-unknown x.hlo accept unknown opcodes and attributes
  cat x.hlo | hlo-opt --print=none -        only verify)";

// Warns if constants whose values are known are elided in a file, which then is another program.
void WarnOfElidedConstants(const std::string& path, const cli::PrintFlags& print,
                           const std::vector<std::unique_ptr<Module>>& modules) {
  int64_t count = 0;
  for (const std::unique_ptr<Module>& module : modules) count += print.CountElided(*module);
  if (count == 0) return;
  std::cerr << "hlo-opt: warning: " << Printable(path) << ": " << count
            << (count == 1 ? " constant is" : " constants are")
            << " elided as {...}; --print=lossless prints the values\n";
}

// Flags with an effect beside --verify-diagnostics, which reads and verifies only.
constexpr std::string_view kFlagsOfVerification[] = {
    "--verify",          "--layout-sensitive", "--allow-unbounded-dynamism",
    "--max-nesting",     "--max-instructions", "--max-literal-bytes",
    "--max-input-bytes", "--split-input-file", "--allow-unknown",
    "--entry",           "--diagnostics",      "--verify-diagnostics"};

// Returns the first flag that --verify-diagnostics makes useless; "" if there is none.
std::string FindFlagBesideVerification(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string flag = option->get_name();
    const bool used = std::find(std::begin(kFlagsOfVerification), std::end(kFlagsOfVerification), flag) !=
                      std::end(kFlagsOfVerification);
    if (option->nonpositional() && !used && cli::IsGiven(*option)) return flag;
  }
  return "";
}

struct Flags {
  std::string path = "-";
  std::string output = "-";
  bool verify = true;
  bool verify_diagnostics = false;
  VerifierOptions verifier;
  cli::InputOptions input;
  cli::PassFlags passes;
  cli::PrintFlags print;
  std::optional<FillKind> fill_elided;
  std::string config;
  int64_t partitions = 0;   // 0: as the header says
  std::string_view format;  // of the output, as Check finds it

  void AddTo(CLI::App* app);
  // Completes the options. Returns an exit code after a usage error, which is printed.
  std::optional<int> Check(const CLI::App& app);
};

void Flags::AddTo(CLI::App* app) {
  app->add_option("input", path, "HLO text, StableHLO, a protocol buffer or JSON; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("-o,--output", output,
                  "output file; - is standard output. Without --print in the format of its suffix, as in hlo-translate")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_flag("--verify,!--no-verify", verify,
                "verify the module before the passes and after each (default on); before passes it is always verified");
  app->add_flag("--layout-sensitive", verifier.layout_sensitive, "verify layouts too, as after layout assignment");
  app->add_flag("--allow-unbounded-dynamism,!--no-allow-unbounded-dynamism", verifier.allow_unbounded_dynamism,
                "dimensions of unknown size, `?`, may appear in any instruction (default on)");
  app->add_option("--config", config,
                  "a text of the same dump, from which the module has what protocol buffers do not hold of its header: "
                  "numbers of replicas and partitions, whether shardings of parameters and results may be propagated")
      ->type_name("FILE");
  app->add_flag("--verify-diagnostics", verify_diagnostics,
                "print nothing; check that the diagnostics match the `// expected-error {{...}}` comments");
  cli::AddNumber(app, "--max-nesting", &input.parse.max_nesting,
                 "limit on the nesting of shapes, operands and computations", 0)
      ->capture_default_str();
  cli::AddNumber(app, "--max-instructions", &input.parse.max_instructions, "limit on the instructions of a module", 0)
      ->capture_default_str();
  cli::AddNumber(app, "--max-literal-bytes", &input.parse.max_literal_bytes,
                 "limit on the bytes of all constants of a module", 0)
      ->capture_default_str();
  cli::AddFillElidedFlag(app, &fill_elided, /*xla=*/true, "generate values for elided constants before anything else");
  passes.AddFlags(app);
  cli::AddNumber(app, "--partitions", &partitions,
                 "number of devices that the passes take a program with shardings to be for, instead of num_partitions "
                 "in its header",
                 1, kMaxPartitions)
      ->needs("--passes");
  input.AddFlags(app);
  print.AddFlags(app);
}

std::optional<int> Flags::Check(const CLI::App& app) {
  if (verify_diagnostics) {
    if (const std::string flag = FindFlagBesideVerification(app); !flag.empty()) {
      return cli::UsageError("hlo-opt", StrCat(flag, " excludes --verify-diagnostics"));
    }
  }
  if (std::optional<int> exit_code = passes.Prepare("hlo-opt")) return exit_code;
  const std::optional<std::string_view> chosen = print.given() ? "hlo" : cli::FormatOfPath(output);
  if (!chosen) return cli::UnknownSuffixError("hlo-opt", output, "--print writes text to any file");
  format = *chosen;
  print.SetOutput(output);
  input.parse.as_dumped = format == "hlo" && print.KeepsInput();
  input.warn_of_elided = !fill_elided;
  input.parse.check_shapes_after_errors = verify;
  input.parse.verify_stablehlo = verify || !passes.empty();
  return std::nullopt;
}

// --verify-diagnostics: prints where the diagnostics are others than the comments expect. Returns the exit code.
int CompareDiagnostics(const Flags& flags, const std::vector<cli::InputPart>& parts) {
  std::string differences;
  for (const cli::InputPart& part : parts) {
    DiagnosticSink sink;
    const std::unique_ptr<Module> module = ParseModulePart(part.source, part.text, flags.input.parse, &sink);
    if (module != nullptr && flags.verify) VerifyModule(*module, flags.verifier, &sink);
    const size_t begin = static_cast<size_t>(part.text.data() - part.source->text().data());
    differences += CompareWithExpected(sink, *part.source, begin, begin + part.text.size());
  }
  std::cerr << differences;
  return differences.empty() ? cli::kOk : cli::kRejected;
}

// Takes what the messages of XLA leave out of the header from the text of --config. Returns false after an error.
bool TakeConfig(const Flags& flags, Module* module, cli::DiagnosticReporter* diagnostics) {
  const std::vector<cli::InputPart> parts = diagnostics->Read(flags.config);
  if (parts.empty()) return false;
  const std::unique_ptr<Module> from = diagnostics->Parse(parts[0], module->shared_context());
  if (from == nullptr) return false;
  if (from->name() != module->name()) {
    diagnostics->ShowError(
        flags.config, StrCat("--config: it is of the module ", from->name(), ", not of ", module->name()), cli::kUsage);
    return false;
  }
  const ModuleHeader& header = from->header();
  ModuleHeader& to = module->header();
  to.replica_count = header.replica_count;
  to.num_partitions = header.num_partitions;
  to.allow_spmd_sharding_propagation_to_parameters = header.allow_spmd_sharding_propagation_to_parameters;
  to.allow_spmd_sharding_propagation_to_output = header.allow_spmd_sharding_propagation_to_output;
  return true;
}

// Sets the number of partitions of a module that --partitions names. Returns false after an error, which is printed.
bool SetPartitions(const cli::InputPart& part, int64_t partitions, Module* module,
                   cli::DiagnosticReporter* diagnostics) {
  const int64_t given = module->header().num_partitions;
  if (given > 1 && given != partitions && IsMarkedPartitioned(*module)) {
    diagnostics->ShowError(part.label(),
                           StrCat("--partitions=", partitions, ": the module is partitioned already, for ", given),
                           cli::kRejected);
    return false;
  }
  module->header().num_partitions = partitions;
  return true;
}

// Reads a module, verifies it and runs the passes. Returns null after an error, which is printed. `fill_seed` goes on
// from module to module.
std::unique_ptr<Module> Process(const cli::InputPart& part, uint64_t* fill_seed, Flags* flags,
                                cli::DiagnosticReporter* diagnostics) {
  std::unique_ptr<Module> module = diagnostics->Parse(part);
  if (module == nullptr || (!flags->config.empty() && !TakeConfig(*flags, module.get(), diagnostics))) return nullptr;
  if (flags->fill_elided) {
    if (const absl::Status status =
            FillElidedConstants(*flags->fill_elided, flags->input.parse.max_literal_bytes, fill_seed, module.get());
        !status.ok()) {
      diagnostics->ShowError(part.label(), StrCat(std::string(status.message()), " (--max-literal-bytes)"),
                             cli::kRejected);
      return nullptr;
    }
  }
  if (flags->partitions != 0 && !SetPartitions(part, flags->partitions, module.get(), diagnostics)) return nullptr;
  if (flags->verify || !flags->passes.empty()) {  // passes require a valid module
    if (!diagnostics->Verify(part, *module, flags->verify ? flags->verifier : VerifierOptions())) return nullptr;
  }
  if (!flags->passes.empty() && !flags->passes.Run(*module, flags->verifier, flags->verify, part, diagnostics)) {
    return nullptr;
  }
  return module;
}

// Writes modules as HLO text. Prints errors.
void WriteText(const Flags& flags, const std::vector<std::unique_ptr<Module>>& modules,
               cli::DiagnosticReporter* diagnostics) {
  for (const std::unique_ptr<Module>& module : modules) {
    if (const absl::Status s = flags.print.Check(*module); !s.ok()) {
      return diagnostics->ShowError(module->name(), std::string(s.message()), cli::kRejected);
    }
  }
  absl::StatusOr<std::unique_ptr<cli::OutputFile>> file = cli::OutputFile::Open(flags.output);
  if (!file.ok()) return diagnostics->ShowOutputError(file.status());
  for (size_t i = 0; i < modules.size(); ++i) {
    if (i != 0) (*file)->writer() << "// -----\n\n";
    flags.print.Print((*file)->writer(), *modules[i]);
  }
  if (const absl::Status status = (*file)->Commit(); !status.ok()) return diagnostics->ShowOutputError(status);
  if (flags.output != "-" && flags.output != "/dev/null" && !flags.input.json_diagnostics) {
    WarnOfElidedConstants(flags.output, flags.print, modules);
  }
}

int Run(int argc, char** argv) {
  CLI::App app("read a module, verify it, run passes over it and print it", "hlo-opt");
  Flags flags;
  flags.AddTo(&app);
  app.footer(kExamples);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  if (std::optional<int> exit_code = flags.Check(app)) return *exit_code;
  cli::DiagnosticReporter diagnostics(flags.input);
  const std::vector<cli::InputPart> parts = diagnostics.Read(flags.path);
  if (parts.empty()) return diagnostics.exit_code();
  if (flags.verify_diagnostics) return CompareDiagnostics(flags, parts);
  // Writes nothing unless every module is valid.
  std::vector<std::unique_ptr<Module>> modules;
  uint64_t fill_seed = 0;
  for (const cli::InputPart& part : parts) {
    std::unique_ptr<Module> module = Process(part, &fill_seed, &flags, &diagnostics);
    if (module != nullptr) modules.push_back(std::move(module));
  }
  flags.passes.PrintReports(&diagnostics);
  if (diagnostics.exit_code() != cli::kOk) return diagnostics.exit_code();
  if (flags.format == "hlo") {
    WriteText(flags, modules, &diagnostics);
    return diagnostics.exit_code();
  }
  if (modules.size() != 1) {
    return cli::UsageError("hlo-opt",
                           StrCat(flags.output, ": a file of this format has one module, not ", modules.size()));
  }
  const std::optional<std::string> text =
      cli::ModuleInFormat(*modules[0], flags.format, *parts[0].source, &diagnostics);
  if (text) cli::WriteOutputFile(flags.output, &diagnostics, [&](TextWriter& out) { out << *text; });
  return diagnostics.exit_code();
}

}  // namespace
}  // namespace hlokit

int main(int argc, char** argv) { return hlokit::cli::Main(hlokit::Run, argc, argv); }
