// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_inspect/shardings.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/core/json_writer.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/sharding.h"
#include "passes/sharding/explanation.h"
#include "passes/sharding/propagation.h"

namespace hlokit::cli {
namespace {

struct ShardingsFlags : InspectFlags {
  std::string why;
  bool spmd = true;
  bool to_output = false;
  bool to_parameters = false;
};

std::string ShardingText(Instruction i) {
  std::string text;
  TextWriter out(&text);
  PrintSharding(out, i.module().context(), ListId(*i.payload(Attr::kSharding)), /*include_metadata=*/false);
  out.Flush();
  return text;
}

// "y", or "y leaf 2" of a tuple.
std::string LeafName(Instruction i, int64_t leaf) {
  if (!i.shape().IsTuple()) return std::string(i.name());
  return StrCat(i.name(), " leaf ", leaf);
}

void WriteLine(const Module& module, const sharding::ExplanationLine& line, TextWriter* out) {
  for (int n = 0; n < line.depth; ++n) *out << "  ";
  *out << LeafName(module.instruction(line.instruction), line.leaf) << "  " << line.sharding << "  " << line.reason
       << "\n";
}

void WriteWhy(const Module& module, const sharding::PropagationLog& log, const sharding::Subject& subject,
              TextWriter* out) {
  for (int64_t leaf : subject.leaves) {
    const sharding::Explanation why = sharding::ExplainSharding(module, log, subject.instruction, leaf);
    if (why.chain.empty()) *out << LeafName(subject.instruction, leaf) << "  no sharding\n";
    for (const sharding::ExplanationLine& line : why.chain) WriteLine(module, line, out);
    if (why.rejected.empty()) continue;
    *out << "not taken, since it conflicts:\n";
    for (const sharding::ExplanationLine& line : why.rejected) {
      *out << "  " << line.sharding << "  " << line.reason << "\n";
    }
  }
}

void WriteLines(std::string_view key, const Module& module, const std::vector<sharding::ExplanationLine>& lines,
                JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const sharding::ExplanationLine& line : lines) {
    json->BeginObject().Member("depth", int64_t{line.depth});
    if (line.instruction.valid()) json->Member("instruction", module.instruction(line.instruction).name());
    json->Member("leaf", line.leaf).Member("sharding", line.sharding).Member("reason", line.reason).EndObject();
  }
  json->EndArray();
}

void WriteJson(const ShardingsFlags& flags, const InputPart& part, const Module& module,
               const sharding::PropagationLog& log, const sharding::Subject& subject, JsonWriter* json) {
  json->BeginObject().Member("file", part.source->name());
  if (part.count > 1) json->Member("group", part.index + 1);
  json->Member("module", module.name());
  if (!flags.why.empty()) {
    json->Key("why").BeginArray();
    for (int64_t leaf : subject.leaves) {
      const sharding::Explanation why = sharding::ExplainSharding(module, log, subject.instruction, leaf);
      json->BeginObject().Member("leaf", leaf);
      WriteLines("chain", module, why.chain, json);
      WriteLines("rejected", module, why.rejected, json);
      json->EndObject();
    }
    json->EndArray().EndObject();
    return;
  }
  json->Key("instructions").BeginArray();
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!i.has(Attr::kSharding)) continue;
      json->BeginObject().Member("name", i.name()).Member("computation", c.name());
      json->Member("sharding", ShardingText(i)).Member("from", sharding::ToString(sharding::SourceOf(log, i, 0)));
      json->EndObject();
    }
  }
  json->EndArray().EndObject();
}

void WriteTable(const Module& module, const sharding::PropagationLog& log, TextWriter* out) {
  int64_t with = 0, without = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) {
      if (!i.has(Attr::kSharding)) {
        ++without;
        continue;
      }
      ++with;
      *out << i.name() << "  " << ToString(i.shape(), /*with_layout=*/false) << "  " << ShardingText(i) << "  from "
           << sharding::ToString(sharding::SourceOf(log, i, 0)) << "\n";
    }
  }
  *out << with << " instructions with a sharding, " << without << " without\n";
}

int Run(const ShardingsFlags& given_flags) {
  // Rules are made of valid instructions only.
  ShardingsFlags flags = given_flags;
  flags.verify = true;
  DiagnosticReporter diagnostics(flags.input);
  return WriteReport(flags, &diagnostics, [&](TextWriter& out) {
    JsonWriter json(&out);
    if (flags.json) json.BeginArray();
    bool first = true;
    ForEachModule(flags, &diagnostics, [&](const InputPart& part, const Module& given) {
      Module module = given.Clone();
      sharding::PropagationOptions options;
      options.is_spmd = flags.spmd;
      options.propagate_metadata = true;
      const ModuleHeader& header = module.header();
      options.to_output = flags.to_output
                              ? std::vector<bool>{true}
                              : sharding::AllowedByHeader(module, header.allow_spmd_sharding_propagation_to_output);
      options.to_parameters =
          flags.to_parameters ? std::vector<bool>{true}
                              : sharding::AllowedByHeader(module, header.allow_spmd_sharding_propagation_to_parameters);
      sharding::PropagationLog log;
      const absl::StatusOr<sharding::PropagationCounts> counts = sharding::PropagateShardings(module, options, &log);
      if (!counts.ok()) {
        diagnostics.ShowError(part.label(), std::string(counts.status().message()), kRejected);
        return;
      }
      sharding::Subject subject;
      if (!flags.why.empty()) {
        absl::StatusOr<sharding::Subject> found = sharding::FindSubject(module, flags.why);
        if (!found.ok()) {
          diagnostics.ShowError(part.label(), std::string(found.status().message()), kRejected);
          return;
        }
        subject = *std::move(found);
      }
      if (flags.json) {
        WriteJson(flags, part, module, log, subject, &json);
        return;
      }
      out << (std::exchange(first, false) ? "" : "\n");
      if (flags.why.empty()) {
        WriteTable(module, log, &out);
      } else {
        WriteWhy(module, log, subject, &out);
      }
    });
    if (flags.json) json.EndArray();
  });
}

}  // namespace

InspectCommand AddShardingsCommand(CLI::App* app) {
  auto flags = std::make_shared<ShardingsFlags>();
  CLI::App* command = app->add_subcommand(
      "shardings", "propagate shardings, and print those of all instructions or why one has its own");
  flags->AddTo(command);
  command
      ->add_option("--why", flags->why,
                   "print the chain by which this instruction, or NAME[LEAF] of a tuple, got its sharding")
      ->type_name("NAME");
  command->add_flag("--spmd,!--no-spmd", flags->spmd, "all devices run one program (default on)");
  command->add_flag("--to-output", flags->to_output, "results may change; default as the header allows");
  command->add_flag("--to-parameters", flags->to_parameters, "parameters may change; default as the header allows");
  command->footer(
      "Examples:\n"
      "  hlo-inspect shardings module.hlo                  every instruction with its sharding\n"
      "  hlo-inspect shardings --why=dot.4 module.hlo      where that of dot.4 comes from, back to the text\n"
      "  hlo-inspect shardings --why='while.1[2]' m.hlo    that of one leaf of a tuple");
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace hlokit::cli
