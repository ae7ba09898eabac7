// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/graph.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "passes/query/extract.h"
#include "passes/query/flow.h"
#include "tools/cli/module_file.h"
#include "tools/hlo_inspect/query.h"

namespace hlokit::cli {
namespace {

// ---- users, operands ----

struct ReachFlags : InspectFlags {
  std::string name;
  int64_t depth = 1;
  bool across_calls = true;
};

int RunReach(const ReachFlags& flags, query::FlowDirection direction) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const Instruction start = FindNamed(module, part, flags.name, &diagnostics);
      if (!start.valid()) return;
      const TextLines lines(part.source->text());
      const int64_t depth = flags.depth == 0 ? -1 : flags.depth;
      const std::vector<query::FlowStep> steps =
          query::ValueFlow(module).Reach({&start, 1}, direction, depth, flags.across_calls);
      if (flags.json) {
        BeginModule(part, module, &json);
        json.Member("of", start.name()).Key("instructions").BeginArray();
        for (const query::FlowStep& step : steps) {
          json.BeginObject().Member("distance", step.distance);
          WriteMembers(lines, step.instruction, &json);
          json.EndObject();
        }
        json.EndArray().EndObject();
        return;
      }
      for (const query::FlowStep& step : steps) {
        out << std::string(static_cast<size_t>(std::min<int64_t>(step.distance, 40)) * 2, ' ')
            << LineOf(part, lines, step.instruction) << "\n";
      }
    });
    if (flags.json) json.EndArray();
  });
}

InspectCommand AddReach(CLI::App* app, const std::string& word, const std::string& what,
                        query::FlowDirection direction) {
  auto flags = std::make_shared<ReachFlags>();
  CLI::App* command = app->add_subcommand(word, StrCat("print the instructions ", what));
  command->add_option("NAME", flags->name, "the name of an instruction, NAME or COMPUTATION/NAME")
      ->type_name("NAME")
      ->required();
  flags->AddTo(command);
  AddNumber(command, "--depth", &flags->depth, "how far to follow values; 0: to the end", 0)->default_str("1");
  command->add_flag("--across-calls,!--no-across-calls", flags->across_calls,
                    "follow values into computations that are called, and back (default on)");
  command->footer(
      StrCat("Notes:\n"
             "  The nearest come first, indented by their distance, each once.\n\n"
             "Examples:\n"
             "  hlo-inspect ",
             word, " dot.4 module.hlo\n  hlo-inspect ", word, " --depth=3 fused_computation/add.7 module.hlo\n",
             "  hlo-inspect ", word, " --depth=0 --json dot.4 module.hlo"));
  return {command, [flags, direction] { return RunReach(*flags, direction); }};
}

// ---- path ----

struct PathFlags : InspectFlags {
  std::string from, to;
  bool all = false;
};

int RunPath(const PathFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      const Instruction from = FindNamed(module, part, flags.from, &diagnostics);
      const Instruction to = from.valid() ? FindNamed(module, part, flags.to, &diagnostics) : from;
      if (!to.valid()) return;
      const TextLines lines(part.source->text());
      const query::ValueFlow flow(module);
      const std::vector<Instruction> path = flags.all ? flow.AllOnPaths(from, to) : flow.Path(from, to);
      if (path.empty()) {
        const bool reverse = !flow.Path(to, from).empty();
        diagnostics.ShowError(part.label(),
                              StrCat("no value flows from `", from.name(), "` to `", to.name(), "`",
                                     reverse ? ", only the other way" : ""),
                              kRejected);
        return;
      }
      if (flags.json) {
        BeginModule(part, module, &json);
        json.Member("from", from.name()).Member("to", to.name()).Member("all", flags.all);
        json.Key("instructions").BeginArray();
        for (const Instruction i : path) {
          json.BeginObject();
          WriteMembers(lines, i, &json);
          json.EndObject();
        }
        json.EndArray().EndObject();
        return;
      }
      for (const Instruction i : path) out << LineOf(part, lines, i) << "\n";
    });
    if (flags.json) json.EndArray();
  });
}

InspectCommand AddPath(CLI::App* app) {
  auto flags = std::make_shared<PathFlags>();
  CLI::App* command = app->add_subcommand("path", "print how the value of one instruction gets to another");
  for (const auto& [word, name] : {std::pair<const char*, std::string*>{"FROM", &flags->from}, {"TO", &flags->to}}) {
    command->add_option(word, *name, "the name of an instruction, NAME or COMPUTATION/NAME")
        ->type_name("NAME")
        ->required();
  }
  flags->AddTo(command);
  command->add_flag("--all", flags->all,
                    "all instructions on paths, in the order of the text, instead of a shortest one");
  command->footer(
      "Notes:\n"
      "  Values flow from operands to users, into computations that are called, and\n"
      "  from their roots to the calls.\n\n"
      "Examples:\n"
      "  hlo-inspect path p0 loss module.hlo\n"
      "  hlo-inspect path --all dot.4 all-reduce.1 module.hlo");
  return {command, [flags] { return RunPath(*flags); }};
}

// ---- extract ----

struct ExtractFlags : InspectFlags {
  std::string names;
  std::vector<std::string> inputs;
  int64_t depth = -1;
};

int RunExtract(const ExtractFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  if (flags.json) return UsageError("hlo-inspect", "extract: the output is a module; -o FILE.json writes it as JSON");
  const std::optional<std::string_view> format = FormatOfPath(flags.output);
  if (!format) return UnknownSuffixError("hlo-inspect", flags.output);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    bool first = true;
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& module) {
      query::ExtractOptions options;
      options.depth = flags.depth;
      std::vector<Instruction> results;
      const std::vector<std::string> result_names = absl::StrSplit(flags.names, ',');
      for (const auto& [names, instructions] :
           {std::pair{&result_names, &results}, std::pair{&flags.inputs, &options.inputs}}) {
        for (const std::string& name : *names) {
          const Instruction i = FindNamed(module, part, name, &diagnostics);
          if (!i.valid()) return;
          instructions->push_back(i);
        }
      }
      const absl::StatusOr<Module> extracted = query::Extract(module, results, options);
      DiagnosticSink sink;
      if (extracted.ok()) VerifyModule(*extracted, {}, &sink);
      if (!extracted.ok() || sink.has_errors()) {
        diagnostics.ShowError(part.label(),
                              extracted.ok()
                                  ? StrCat("the part is not a module of its own: ", sink.diagnostics()[0].message,
                                           "; --inputs and --depth cut it "
                                           "off elsewhere")
                                  : std::string(extracted.status().message()),
                              kRejected);
        return;
      }
      if (!std::exchange(first, false)) out << "// -----\n";
      const std::optional<std::string> text = ModuleInFormat(*extracted, *format, *part.source, &diagnostics);
      if (text) out << *text;
    });
  });
}

InspectCommand AddExtract(CLI::App* app) {
  auto flags = std::make_shared<ExtractFlags>();
  CLI::App* command = app->add_subcommand("extract", "write a part of a module as a module that can be run");
  command->add_option("NAMES", flags->names, "the instructions whose values are the results, separated by commas")
      ->type_name("NAMES")
      ->required();
  flags->AddTo(command);
  command->add_option("--inputs", flags->inputs, "instructions that become parameters, separated by commas")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddNumber(command, "--depth", &flags->depth,
            "operands farther than this from the results become parameters; without it, none", 0);
  command->footer(
      "Notes:\n"
      "  The names of instructions stay. Constants are taken with what reads them.\n\n"
      "Examples:\n"
      "  hlo-inspect extract dot.4 -o dot.hlo module.hlo\n"
      "  hlo-inspect extract softmax.9 --depth=5 module.hlo | hlo-run --fill=random\n"
      "  hlo-inspect extract loss,grad.3 --inputs=logits -o part.hlo module.hlo");
  return {command, [flags] { return RunExtract(*flags); }};
}

}  // namespace

std::vector<InspectCommand> AddGraphCommands(CLI::App* app) {
  return {AddReach(app, "users", "that read the value of an instruction", query::FlowDirection::kUsers),
          AddReach(app, "operands", "whose values an instruction reads", query::FlowDirection::kOperands), AddPath(app),
          AddExtract(app)};
}

}  // namespace hlokit::cli
