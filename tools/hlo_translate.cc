// SPDX-License-Identifier: Apache-2.0
// hlo-translate: reads a module in any format and writes it in another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/core/str_cat.h"
#include "ir/verify/verifier.h"
#include "parser/bytecode/writer.h"
#include "parser/formats/module_formats.h"
#include "parser/formats/stablehlo_program.h"
#include "parser/mlir/parser.h"
#include "parser/mlir/printer.h"
#include "parser/proto/header_proto.h"
#include "parser/proto/proto_file.h"
#include "parser/stablehlo/export/export.h"
#include "parser/stablehlo/import/convert.h"
#include "parser/stablehlo/refine/refine.h"
#include "parser/stablehlo/refine/refine_passes.h"
#include "parser/stablehlo/verify/verify.h"
#include "tools/cli/cli.h"
#include "tools/cli/module_file.h"
#include "tools/cli/output_file.h"

namespace hlokit {
namespace {

constexpr std::string_view kTool = "hlo-translate";

constexpr char kExamples[] = R"(Examples:
  hlo-translate model.mlir -o model.hlo        StableHLO to HLO text
  hlo-translate --to=stablehlo model.mlir      check StableHLO and print it in MLIR's form
  hlo-translate --to=stablehlo --generic x.hlo HLO to StableHLO in the generic form
  hlo-translate model.hlo -o model.mlir.bc     HLO to a portable artifact of StableHLO
  hlo-translate x.mlir --target=1.9.5 -o x.mlir.bc
                                               one that an older StableHLO reads
  hlo-translate model.bin --shape b=8 --to=stablehlo
                                               jax.export's file with the size of a dimension
  hlo-translate dump.hlo -o dump.pb            HLO text to XLA's HloProto
  hlo-translate --to=textproto snapshot.pb     a message as text, with nothing lost
  hlo-translate --message=OpSharding --to=proto-json x.pb
                                               any of XLA's messages, without a module
  hlo-translate dump.hlo -o dump.json          everything, for scripts
  jax-export.py | hlo-translate - -o out.hlo   from standard input)";

struct Flags {
  std::string path = "-";
  std::string output = "-";
  std::string to;
  std::string message;
  bool generic = false;
  bool debug_info = false;
  bool verify = true;
  std::optional<std::string> release;  // --target, of which Check makes
  int64_t target = bytecode::kNewestMinor;
  stablehlo::ConvertOptions convert;
  std::string passes;
  std::optional<stablehlo::RefineOptions> refine;  // of --passes, of which Check makes it
  cli::InputOptions input;

  void AddTo(CLI::App* app);
  // Completes the options. Returns an exit code after a usage error, which is printed.
  std::optional<int> Check();
};

constexpr std::string_view kStablehlo = "stablehlo", kArtifact = "artifact";

// The format that flags ask for, by name or by the suffix of the output, which is one of a format.
const ModuleFormat& FormatOf(const Flags& flags) {
  return *FindModuleFormat(flags.to.empty() ? *cli::FormatOfPath(flags.output) : std::string_view(flags.to));
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const ModuleFormat& format : ModuleFormats()) names.emplace_back(format.name);
  return names;
}

// Warns of attributes of the header that the message of a file has no place for.
void WarnOfConfig(const Module& module, const ForeignParts* parts, const ModuleFormat& format,
                  const cli::InputPart& part, cli::DiagnosticReporter* diagnostics) {
  const auto* proto = dynamic_cast<const ProtoFileParts*>(parts);
  const bool snapshot = format.name == "snapshot";
  if (!NeedsConfig(module.header()) || (!snapshot && !format.is_proto)) return;
  if (!snapshot && MessageFor(module, proto) == ProtoMessage::kModuleWithConfig) return;
  DiagnosticSink sink;
  sink.Warning(
      DiagnosticKind::kBadHeader, {},
      "replica_count, num_partitions, alias_passthrough_params or allow_spmd_sharding_propagation_to_* have no "
      "place in this message, and are lost",
      "an HloModuleProtoWithConfig has one: --to=proto writes it for a module of HLO text");
  diagnostics->Show(sink, *part.source);
}

// Translates a message of a type that need not hold a module.
int TranslateMessage(const Flags& flags, const cli::InputPart& part, cli::DiagnosticReporter* diagnostics) {
  const std::unique_ptr<google::protobuf::Message> message = NewMessage(flags.message);
  if (message == nullptr) return cli::UsageError(kTool, StrCat("--message: there is no message `", flags.message, "`"));
  const std::string_view to = FormatOf(flags).name;
  const std::pair<std::string_view, ProtoEncoding> encodings[] = {
      {"proto", ProtoEncoding::kBinary}, {"textproto", ProtoEncoding::kText}, {"proto-json", ProtoEncoding::kJson}};
  const auto* found = std::find_if(std::begin(encodings), std::end(encodings), [&](auto& e) { return e.first == to; });
  if (found == std::end(encodings)) {
    return cli::UsageError(kTool, "--message: expected --to=proto, textproto or proto-json");
  }
  const absl::Status status = ParseAnyEncoding(part.text, message.get());
  if (!status.ok()) {
    diagnostics->ShowError(part.label(), std::string(status.message()), cli::kRejected);
    return diagnostics->exit_code();
  }
  // The file form of an unoptimized snapshot goes by its name, as it is no message.
  const bool with_arguments = flags.output.ends_with(".hlo_unoptimized_snapshot.pb");
  const absl::StatusOr<std::string> bytes =
      FormatMessage(*message, with_arguments ? ProtoEncoding::kWithArguments : found->second);
  if (!bytes.ok()) {
    diagnostics->ShowError(part.label(), std::string(bytes.status().message()), cli::kRejected);
    return diagnostics->exit_code();
  }
  cli::WriteOutputFile(flags.output, diagnostics, [&](TextWriter& out) { out << *bytes; });
  return diagnostics->exit_code();
}

// Returns the StableHLO program of a part that is one; null after errors.
std::unique_ptr<mlir::Module> ParseProgram(const cli::InputPart& part, const Flags& flags,
                                           cli::DiagnosticReporter* diagnostics) {
  DiagnosticSink sink;
  mlir::MlirOptions options;
  options.max_literal_bytes = flags.input.parse.max_literal_bytes;
  options.verify = flags.verify;
  std::unique_ptr<mlir::Module> program = ParseStablehloProgram(part.source, part.text, options, &sink);
  if (program != nullptr && (!flags.input.parse.sizes.empty() || flags.refine)) {
    stablehlo::RefineOptions refine = flags.refine.value_or(stablehlo::RefineOptions());
    refine.entry = flags.input.parse.entry;
    refine.sizes.insert(refine.sizes.end(), flags.input.parse.sizes.begin(), flags.input.parse.sizes.end());
    if (stablehlo::RefineProgram(program.get(), refine, &sink) && flags.verify) {
      stablehlo::VerifyProgram(*program, &sink);
    }
  }
  diagnostics->Show(sink, *part.source);
  return sink.has_errors() ? nullptr : std::move(program);
}

// Returns a StableHLO program as text or as an artifact; "" after an error, which is shown.
std::string WriteProgram(mlir::Module* program, const Flags& flags, const cli::InputPart& part,
                         cli::DiagnosticReporter* diagnostics) {
  if (FormatOf(flags).name != kArtifact) return mlir::PrintMlir(*program, {flags.generic, flags.debug_info});
  DiagnosticSink sink;
  std::optional<std::string> bytes = bytecode::WriteArtifact(program, &sink, flags.target);
  diagnostics->Show(sink, *part.source);
  return bytes.value_or("");
}

// Returns what flags about StableHLO require that the translation of the parts lacks; "" if they have an effect.
std::string FindUselessFlag(const Flags& flags, const std::vector<cli::InputPart>& parts) {
  const bool to_program = FormatOf(flags).is_stablehlo;
  bool imports = false;  // some part from StableHLO to HLO
  bool exports = false;  // from HLO to StableHLO
  for (const cli::InputPart& part : parts) {
    if (!flags.message.empty() || LooksLikeStablehlo(part.text) == to_program) continue;
    (to_program ? exports : imports) = true;
  }
  const bool programs =
      std::any_of(parts.begin(), parts.end(), [](const cli::InputPart& part) { return LooksLikeStablehlo(part.text); });
  if (flags.refine && !programs) return "--passes requires a StableHLO program";
  if (flags.convert.return_tuple && !imports) return "--return-tuple requires a translation from StableHLO to HLO";
  if (flags.convert.use_tuple_args && !imports) return "--tuple-args requires a translation from StableHLO to HLO";
  if (flags.convert.as_xla && !imports && !exports) return "--as-xla requires a translation between StableHLO and HLO";
  return "";
}

// Returns a module of HLO, also of a StableHLO program; null after errors. `foreign` gets what a message says beyond it
// that another message has a place for.
std::unique_ptr<Module> ReadHlo(const cli::InputPart& part, const Flags& flags,
                                std::unique_ptr<const ForeignParts>* foreign, cli::DiagnosticReporter* diagnostics) {
  std::unique_ptr<Module> module;
  if (LooksLikeStablehlo(part.text)) {
    const std::unique_ptr<mlir::Module> program = ParseProgram(part, flags, diagnostics);
    if (program == nullptr) return nullptr;
    DiagnosticSink sink;
    module = stablehlo::ConvertToHlo(*program, flags.convert, &sink);
    diagnostics->Show(sink, *part.source);
  } else {
    module = FormatOf(flags).is_proto ? diagnostics->ParseWithParts(part, foreign) : diagnostics->Parse(part);
  }
  if (module == nullptr || (flags.verify && !diagnostics->Verify(part, *module))) return nullptr;
  return module;
}

// Returns a part in the format that the flags ask for; nullopt after errors, which are printed.
std::optional<std::string> TranslatePart(const cli::InputPart& part, const Flags& flags,
                                         cli::DiagnosticReporter* diagnostics) {
  const ModuleFormat& to = FormatOf(flags);
  if (to.is_stablehlo && LooksLikeStablehlo(part.text)) {
    const std::unique_ptr<mlir::Module> program = ParseProgram(part, flags, diagnostics);
    if (program == nullptr) return std::nullopt;
    return WriteProgram(program.get(), flags, part, diagnostics);
  }
  std::unique_ptr<const ForeignParts> foreign;
  const std::unique_ptr<Module> module = ReadHlo(part, flags, &foreign, diagnostics);
  if (module == nullptr) return std::nullopt;
  DiagnosticSink sink;
  if (to.is_stablehlo) {
    const std::unique_ptr<mlir::Module> program = stablehlo::ExportToStablehlo(*module, &sink, {flags.convert.as_xla});
    diagnostics->Show(sink, *part.source);
    if (program == nullptr) return std::nullopt;
    return WriteProgram(program.get(), flags, part, diagnostics);
  }
  WarnOfConfig(*module, foreign.get(), to, part, diagnostics);
  std::optional<std::string> written = to.write(*module, foreign.get(), &sink);
  // They name no place but the part.
  for (const Diagnostic& d : sink.diagnostics()) diagnostics->ShowError(part.label(), d.message, cli::kRejected);
  return written;
}

void Flags::AddTo(CLI::App* app) {
  app->add_option("input", path, "a module in any format; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  app->add_option("-o,--output", output, "output file; - is standard output")->type_name("FILE")->capture_default_str();
  app->add_option("--to", to, "format to write; by default that of the output's suffix, or hlo")
      ->check(CLI::IsMember(FormatNames()))
      ->type_name("FORMAT");
  app->add_option("--message", message,
                  "the input is this message of XLA's, in any encoding, and is not read as a module")
      ->type_name("NAME");
  app->add_option("--target", release, "with --to=artifact: the release of StableHLO that is to read it, as 1.9.5")
      ->type_name("VERSION");
  app->add_option("--passes", passes,
                  "passes over a StableHLO program: stablehlo-refine-arguments{types=tensor<8x4xf32>,...}, "
                  "stablehlo-refine-shapes, stablehlo-canonicalize-dynamism; --shape runs all of them")
      ->type_name("PASSES");
  app->add_flag("--generic", generic, "write StableHLO in the generic form of MLIR");
  app->add_flag("--debug-info", debug_info, "write the locations of StableHLO operations");
  app->add_flag("--verify,!--no-verify", verify, "verify the module (default on)");
  app->add_flag("--return-tuple", convert.return_tuple, "from StableHLO: the result is a tuple, even of one value");
  app->add_flag("--tuple-args", convert.use_tuple_args, "from StableHLO: the parameters are one tuple");
  app->add_flag("--as-xla", convert.as_xla, "between StableHLO and HLO: write all that XLA's own translators write");
  input.AddFlags(app);
}

std::optional<int> Flags::Check() {
  if (to.empty() && !cli::FormatOfPath(output)) {
    return cli::UnknownSuffixError(kTool, output, "--to=FORMAT chooses the format");
  }
  if (release) {
    if (FormatOf(*this).name != kArtifact) return cli::UsageError(kTool, "--target requires --to=artifact");
    const std::optional<int64_t> minor = bytecode::MinorOfTarget(*release);
    if (!minor) {
      return cli::UsageError(kTool, StrCat("--target: expected a release of StableHLO from 1.0.0 to 1.",
                                           bytecode::kNewestMinor, ".0, found `", *release, "`"));
    }
    target = *minor;
  }
  if ((generic || debug_info) && FormatOf(*this).name != kStablehlo) {
    return cli::UsageError(kTool, StrCat(generic ? "--generic" : "--debug-info", " requires --to=", kStablehlo));
  }
  if (!passes.empty()) {
    absl::StatusOr<stablehlo::RefineOptions> parsed = stablehlo::ParseRefinePasses(passes);
    if (!parsed.ok()) return cli::UsageError(kTool, StrCat("--passes: ", std::string(parsed.status().message())));
    refine = *std::move(parsed);
  }
  convert.entry = input.parse.entry;
  convert.max_literal_bytes = input.parse.max_literal_bytes;
  return std::nullopt;
}

int Run(int argc, char** argv) {
  CLI::App app("translate modules between HLO text, StableHLO, XLA's protocol buffers and JSON", std::string(kTool));
  Flags flags;
  flags.AddTo(&app);
  app.footer(kExamples);
  if (std::optional<int> exit_code = cli::ParseFlags(&app, argc, argv)) return *exit_code;
  if (std::optional<int> exit_code = flags.Check()) return *exit_code;
  cli::DiagnosticReporter diagnostics(flags.input);
  const std::vector<cli::InputPart> parts = diagnostics.Read(flags.path);
  if (parts.empty()) return diagnostics.exit_code();
  if (const std::string error = FindUselessFlag(flags, parts); !error.empty()) return cli::UsageError(kTool, error);
  if (!flags.message.empty()) return TranslateMessage(flags, parts.front(), &diagnostics);
  std::vector<std::string> texts;
  for (const cli::InputPart& part : parts) {
    if (!flags.input.parse.entry.empty() && FormatOf(flags).is_stablehlo && LooksLikeStablehlo(part.text)) {
      return cli::UsageError(kTool, "--entry requires another format: StableHLO programs are written whole");
    }
    std::optional<std::string> text = TranslatePart(part, flags, &diagnostics);
    if (text) texts.push_back(*std::move(text));
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
