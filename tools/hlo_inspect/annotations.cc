// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/annotations.h"

#include <algorithm>
#include <memory>
#include <string>

#include "interp/exact/instruction_evaluator.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "passes/annotations/annotation_report.h"
#include "passes/annotations/coverage.h"
#include "passes/core/pipeline.h"
#include "tools/cli/text/regex.h"
#include "tools/hlo_inspect/whole_program.h"

namespace hlokit::cli {
namespace {

struct AnnotationsFlags : InspectFlags {
  std::string passes;
  int depth = 3;
  size_t list = 10;
};

std::string Right(int64_t value, size_t width) {
  const std::string text = StrCat(value);
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

void WriteText(const AnnotationsFlags& flags, const Module& module, const AnnotationReport& report, TextWriter* out) {
  *out << "module " << module.name() << "\n";
  WriteWholeProgramNote(module, out);
  const bool both = !flags.passes.empty();
  *out << "  annotations         " << report.before.annotations;
  if (both) *out << " before, " << report.after.annotations << " after";
  *out << "\n  without metadata    " << report.before.without << " of " << report.before.instructions
       << " instructions";
  if (both) *out << " before, " << report.after.without << " of " << report.after.instructions << " after";
  *out << "\n\n";
  *out << (both ? "  instructions before, after         flops before, after                   bytes before, after\n"
                : "  instructions         flops              bytes\n");
  for (const ScopeChange& scope : report.scopes) {
    if (scope.depth > flags.depth) continue;
    const ScopeChange::Numbers &b = scope.before, &a = scope.after;
    *out << Right(b.instructions, 14);
    if (both) *out << Right(a.instructions, 9);
    *out << Right(b.flops, 18);
    if (both) *out << Right(a.flops, 18);
    *out << Right(b.bytes, 16);
    if (both) *out << Right(a.bytes, 16);
    *out << "  " << std::string(static_cast<size_t>(2 * scope.depth), ' ')
         << (scope.depth == 0 ? std::string("(all)") : scope.name) << "\n";
  }
  if (!report.missing.empty()) *out << "\nwithout metadata" << (both ? " after" : "") << "\n";
  for (const auto& [why, instructions] : report.missing) {
    *out << Right(static_cast<int64_t>(instructions.size()), 8) << "  " << ToString(why) << "\n";
    if (why == MissingMetadataReason::kNothingAnnotated) continue;
    for (size_t k = 0; k < std::min(instructions.size(), flags.list); ++k) {
      const Instruction i = module.instruction(instructions[k]);
      *out << "            " << i.parent().name() << "/" << i.name() << " " << i.opcode_text() << "\n";
    }
    if (instructions.size() > flags.list)
      *out << "            ... (" << static_cast<int64_t>(instructions.size() - flags.list) << " more)\n";
  }
  if (!both) return;
  *out << "\ndropped by pass\n";
  for (const MetadataLossTracker::Row& row : report.losses) {
    *out << Right(static_cast<int64_t>(row.lost.size()), 8) << "  " << row.pass << "\n";
    for (MetadataId id : row.lost) *out << "            " << SourceName(module, id) << "\n";
  }
}

void WriteJson(const AnnotationsFlags& flags, const Module& module, const AnnotationReport& report, JsonWriter* json) {
  json->BeginObject().Member("module", module.name());
  WriteWholeProgramMember(module, json);
  const auto counts = [&](std::string_view key, const AnnotationCounts& c) {
    json->Key(key).BeginObject().Member("annotations", c.annotations);
    json->Member("instructions", c.instructions).Member("without_metadata", c.without).EndObject();
  };
  counts("before", report.before);
  counts("after", report.after);
  json->Key("scopes").BeginArray();
  for (const ScopeChange& scope : report.scopes) {
    if (scope.depth > flags.depth) continue;
    json->BeginObject().Member("depth", scope.depth).Member("name", scope.name);
    const auto numbers = [&](std::string_view key, const ScopeChange::Numbers& n) {
      json->Key(key).BeginObject().Member("instructions", n.instructions);
      json->Member("flops", n.flops).Member("bytes", n.bytes).EndObject();
    };
    numbers("before", scope.before);
    numbers("after", scope.after);
    json->EndObject();
  }
  json->EndArray().Key("unattributed").BeginArray();
  for (const auto& [why, instructions] : report.missing) {
    json->BeginObject().Member("reason", ToString(why)).Member("count", instructions.size());
    json->Key("instructions").BeginArray();
    for (InstructionId id : instructions) {
      if (why != MissingMetadataReason::kNothingAnnotated) json->Value(module.instruction(id).name());
    }
    json->EndArray().EndObject();
  }
  json->EndArray().Key("dropped_metadata").BeginArray();
  for (const MetadataLossTracker::Row& row : report.losses) {
    json->BeginObject().Member("pass", row.pass).Key("op_names").BeginArray();
    for (MetadataId id : row.lost) json->Value(SourceName(module, id));
    json->EndArray().EndObject();
  }
  json->EndArray().EndObject();
}

int RunAnnotations(const AnnotationsFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(flags.passes);
  if (!pipeline.ok()) return UsageError("hlo-inspect", std::string(pipeline.status().message()));
  PipelineOptions options;
  options.context = interp::EvaluatingContext();
  options.context.compile_regex = CompileRegex;
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    bool first = true;
    for (const std::string& path : flags.files) {
      for (const InputPart& part : diagnostics.Read(path)) {
        const std::unique_ptr<Module> module = diagnostics.Parse(part);
        // Passes require a valid module.
        const bool verify = flags.verify || !pipeline->empty();
        if (module == nullptr || (verify && !diagnostics.Verify(part, *module))) continue;
        const absl::StatusOr<AnnotationReport> report = ReportAnnotations(&*pipeline, options, module.get());
        if (!report.ok()) {
          diagnostics.ShowError(part.label(), std::string(report.status().message()), kRejected);
          continue;
        }
        if (flags.json) {
          WriteJson(flags, *module, *report, &json);
        } else {
          if (!first) out << "\n";
          WriteText(flags, *module, *report, &out);
        }
        first = false;
      }
    }
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddAnnotationsCommand(CLI::App* app) {
  auto flags = std::make_shared<AnnotationsFlags>();
  CLI::App* command = app->add_subcommand(
      "annotations",
      "print the scopes that instructions are attributed to, with instructions, operations and bytes before and after "
      "passes, the instructions without metadata with the reason, and the metadata that each pass dropped");
  command->alias("metadata");
  flags->AddTo(command);
  command->add_option("--passes", flags->passes, "passes to run, as in hlo-opt --passes")->type_name("PIPELINE");
  AddNumber(command, "--depth", &flags->depth, "attribute deeper scopes to their ancestors of this depth", 0)
      ->capture_default_str();
  AddNumber(command, "--top,--list", &flags->list,
            "limit on the instructions without metadata listed for each reason; the JSON has all", 0)
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  hlo-inspect annotations module.hlo                     where the work is, by scope\n"
      "  hlo-inspect annotations --passes=simplify module.hlo   the same before and after, and the dropped metadata\n"
      "  hlo-inspect annotations --passes=default --list=1000 module.hlo\n"
      "                                                         all instructions without metadata, with the reason\n"
      "  hlo-inspect annotations --passes=simplify --json module.hlo | jq '.[0].dropped_metadata'");
  return {command, [flags] { return RunAnnotations(*flags); }};
}

}  // namespace hlokit::cli
