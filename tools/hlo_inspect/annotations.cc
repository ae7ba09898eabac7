// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/annotations.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "interp/exact/instruction_evaluator.h"
#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "passes/annotations/coverage.h"
#include "passes/annotations/text.h"
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

// A scope before and after the passes.
struct Scope {
  std::string name;
  int depth = 0;
  const ScopeNode* before = nullptr;  // null: absent
  const ScopeNode* after = nullptr;
};

// Merges two trees, both sorted depth first, by full path.
std::vector<Scope> Merged(const std::vector<ScopeNode>& before, const std::vector<ScopeNode>& after) {
  std::map<std::string, Scope> by_path;
  for (int side = 0; side < 2; ++side) {
    std::vector<std::string> path;
    for (const ScopeNode& node : side == 0 ? before : after) {
      path.resize(static_cast<size_t>(node.depth));
      path.push_back(node.name);
      // A character below all others sorts children after their parents and before the parents' next siblings.
      std::string key;
      for (const std::string& part : path) StrAppend(&key, part, '\x01');
      Scope& scope = by_path[key];
      scope.name = node.name;
      scope.depth = node.depth;
      (side == 0 ? scope.before : scope.after) = &node;
    }
  }
  std::vector<Scope> merged;
  for (const auto& [key, scope] : by_path) merged.push_back(scope);
  return merged;
}

struct Numbers {
  int64_t instructions = 0, flops = 0, bytes = 0;
  explicit Numbers(const ScopeNode* node) {
    if (node == nullptr) return;
    instructions = node->instructions;
    flops = node->cost.flops;
    bytes = node->cost.bytes();
  }
};

std::string Right(int64_t value, size_t width) {
  const std::string text = StrCat(value);
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

class Report {
 public:
  Report(const AnnotationsFlags& flags, Module* module, Pipeline* pipeline) : flags_(flags), module_(*module) {
    ReadMetadataSources(module_);
    counts_before_ = CountAnnotations(module_);
    before_ = ScopeTree(module_);
    PipelineOptions options;
    options.context = interp::EvaluatingContext();
    options.context.compile_regex = CompileRegex;
    PassInstrumentation* instruments[] = {&loss_};
    const absl::StatusOr<Pipeline::Result> result = pipeline->Run(module_, options, instruments);
    if (!result.ok()) status_ = result.status();
    counts_after_ = CountAnnotations(module_);
    after_ = ScopeTree(module_);
    for (const MissingMetadata& i : InstructionsMissingMetadata(module_)) unannotated_[i.reason].push_back(i.id);
  }

  const absl::Status& status() const { return status_; }

  void Text(TextWriter* out) const {
    *out << "module " << module_.name() << "\n";
    WriteWholeProgramNote(module_, out);
    const bool both = !flags_.passes.empty();
    *out << "  annotations         " << counts_before_.annotations;
    if (both) *out << " before, " << counts_after_.annotations << " after";
    *out << "\n  without metadata    " << counts_before_.without << " of " << counts_before_.instructions
         << " instructions";
    if (both) *out << " before, " << counts_after_.without << " of " << counts_after_.instructions << " after";
    *out << "\n\n";
    *out << (both ? "  instructions before, after         flops before, after                   bytes before, after\n"
                  : "  instructions         flops              bytes\n");
    for (const Scope& scope : Merged(before_, after_)) {
      if (scope.depth > flags_.depth) continue;
      const Numbers b(scope.before), a(scope.after);
      *out << Right(b.instructions, 14);
      if (both) *out << Right(a.instructions, 9);
      *out << Right(b.flops, 18);
      if (both) *out << Right(a.flops, 18);
      *out << Right(b.bytes, 16);
      if (both) *out << Right(a.bytes, 16);
      *out << "  " << std::string(static_cast<size_t>(2 * scope.depth), ' ')
           << (scope.depth == 0 ? std::string("(all)") : scope.name) << "\n";
    }
    if (!unannotated_.empty()) *out << "\nwithout metadata" << (both ? " after" : "") << "\n";
    for (const auto& [why, instructions] : unannotated_) {
      *out << Right(static_cast<int64_t>(instructions.size()), 8) << "  " << ToString(why) << "\n";
      if (why == MissingMetadataReason::kNothingAnnotated) continue;
      for (size_t k = 0; k < std::min(instructions.size(), flags_.list); ++k) {
        const Instruction i = module_.instruction(instructions[k]);
        *out << "            " << i.parent().name() << "/" << i.name() << " " << i.opcode_text() << "\n";
      }
      if (instructions.size() > flags_.list)
        *out << "            ... (" << static_cast<int64_t>(instructions.size() - flags_.list) << " more)\n";
    }
    if (!both) return;
    *out << "\ndropped by pass\n";
    for (const MetadataLossTracker::Row& row : loss_.rows()) {
      *out << Right(static_cast<int64_t>(row.lost.size()), 8) << "  " << row.pass << "\n";
      for (MetadataId id : row.lost) *out << "            " << SourceName(module_, id) << "\n";
    }
  }

  void Json(JsonWriter* json) const {
    json->BeginObject().Member("module", module_.name());
    WriteWholeProgramMember(module_, json);
    const auto counts = [&](std::string_view key, const AnnotationCounts& c) {
      json->Key(key).BeginObject().Member("annotations", c.annotations);
      json->Member("instructions", c.instructions).Member("without_metadata", c.without).EndObject();
    };
    counts("before", counts_before_);
    counts("after", counts_after_);
    json->Key("scopes").BeginArray();
    for (const Scope& scope : Merged(before_, after_)) {
      if (scope.depth > flags_.depth) continue;
      json->BeginObject().Member("depth", scope.depth).Member("name", scope.name);
      const auto numbers = [&](std::string_view key, const Numbers& n) {
        json->Key(key).BeginObject().Member("instructions", n.instructions);
        json->Member("flops", n.flops).Member("bytes", n.bytes).EndObject();
      };
      numbers("before", Numbers(scope.before));
      numbers("after", Numbers(scope.after));
      json->EndObject();
    }
    json->EndArray().Key("unattributed").BeginArray();
    for (const auto& [why, instructions] : unannotated_) {
      json->BeginObject().Member("reason", ToString(why)).Member("count", instructions.size());
      json->Key("instructions").BeginArray();
      for (InstructionId id : instructions) {
        if (why != MissingMetadataReason::kNothingAnnotated) json->Value(module_.instruction(id).name());
      }
      json->EndArray().EndObject();
    }
    json->EndArray().Key("dropped_metadata").BeginArray();
    for (const MetadataLossTracker::Row& row : loss_.rows()) {
      json->BeginObject().Member("pass", row.pass).Key("op_names").BeginArray();
      for (MetadataId id : row.lost) json->Value(SourceName(module_, id));
      json->EndArray().EndObject();
    }
    json->EndArray().EndObject();
  }

 private:
  const AnnotationsFlags& flags_;
  Module& module_;
  absl::Status status_;
  MetadataLossTracker loss_;
  AnnotationCounts counts_before_, counts_after_;
  std::vector<ScopeNode> before_, after_;
  std::map<MissingMetadataReason, std::vector<InstructionId>> unannotated_;
};

int RunAnnotations(const AnnotationsFlags& flags) {
  DiagnosticReporter diagnostics(flags.input);
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(flags.passes);
  if (!pipeline.ok()) return UsageError("hlo-inspect", std::string(pipeline.status().message()));
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
        const Report report(flags, module.get(), &*pipeline);
        if (!report.status().ok()) {
          diagnostics.ShowError(part.label(), std::string(report.status().message()), kRejected);
          continue;
        }
        if (flags.json) {
          report.Json(&json);
        } else {
          if (!first) out << "\n";
          report.Text(&out);
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
