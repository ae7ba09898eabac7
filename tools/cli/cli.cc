// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <new>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "tools/cli/completion.h"
#include "tools/cli/help_format.h"
#include "tools/cli/json_writer.h"
#include "tools/cli/version.h"

namespace hlokit::cli {
namespace {

void PrintError(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// The part of an argument that names a flag, `_` turned to `-`.
std::string NormalizeFlag(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
  return argument;
}

// What is wrong with the flags, where CLI11 would say it less well or not at all; "" if it may have them.
std::string MistakeIn(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = nullptr;  // the subcommand that is named
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (std::find(arguments.begin(), arguments.end(), each->get_name()) != arguments.end()) command = each;
  }
  for (size_t k = 0; k < arguments.size() && arguments[k] != "--"; ++k) {
    const std::string& argument = arguments[k];
    if (!argument.starts_with("--")) continue;
    const size_t end = argument.find('=');
    const std::string flag = argument.substr(0, end);
    const CLI::Option* option = app.get_option_no_throw(flag);
    if (option == nullptr && command != nullptr) option = command->get_option_no_throw(flag);
    if (option == nullptr) {
      std::vector<std::string> names;
      const auto add = [&names](const CLI::App& from) {
        for (const CLI::Option* known : from.get_options()) {
          for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
        }
      };
      add(app);
      if (command != nullptr) add(*command);
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      const std::string_view near = Nearest(flag, candidates);
      const std::string hint = near.empty() ? "" : StrCat("; did you mean ", near, "?");
      return StrCat("there is no flag ", flag, hint);
    }
    const bool needs_value = option->get_items_expected_min() > 0 && option->get_type_size() > 0;
    if (end != std::string::npos || !needs_value) continue;
    if (k + 1 == arguments.size() || arguments[k + 1].starts_with("--")) return StrCat(flag, " takes a value");
    ++k;
  }
  return "";
}

}  // namespace

int Main(int (*run)(int argc, char** argv), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    PrintError("internal error: out of memory\n");
  } catch (const std::exception& e) {
    PrintError(StrCat("internal error: ", std::string_view(e.what()), "\n"));
  }
  return kInternal;
}

std::optional<int> ParseFlags(CLI::App* app, int argc, char** argv, std::vector<ValueKind> kinds) {
  const std::string commit = *kCommit == '\0' ? "" : StrCat(" (commit ", kCommit, ")");
  app->set_version_flag("--version", StrCat(app->get_name(), " (hlokit) ", kVersion, commit),
                        "Print the version and exit");
  const auto format = std::make_shared<HelpFormat>();
  format->label("Positionals", "Arguments");
  app->formatter(format);
  for (CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; })) {
    sub->formatter(format);
    sub->group("Commands");
  }
  if (argc > 1 && std::string_view(argv[1]) == "--complete") {
    for (ValueKind& kind : CommonValueKinds()) kinds.push_back(std::move(kind));
    const std::string text = CompletionText(*app, std::vector<std::string>(argv + 2, argv + argc), kinds);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return kOk;
  }
  // CLI11 takes the arguments last first.
  std::vector<std::string> arguments;
  bool flags_end = false;
  for (int i = 1; i < argc; ++i) {
    flags_end = flags_end || std::string_view(argv[i]) == "--";
    std::string argument = flags_end ? std::string(argv[i]) : NormalizeFlag(argv[i]);
    // CLI11 would take what stands after `--name=` for its value; nothing is one too.
    if (!flags_end && argument.size() > 3 && argument.compare(0, 2, "--") == 0 &&
        argument.find('=') + 1 == argument.size()) {
      argument.pop_back();
      const CLI::Option* option = app->get_option_no_throw(argument);
      const bool empty = option != nullptr && option->get_type_size() > 0 && option->get_items_expected_max() > 0;
      arguments.push_back(empty ? argument : argument + "=");
      if (empty) arguments.emplace_back();
      continue;
    }
    arguments.push_back(std::move(argument));
  }
  if (const std::string mistake = MistakeIn(*app, arguments); !mistake.empty()) {
    PrintError(StrCat(mistake, "\nRun with --help for more information.\n"));
    return kUsage;
  }
  std::reverse(arguments.begin(), arguments.end());
  try {
    app->parse(std::move(arguments));
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string what = e.what();
    constexpr std::string_view kTooMany = ": At Most 1 required but received ";
    const size_t at = what.find(kTooMany);
    if (at == std::string::npos) return app->exit(e) == 0 ? kOk : kUsage;
    PrintError(StrCat(what.substr(0, at), " is given ", what.substr(at + kTooMany.size()),
                      " times\nRun with --help for more information.\n"));
    return kUsage;
  } catch (const CLI::ParseError& e) {
    // Prints the help, or the mistake and a pointer to the help.
    return app->exit(e) == 0 ? kOk : kUsage;
  }
  return std::nullopt;
}

int UsageError(std::string_view tool, std::string_view message) {
  PrintError(StrCat(tool, ": ", message, "\n"));
  return kUsage;
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

void InputOptions::AddFlags(CLI::App* app) {
  app->add_flag("--split-input-file", split_input_file,
                "Lines that consist of '// -----' separate modules, each handled on its own");
  app->add_flag("--allow-unknown", parse.allow_unknown,
                "Keep opcodes and attributes that are not known as they stand, with a warning");
  app->add_option_function<std::string>(
         "--diagnostics", [this](const std::string& format) { json_diagnostics = format == "json"; },
         "How errors and warnings are shown on standard error: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
}

std::string InputPart::label() const { return count > 1 ? StrCat(source->name(), "#", index + 1) : source->name(); }

std::vector<InputPart> Diagnostics::Read(const std::string& path) {
  std::vector<InputPart> parts;
  absl::StatusOr<std::shared_ptr<const SourceBuffer>> source = SourceBuffer::FromFile(path);
  if (!source.ok()) {
    const absl::string_view message = source.status().message();
    ShowError("", std::string_view(message.data(), message.size()), kUsage);
    return parts;
  }
  if (!options_.split_input_file) {
    parts.push_back({*source, (*source)->text()});
    return parts;
  }
  const SplitSource split = SplitGroups(**source);
  for (size_t i = 0; i < split.groups.size(); ++i) {
    parts.push_back({split.source, split.groups[i], i, split.groups.size()});
  }
  return parts;
}

std::unique_ptr<Module> Diagnostics::Parse(const InputPart& part, std::shared_ptr<Context> context) {
  DiagnosticSink sink;
  std::unique_ptr<Module> module = ParseModulePart(part.source, part.text, options_.parse, &sink, std::move(context));
  Show(sink, *part.source);
  if (module == nullptr) Fail(kRejected);
  return module;
}

void Diagnostics::Show(const DiagnosticSink& sink, const SourceBuffer& source) {
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

void Diagnostics::ShowError(std::string_view where, std::string_view message, ExitCode code) {
  Fail(code);
  if (!options_.json_diagnostics) {
    PrintError(StrCat(where, where.empty() ? "" : ": ", "error: ", message, "\n"));
    return;
  }
  AppendJson(StrCat("{\"file\": ", JsonQuoted(where), ", \"severity\": \"error\", \"kind\": \"tool\", \"message\": ",
                    JsonQuoted(message), ", \"hint\": \"\"}"));
}

void Diagnostics::AppendJson(std::string_view objects) { StrAppend(&json_, json_.empty() ? "" : ",\n", "  ", objects); }

void Diagnostics::Fail(ExitCode code) { exit_code_ = std::max(exit_code_, static_cast<int>(code)); }

void Diagnostics::Finish() {
  if (std::exchange(finished_, true) || !options_.json_diagnostics) return;
  PrintError(json_.empty() ? std::string("[]\n") : StrCat("[\n", json_, "\n]\n"));
}

}  // namespace hlokit::cli
