// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "io/dumps/dump_files.h"
#include "io/files/read_file.h"
#include "ir/core/json_writer.h"
#include "ir/core/printable_text.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/core/text_writer.h"
#include "ir/verify/elided_constants.h"
#include "parser/formats/source_names.h"
#include "tools/cli/completion.h"
#include "tools/cli/empty_value.h"
#include "tools/cli/final_note.h"
#include "tools/cli/help_format.h"
#include "tools/cli/kept_messages.h"
#include "tools/cli/number_flag.h"
#include "tools/cli/out_of_memory.h"
#include "tools/cli/output_file.h"
#include "tools/cli/version.h"

namespace hlokit::cli {
namespace {

// Returns the name of the running tool, the prefix of messages.
std::string& ToolName() {
  static std::string* const name = new std::string("hlokit");
  return *name;
}

// Ends usage errors.
constexpr std::string_view kMoreInformation = "\nRun with --help for more information.";

std::string* kept_messages = nullptr;

void PrintError(std::string_view text) {
  if (kept_messages != nullptr) {
    kept_messages->append(text);
  } else {
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
}

// Returns the flag name of an argument, with `_` replaced by `-`.
std::string NormalizeFlag(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  return argument;
}

// Flags that are looked for in the wrong tool, and where to find what they do.
struct ElsewhereRow {
  std::string_view tool;
  std::string_view flag;
  std::string_view instead;
};
constexpr char kRecordsPrograms[] = "hlokit.torch records programs in PyTorch (docs/pytorch.md)";
constexpr ElsewhereRow kElsewhere[] = {
    {"ir-dump", "--program", kRecordsPrograms},
    {"ir-dump", "--script", kRecordsPrograms},
    {"hlo-opt", "--device", "hlo-run --device simulates; --passes='tpu{device=v5e}' compiles for a target"},
    {"hlo-opt", "--seed", "hlo-run runs modules; with --run-before-after: --run-seed"},
    {"hlo-opt", "--args", "hlo-run runs modules"},
    {"hlo-opt", "--to", "hlo-translate translates; -o FILE.mlir does too"},
    {"hlo-run", "--stats", "hlo-inspect stats counts; hlo-opt --stats has those of passes"},
    {"hlo-inspect", "--passes", "first run hlo-opt --passes=PIPELINE FILE | hlo-inspect COMMAND"},
    {"hlo-translate", "--passes", "first run hlo-opt --passes=PIPELINE FILE | hlo-translate"},
    {"hlo-view", "--passes", "first run hlo-opt --passes=PIPELINE FILE | hlo-view"},
    {"hlo-diff", "--explain", "hlo-inspect hash --explain A B names the first difference"},
};

// Returns a hint; "" if the flag is of no other tool.
std::string FlagElsewhere(std::string_view tool, std::string_view flag) {
  for (const ElsewhereRow& row : kElsewhere) {
    if (row.tool == tool && row.flag == flag) return StrCat("; ", row.instead);
  }
  return "";
}

// Returns usage errors that CLI11 reports poorly or not at all; "" if there are none.
std::string FindUsageError(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = nullptr;  // the named subcommand
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    const auto names = [each](const std::string& argument) {
      const std::vector<std::string> aliases = each->get_aliases();
      return argument == each->get_name() || std::find(aliases.begin(), aliases.end(), argument) != aliases.end();
    };
    if (std::any_of(arguments.begin(), arguments.end(), names)) command = each;
  }
  bool seen_command = false;  // or another argument that is no flag
  for (size_t k = 0; k < arguments.size() && arguments[k] != "--"; ++k) {
    const std::string& argument = arguments[k];
    const auto find = [&](const std::string& name) -> const CLI::Option* {
      const CLI::Option* option = app.get_option_no_throw(name);
      return option == nullptr && command != nullptr ? command->get_option_no_throw(name) : option;
    };
    if (!argument.starts_with("--")) {
      seen_command = true;
      const std::string name = argument.substr(0, argument.find('='));
      if (name.size() < 3 || name[0] != '-' || find("-" + name) == nullptr) continue;
      return StrCat("unknown flag `", name, "`; did you mean `-", name, "`?");
    }
    const size_t end = argument.find('=');
    const std::string flag = argument.substr(0, end);
    const CLI::Option* option = find(flag);
    if (command != nullptr && !seen_command && app.get_option_no_throw(flag) == nullptr && option != nullptr) {
      return StrCat("`", flag, "` is a flag of a command: write it after `", command->get_name(), "`");
    }
    if (option == nullptr) {
      std::vector<std::string> names;
      const auto add = [&names](const CLI::App& from) {
        for (const CLI::Option* known : from.get_options()) {
          for (const std::string& name : known->get_lnames()) names.push_back(name);
        }
      };
      add(app);
      if (command != nullptr) add(*command);
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      const std::string_view near = FindNearest(std::string_view(flag).substr(2), candidates);
      std::string hint = FlagElsewhere(app.get_name(), flag);
      if (hint.empty() && !near.empty()) hint = StrCat("; did you mean `--", near, "`?");
      return StrCat("unknown flag `", flag, "`", hint);
    }
    const bool needs_value = option->get_items_expected_min() > 0 && option->get_type_size() > 0;
    if (end != std::string::npos || !needs_value) continue;
    if (k + 1 == arguments.size() || arguments[k + 1].starts_with("--")) return StrCat("missing value of `", flag, "`");
    ++k;
  }
  if (command != nullptr || arguments.empty()) return "";
  // CLI11 would only report that a subcommand is missing.
  std::vector<std::string> commands;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(each->get_name());
    for (const std::string& alias : each->get_aliases()) commands.push_back(alias);
  }
  const std::string& first = arguments.front();
  if (commands.empty() || first.starts_with("-")) return "";
  const bool has_stats = std::find(commands.begin(), commands.end(), "stats") != commands.end();
  const std::string example = has_stats ? "stats" : commands.front();
  if (first == "help") return "unknown command `help`: --help lists the commands, COMMAND --help shows one";
  std::error_code ignored;
  if (first.find('.') != std::string::npos || std::filesystem::exists(first, ignored)) {
    return StrCat("`", first, "` is no command: put one first, as in `", app.get_name(), " ", example, " ", first, "`");
  }
  return StrCat("unknown command `", first, "`", DidYouMeanSuffix(first, {commands.begin(), commands.end()}));
}

// Throws for a number that was not added by AddNumber, which CLI11 would convert: octal numbers, negative ones and
// overflows to some unsigned number, "nan".
void CheckNumbers(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type == "INT" || type == "UINT" || type == "FLOAT") {
      throw std::logic_error(StrCat(option->get_name(), " is not declared by AddNumber"));
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) CheckNumbers(*command);
}

// Names of values that are looked for under another one.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"mlir", "stablehlo"}, {"mhlo", "stablehlo"}, {"bytecode", "artifact"},
    {"text", "hlo"},       {"pb", "proto"},       {"pbtxt", "textproto"}};

// Rewords CLI11's description of a usage error like the other messages.
std::string Reworded(std::string what) {
  if (const size_t at = what.find(" not in {"); at != std::string::npos && what.back() == '}') {
    const size_t colon = what.find(": ");
    if (colon == std::string::npos || colon > at) return what;
    const std::string_view all = std::string_view(what).substr(at + 9, what.size() - at - 10);
    const std::string_view found = std::string_view(what).substr(colon + 2, at - colon - 2);
    std::string list;
    std::vector<std::string_view> values;
    for (size_t begin = 0; begin <= all.size(); begin += values.back().size() + 1) {
      values.push_back(all.substr(begin, all.find(',', begin) - begin));
      StrAppend(&list, list.empty() ? "" : ", ", values.back());
    }
    std::string_view nearest = FindNearest(found, values);
    for (const auto& [other, name] : kOtherNames) {
      if (found == other && std::find(values.begin(), values.end(), name) != values.end()) nearest = name;
    }
    return StrCat(what.substr(0, colon + 2), "expected one of ", list, ", found `", found, "`",
                  nearest.empty() ? "" : StrCat("; did you mean `", nearest, "`?"));
  }
  constexpr std::string_view kArgument = "The following argument was not expected: ";
  if (what.starts_with(kArgument)) {
    const std::string argument = what.substr(kArgument.size());
    const bool program = ToolName() == "ir-dump" && (argument.ends_with(".py") || argument.ends_with(".script"));
    return StrCat("unexpected argument `", argument, "`",
                  program ? StrCat("; ir-dump runs no programs: ", kRecordsPrograms) : "");
  }
  if (what == "A subcommand is required") return "expected a command";
  // The first word of a sentence, but not the name of an argument.
  const bool is_name = what.size() > 1 && what[1] >= 'A' && what[1] <= 'Z';
  if (!is_name && what[0] >= 'A' && what[0] <= 'Z') what[0] = static_cast<char>(what[0] - 'A' + 'a');
  return what;
}

}  // namespace

namespace {

std::string (*final_note)() = nullptr;

}  // namespace

void SetFinalNote(std::string (*note)()) { final_note = note; }

int Main(int (*run)(int argc, char** argv), int argc, char** argv) {
  const std::string_view program = argc > 0 ? argv[0] : "";
  if (argc > 0) InstallOutOfMemoryHandlers(program.substr(program.rfind('/') + 1), kInternal);
  try {
    const int exit_code = run(argc, argv);
    if (const std::string note = final_note == nullptr ? "" : final_note(); !note.empty()) {
      PrintError(StrCat(ToolName(), ": ", Printable(note), "\n"));
    }
    return exit_code;
  } catch (const std::bad_alloc&) {
    PrintError(StrCat(ToolName(), ": internal error: out of memory\n"));
  } catch (const std::exception& e) {
    PrintError(StrCat(ToolName(), ": internal error: ", Printable(e.what()), "\n"));
  }
  return kInternal;
}

std::optional<int> ParseFlags(CLI::App* app, int argc, char** argv, std::vector<ValueKind> kinds) {
  ToolName() = app->get_name();
  const std::string commit = *kCommit == '\0' ? "" : StrCat(" (commit ", kCommit, ")");
  app->set_version_flag("--version", StrCat(app->get_name(), " (hlokit) ", kVersion, commit),
                        "print the version and exit");
  app->set_help_flag("-h,--help", "print this help and exit");
  const auto format = std::make_shared<HelpFormat>();
  format->label("Positionals", "Arguments");
  app->formatter(format);
  for (CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; })) {
    sub->formatter(format);
    sub->set_help_flag("-h,--help", "print this help and exit");
    sub->group("Commands");
  }
  CheckNumbers(*app);
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    if (std::string_view(argv[i]) == "-h") format->set_brief();
  }
  if (argc > 1 && std::string_view(argv[1]) == "--complete") {
    for (ValueKind& kind : CommonValueKinds()) kinds.push_back(std::move(kind));
    const std::string text = CompletionsToString(*app, std::vector<std::string>(argv + 2, argv + argc), kinds);
    return PrintText(text);
  }
  // CLI11 expects the arguments in reverse order.
  std::vector<std::string> arguments;
  bool flags_end = false;
  for (int i = 1; i < argc; ++i) {
    flags_end = flags_end || std::string_view(argv[i]) == "--";
    std::string argument = flags_end ? std::string(argv[i]) : NormalizeFlag(argv[i]);
    // CLI11 would take the next argument as the value of `--name=`; the value is empty.
    if (!flags_end && argument.size() > 3 && argument.compare(0, 2, "--") == 0 &&
        argument.find('=') + 1 == argument.size()) {
      argument.pop_back();
      const CLI::Option* option = app->get_option_no_throw(argument);
      for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
        if (option == nullptr) option = command->get_option_no_throw(argument);
      }
      if (option != nullptr && option->get_items_expected_max() == 0) {
        return UsageError(app->get_name(), StrCat(EmptyValueError(*option), kMoreInformation));
      }
      arguments.push_back(option != nullptr ? argument : argument + "=");
      if (option != nullptr) arguments.emplace_back();
      continue;
    }
    arguments.push_back(std::move(argument));
  }
  if (const std::string error = FindUsageError(*app, arguments); !error.empty()) {
    return UsageError(app->get_name(), StrCat(error, kMoreInformation));
  }
  std::reverse(arguments.begin(), arguments.end());
  try {
    app->parse(std::move(arguments));
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string what = e.what();
    constexpr std::string_view kTooMany = ": At Most 1 required but received ";
    const size_t at = what.find(kTooMany);
    return UsageError(
        app->get_name(),
        StrCat(at == std::string::npos ? what : StrCat("duplicate flag `", what.substr(0, at), "`"), kMoreInformation));
  } catch (const CLI::Success& e) {
    std::ostringstream text;
    app->exit(e, text, text);  // the help or the version
    return PrintText(text.str());
  } catch (const CLI::ParseError& e) {
    return UsageError(app->get_name(), StrCat(Reworded(e.what()), kMoreInformation));
  } catch (const std::invalid_argument&) {
    // Invalid value of a flag: CLI11 does not catch the error of the conversion.
    return UsageError(app->get_name(), StrCat("expected true or false as the value of a flag", kMoreInformation));
  }
  if (const std::string error = FindEmptyValue(*app); !error.empty()) {
    return UsageError(app->get_name(), StrCat(error, kMoreInformation));
  }
  return std::nullopt;
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

int UsageError(std::string_view tool, std::string_view message) {
  PrintError(StrCat(tool, ": error: ", Printable(message), "\n"));
  return kUsage;
}

int PrintText(std::string_view text) {
  absl::StatusOr<std::unique_ptr<OutputFile>> out = OutputFile::Open("-");
  absl::Status status = out.status();
  if (status.ok()) {
    (*out)->writer() << text;
    status = (*out)->Commit();
  }
  if (status.ok()) return kOk;
  const absl::string_view message = status.message();
  PrintError(StrCat(ToolName(), ": error: ", Printable({message.data(), message.size()}), "\n"));
  return kRejected;
}

void AddFillElidedFlag(CLI::App* app, std::optional<FillKind>* kind, bool xla, std::string_view purpose) {
  std::map<std::string, FillKind> kinds = {
      {"zeros", FillKind::kZeros}, {"iota", FillKind::kIota}, {"random", FillKind::kRandom}};
  if (xla) kinds.emplace("xla", FillKind::kXla);
  std::vector<std::string> names;
  for (const auto& named : kinds) names.push_back(named.first);
  app->add_option_function<std::string>(
         "--fill-elided", [kind, kinds](const std::string& name) { *kind = kinds.at(name); },
         StrCat(purpose, ": zeros, iota",
                xla ? ", random, or xla, the bits that XLA's own parser puts there" : " or random"))
      ->check(CLI::IsMember(names));
}

void InputOptions::AddMaxInputBytesFlag(CLI::App* app) {
  AddNumber(app, "--max-input-bytes", &max_bytes, "limit on the bytes of an input file", 0, kMaxInputBytes)
      ->capture_default_str()
      ->group("Input and output");
}

void InputOptions::AddFlags(CLI::App* app) {
  const std::string group = "Input and output";
  app->add_flag("--split-input-file", split_input_file,
                "split the input at lines `// -----` and handle each part separately")
      ->group(group);
  AddMaxInputBytesFlag(app);
  app->add_flag("--allow-unknown,--allow-unregistered", parse.allow_unknown,
                "accept unknown opcodes and attributes with a warning, and preserve them")
      ->group(group);
  app->add_option("--entry", parse.entry,
                  "function of a StableHLO program that becomes the entry computation, by default main")
      ->type_name("NAME")
      ->group(group);
  app->add_option(
         "--shape", parse.sizes,
         "sizes that a StableHLO program leaves open: of a dimension variable, b=8, or of an argument, arg0=8x4")
      ->type_name("NAME=SIZE,...")
      ->allow_extra_args(false)  // the next argument is a file
      ->group(group);
  app->add_option_function<std::string>(
         "--diagnostics", [this](const std::string& format) { json_diagnostics = format == "json"; },
         "format of errors and warnings on standard error: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text")
      ->group(group);
}

std::string InputPart::label() const { return count > 1 ? StrCat(source->name(), "#", index + 1) : source->name(); }

std::vector<InputPart> DiagnosticReporter::Read(const std::string& path) {
  std::vector<InputPart> parts;
  static bool read_standard_input = false;
  if (path == "-" && std::exchange(read_standard_input, true)) {
    ShowError("", "standard input can be read only once", kUsage);
    return parts;
  }
  absl::StatusOr<std::shared_ptr<const SourceBuffer>> source =
      ReadFile(path, options_.max_bytes, FileContents::kModule);
  if (!source.ok()) {
    const bool large = absl::IsResourceExhausted(source.status());
    std::error_code ignored;
    const bool directory = std::filesystem::is_directory(path, ignored);
    ShowError("",
              StrCat(std::string(source.status().message()), large ? " (--max-input-bytes)" : "",
                     directory ? "; hlo-inspect dump-dir and hlo-inspect grep read the files in one" : ""),
              large || absl::IsOutOfRange(source.status()) ? kRejected : kUsage);
    return parts;
  }
  if (!options_.split_input_file) {
    parts.push_back({*source, (*source)->text()});
    return parts;
  }
  const SplitInput split = SplitInputFile(**source);
  for (size_t i = 0; i < split.chunks.size(); ++i) {
    parts.push_back({split.source, split.chunks[i], i, split.chunks.size()});
  }
  return parts;
}

std::unique_ptr<Module> DiagnosticReporter::ParseWithSizes(const InputPart& part, std::shared_ptr<Context> context,
                                                           const std::vector<std::string>& sizes) {
  DiagnosticSink sink;
  ParseOptions parse = options_.parse;
  parse.sizes.insert(parse.sizes.end(), sizes.begin(), sizes.end());
  return Finish(part, &sink, ParseModulePart(part.source, part.text, parse, &sink, std::move(context)));
}

std::unique_ptr<Module> DiagnosticReporter::ParseWithParts(const InputPart& part,
                                                           std::unique_ptr<const ForeignParts>* parts) {
  DiagnosticSink sink;
  return Finish(part, &sink, ParseModuleAndParts(part.source, part.text, options_.parse, &sink, parts));
}

std::unique_ptr<Module> DiagnosticReporter::Finish(const InputPart& part, DiagnosticSink* sink,
                                                   std::unique_ptr<Module> module) {
  if (module != nullptr && options_.warn_of_elided) WarnOfElidedConstants(*module, sink);
  DumpFile file;
  const std::string name = std::filesystem::path(part.source->name()).filename().string();
  if (module == nullptr && ParseDumpName(name, &file) && IsKnownSideFile(file)) {
    ShowError(part.label(), StrCat("the ", file.description, " of XLA's dump, not a module"), kRejected);
    return module;
  }
  Show(*sink, *part.source);
  if (module == nullptr) Fail(kRejected);
  return module;
}

bool DiagnosticReporter::Verify(const InputPart& part, const Module& module, const VerifierOptions& verifier) {
  DiagnosticSink sink;
  VerifyModule(module, verifier, &sink);
  if (!sink.diagnostics().empty()) Show(WithSourceNames(sink, module, *part.source), *part.source);
  return !sink.has_errors();
}

void DiagnosticReporter::Show(const DiagnosticSink& sink, const SourceBuffer& source) {
  if (sink.has_errors()) Fail(kRejected);
  if (sink.diagnostics().empty()) return;
  if (!options_.json_diagnostics) {
    PrintError(RenderText(sink, source));
    return;
  }
  // "[\n  {...},\n  {...}\n]\n" without its brackets.
  const std::string array = RenderJson(sink, source);
  const size_t begin = array.find('{');
  const size_t end = array.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return;
  AppendJson(std::string_view(array).substr(begin, end + 1 - begin));
}

void DiagnosticReporter::ShowError(std::string_view where, std::string_view message, ExitCode code) {
  Fail(code);
  ShowMessage("error", where, message);
}

void DiagnosticReporter::ShowWarning(std::string_view where, std::string_view message) {
  ShowMessage("warning", where, message);
}

void DiagnosticReporter::ShowMessage(std::string_view severity, std::string_view where, std::string_view message) {
  if (!options_.json_diagnostics) {
    const std::string text = StrCat(where, where.empty() ? "" : ": ", message);
    PrintError(StrCat(ToolName(), ": ", severity, ": ", Printable(text), "\n"));
    return;
  }
  std::string object;
  TextWriter out(&object);
  JsonWriter json(&out, JsonLayout::kSpaced);
  json.BeginObject().Member("file", where).Member("severity", severity).Member("kind", "tool");
  json.Member("message", message).Member("hint", "").EndObject();
  out.Flush();
  AppendJson(object);
}

void DiagnosticReporter::ShowOutputError(const absl::Status& status, ExitCode code) {
  const absl::string_view message = status.message();
  ShowError("", std::string_view(message.data(), message.size()), code);
}

void DiagnosticReporter::AppendJson(std::string_view objects) {
  StrAppend(&json_, json_.empty() ? "" : ",\n", "  ", objects);
}

KeptMessages::KeptMessages(std::string* text) { kept_messages = text; }
KeptMessages::~KeptMessages() { kept_messages = nullptr; }

void DiagnosticReporter::Fail(ExitCode code) { exit_code_ = std::max(exit_code_, static_cast<int>(code)); }

void DiagnosticReporter::Finish() {
  if (std::exchange(finished_, true) || !options_.json_diagnostics) return;
  PrintError(json_.empty() ? std::string("[]\n") : StrCat("[\n", json_, "\n]\n"));
}

}  // namespace hlokit::cli
